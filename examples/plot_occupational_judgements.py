"""
Judgements on a sphere: private regions when nobody knows the centre
====================================================================

48 persons judged occupations by four criteria: earnings, social status, reward and social
usefulness (Fisher, Lewis and Embleton 1987, data set B20). A judgement is a direction, a point of
the sphere. Where does the average judgement by each criterion point, and how sure can we be of it,
if no person's judgement is to be disclosed?

The obvious recipe, a ball around the sample mean, is **not private**: the ball moves with every
record, so a public sensitivity no longer bounds what one person can change. Here we buy the centre.

There is no ``random_state`` here, so the numbers differ from run to run.
"""

from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np

from skdpfrechet import DPFrechetMean, compose, sensitivity
from skdpfrechet.datasets import load_occupational_judgements

judgements = load_occupational_judgements()
criteria, radius = judgements.criteria, judgements.radius
records = {name: judgements.data[judgements.target == name] for name in criteria}
n = len(records[criteria[0]])
print(f"{n} persons judge by {len(criteria)} criteria; a record is a {judgements.unit}")
print(f"public radius {np.degrees(radius):.0f}°, no public centre")

# %%
# Buy the centre, then the mean
# -----------------------------
# ``center="private"`` does both in one fit. The plain average of unit vectors moves by at most 2/n
# when one of them is replaced, wherever they are. Gaussian noise makes it private; to normalise it
# is post-processing, and the result is as public as any release. ``ball_share`` is the part of μ²
# that pays for it. The rest goes to the Fréchet mean of the records moved into the ball around that
# centre, and to its region.
#
# The centre only has to be near enough for the ball to hold most of the records. The region is
# about the population mean of the records *moved into the realised ball*, whichever that is.

CENTER_SHARE = 0.25


def private_mean(X, mu):
    """Mean direction of unit vectors, in a ball around a centre that is bought first."""
    return DPFrechetMean(
        "sphere", center="private", radius=radius, ball_share=CENTER_SHARE, mu=mu
    ).fit(X)


def exact_mean(X):
    """NOT private: the exact mean of the records in a ball around the sample mean."""
    average = X.mean(axis=0)
    center = average / np.linalg.norm(average)
    return DPFrechetMean("sphere", center=center, radius=radius, mu=np.inf).fit(X)


budgets = (1.0, 2.0)
private = {mu: {name: private_mean(records[name], mu) for name in criteria} for mu in budgets}
exact = {name: exact_mean(records[name]) for name in criteria}

print(f"\nwhat the mean by {criteria[0].lower()} cost")
print(private[1.0][criteria[0]].privacy_)

# %%
# Four criteria, the same persons
# -------------------------------
# Everyone judged by all four criteria, so the four fits compose: at μ each, a person's guarantee
# over the four is 2μ. The two budgets below are alternatives: whoever released both would have
# spent √(2² + 4²) = 4.5.

print("\na person's guarantee over the four criteria")
for mu in budgets:
    total = compose(*(fit.privacy_.total for fit in private[mu].values()))
    epsilon = total.epsilon(1e-5)
    print(f"   μ = {mu:g} for each: {total} together, ε = {epsilon:.2f} at δ = 1e-5")


def direction(point):
    """Colatitude and longitude in degrees, as Fisher, Lewis and Embleton state them."""
    x, y, z = point
    return np.degrees(np.arctan2(np.hypot(x, y), z)), np.degrees(np.arctan2(y, x)) % 360


def size(region):
    """Radius in degrees of the circle with the area of the region."""
    return np.degrees(np.sqrt(region.volume / np.pi))


columns = {f"μ = {mu:g}": private[mu] for mu in budgets}
columns["NOT private"] = exact

print("\nmean direction (colatitude, longitude) ± size of its 95 % region, in degrees")
print(f"{'':18}" + "".join(f"{title:>18}" for title in columns))
for name in criteria:
    cells = []
    for fits in columns.values():
        colatitude, longitude = direction(fits[name].mean_)
        error = size(fits[name].confidence_region_)
        cells.append(f"{colatitude:5.0f} {longitude:4.0f} ±{error:3.0f}")
    print(f"{name:18}" + "".join(f"{cell:>18}" for cell in cells))

# %%
# Which criteria differ?
# ----------------------
# Two regions without a common point tell two means apart. If two discs overlap, the boundary of one
# enters the other, so it suffices to try points of the boundaries. Only released regions are used:
# this costs nothing. (Every region holds at its own 95 %, and for the records moved into its own
# ball.)


def overlap(first, second):
    inside = first.contains(second.boundary(200)), second.contains(first.boundary(200))
    return bool(np.any(inside))


print("\npairs of criteria whose 95 % regions overlap")
for title, fits in columns.items():
    regions = {name: fit.confidence_region_ for name, fit in fits.items()}
    pairs = [f"{a} & {b}" for a, b in combinations(criteria, 2) if overlap(regions[a], regions[b])]
    print(f"{title:>14}: {', '.join(pairs) or 'none'}")

# %%
# What a ball around the data claims
# ----------------------------------
# The analysis of these data by Jiang, Chang and Hu (arXiv 2605.14762) puts a ball of radius π/8
# around the sample mean, and scales its noise to what one judgement can change while *that ball
# stays where it is*. The regions are smaller, and claim a privacy that they do not have. **Do not
# do this with private data.**

PAPER_RADIUS = np.pi / 8


def data_centred(X, mu):
    """NOT private, whatever μ says: noise around a ball that moves with the records."""
    center = exact_mean(X).mean_
    public = {"center": center, "radius": PAPER_RADIUS}  # the fault: this centre is not public
    return DPFrechetMean("sphere", **public, mu=mu, calibration="paper").fit(X)


print("\nsize of the region at μ = 1, in degrees: private; data-centred, NOT private")
for name in criteria:
    honest, void = private[1.0][name], data_centred(records[name], 1.0)
    print(f"{name:18}{size(honest.confidence_region_):6.1f}{size(void.confidence_region_):8.1f}")

# %%
# How wrong the claim is can be tried: replace one judgement, let the ball follow, and see how far
# the mean moves. The noise allows for 1.21/n.


def one_replaced(X, directions):
    """Largest change of the data-centred mean, times n, when one judgement is replaced."""
    start, farthest = data_centred(X, np.inf), 0.0
    for i in range(0, len(X), 6):
        for point in directions:
            neighbour = X.copy()
            neighbour[i] = point
            moved = data_centred(neighbour, np.inf)
            farthest = max(farthest, start.manifold_.dist(start.mean_, moved.mean_))
    return len(X) * farthest


claimed = n * sensitivity.frechet_mean_paper(private[1.0][name].manifold_, PAPER_RADIUS, n)
axes_of_space = np.concatenate([np.eye(3), -np.eye(3)])
found = one_replaced(records[criteria[3]], axes_of_space)
print(f"n × change of the mean by one judgement: claimed {claimed:.2f}, found {found:.2f}")

# %%
# The map
# -------
# Lambert's azimuthal projection keeps areas, so regions can be compared by eye. It looks at the
# sphere from longitude 20° on the equator; the outer circle is 90° away from there. The small dots
# are the records. They can be shown because these data are published; a private analysis would
# publish the large markers and the regions only.

VIEW = np.radians(20)
EAST = np.array([-np.sin(VIEW), np.cos(VIEW), 0])
OUT = np.array([np.cos(VIEW), np.sin(VIEW), 0])


def lambert(points):
    """Project points of the sphere to the plane, preserving areas."""
    points = np.asarray(points)
    height = points @ OUT
    flat = np.stack([points @ EAST, points[..., 2]], axis=-1)
    return (flat * np.sqrt(2 / (1 + height))[..., None]).T


STYLES = {  # Okabe and Ito's colours, and markers for those who do not see them
    criteria[0]: ("#0072B2", "o"),
    criteria[1]: ("#E69F00", "s"),
    criteria[2]: ("#009E73", "^"),
    criteria[3]: ("#CC79A7", "D"),
}
fig, axes = plt.subplots(1, len(columns), figsize=(12, 4.7), layout="compressed")
angle = np.linspace(-np.pi / 2, np.pi / 2, 100)
for ax, (title, fits) in zip(axes, columns.items(), strict=True):
    for degrees in range(-60, 90, 30):  # meridians and parallels of the visible half
        longitude, latitude = np.radians(degrees) + VIEW, np.radians(degrees)
        for lon, lat in ((longitude, angle), (VIEW + angle, latitude)):
            lon, lat = np.broadcast_arrays(lon, lat)
            circle = [np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)]
            ax.plot(*lambert(np.transpose(circle)), color="0.9", linewidth=0.8, zorder=0)
    ax.add_patch(plt.Circle((0, 0), np.sqrt(2), fill=False, color="0.6"))
    for name, (colour, marker) in STYLES.items():
        visible = records[name][records[name] @ OUT > 0]
        outline = lambert(fits[name].confidence_region_.boundary(200))
        ax.scatter(*lambert(visible), s=16, color=colour, marker=marker, alpha=0.4, linewidth=0)
        ax.fill(*outline, color=colour, alpha=0.3)
        ax.add_patch(plt.Polygon(outline.T, fill=False, color=colour, linewidth=1.8))
        ax.plot(
            *lambert(fits[name].mean_),
            color=colour,
            marker=marker,
            markersize=8,
            markeredgecolor="black",
            linestyle="none",
            label=name if ax is axes[0] else None,
        )
    ax.set_title(f"{title}, ball around the data" if fits is exact else f"private, {title} each")
    ax.set_aspect("equal")
    ax.set_axis_off()
fig.legend(loc="outside lower center", ncols=len(criteria), frameon=False)
hidden = int((judgements.data @ OUT <= 0).sum())
print(
    f"\n{hidden} of the {len(judgements.data)} records lie on the far half and are not on the map"
)

if fig.canvas.required_interactive_framework:  # without a window there is nothing to show it in
    plt.show()
