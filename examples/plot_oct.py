"""
Images as covariances: what privacy costs in dimension 15
=========================================================

A region covariance descriptor sums an image up in a symmetric positive definite 5 × 5 matrix: the
covariances of its grey values and edges. Jiang, Chang and Hu (arXiv 2605.14762) release the mean
descriptor of optical coherence tomographies (OCT) of the retina privately. Here are the quantities
that they report.

**Not the numbers that they report:** their images have class labels and went through a
preprocessing that the supplement of the paper describes. Neither is available, and the 400 images
here have no labels. So classes are compared on other images that do have labels, chest X-rays.

There is no ``random_state`` here, so the numbers differ from run to run.
"""

from itertools import product

import matplotlib.pyplot as plt
import numpy as np

from skdpfrechet import DPFrechetMean, two_sample_test
from skdpfrechet.datasets import load_oct_descriptors, load_pneumonia_descriptors

# %%
# One mean, several budgets
# -------------------------
# Centre and radius of the ball come from a textbook model of images, not from these images. The
# budgets are alternatives: to publish the means of all three would cost √(0.1² + 1² + 2²) = 2.2.

oct_images = load_oct_descriptors()
public = {"manifold": oct_images.manifold, "center": oct_images.center, "radius": oct_images.radius}
print(f"{len(oct_images.data)} OCT images without labels; a record is an {oct_images.unit}")

BUDGETS = (0.1, 1.0, 2.0, np.inf)
RECIPES = ("paper", "sharp")


def title(mu):
    return "NOT private" if mu == np.inf else f"μ = {mu:g}"


fits = {
    (mu, recipe): DPFrechetMean(**public, mu=mu, calibration=recipe).fit(oct_images.data)
    for mu, recipe in product(BUDGETS, RECIPES)
}
exact = fits[np.inf, "sharp"]

# %%
# *Distortion* is the distance of a mean from the one without privacy, which only the custodian of
# the images can compute. All else is read off the release: the eigenvalues of the covariance of its
# error, sampling and noise together, the ratio of the largest to the smallest, the effective radius
# (the root of their sum) and the volume of the region, in units of distance to the power of 15.

names = ("largest", "smallest", "ratio", "eff. radius", "log₁₀ volume", "distortion")
print(f"\n{'':22}" + "".join(f"{name:>14}" for name in names))
for (mu, recipe), fit in fits.items():
    region = fit.confidence_region_
    largest, smallest = region.eigenvalues[[0, -1]]
    cells = (
        f"{largest:.2g}",
        f"{smallest:.2g}",
        f"{largest / smallest:.1f}",
        f"{region.effective_radius:.3f}",
        f"{np.log10(region.volume):.2f}",
        f"{fit.manifold_.dist(exact.mean_, fit.mean_):.3f}",
    )
    print(f"{title(mu):>12}, {recipe:8}" + "".join(f"{cell:>14}" for cell in cells))

# %%
# Noise is the same in all 15 directions, so it evens out the eigenvalues: hundreds of times apart
# in the sampling error, they are only a few times apart in a private release. With 400 images the
# noise of μ = 1 moves the mean somewhat farther than the sampling error does, whose effective
# radius is 0.08; at μ = 0.1 noise is all there is to see.
#
# Two classes
# -----------
# The X-rays are normal or show a pneumonia. An image is in one class only, so a guarantee of μ for
# each class mean is one of μ for every image.

xrays = load_pneumonia_descriptors()
public = {"manifold": xrays.manifold, "center": xrays.center, "radius": xrays.radius}
by_class = {name: xrays.data[xrays.target == k] for k, name in enumerate(xrays.target_names)}
pairs = {
    mu: {name: DPFrechetMean(**public, mu=mu).fit(X) for name, X in by_class.items()}
    for mu in BUDGETS
}

sizes = ", ".join(f"{len(X)} {name}" for name, X in by_class.items())
print(f"\nX-rays: {sizes}")
print(f"{'':12}{'distance of the means':>24}{'p of equal means':>20}")
for mu, pair in pairs.items():
    first, second = pair.values()
    distance = first.manifold_.dist(first.mean_, second.mean_)
    print(f"{title(mu):>12}{distance:24.2f}{two_sample_test(first, second).pvalue:20.2g}")

# %%
# What the regions look like
# --------------------------
# Left: the 15 eigenvalues of each release, from the largest on. Right: the regions of the two
# classes, seen in two of the 15 coordinates of the logarithm at the public centre, the entries of
# the grey values and of the horizontal edges. The regions of private means are ellipsoids in just
# these coordinates, so their shadows are ellipses. The dots are the images, which are published.

COLOURS = ("#CC79A7", "#E69F00", "#009E73", "#000000")  # Okabe and Ito's
MARKERS = ("v", "s", "o", "x")
CLASSES = {"normal": ("#0072B2", "o"), "pneumonia": ("#D55E00", "^")}
GREY, EDGE = 0, 5  # diagonal entries in the order of numpy.triu_indices

fig, axes = plt.subplots(1, 3, figsize=(12, 4.4), layout="constrained", width_ratios=(1.15, 1, 1))
for mu, colour, marker in zip(BUDGETS, COLOURS, MARKERS, strict=True):
    values = fits[mu, "sharp"].confidence_region_.eigenvalues
    axes[0].semilogy(
        np.arange(1, 16), values, marker, color=colour, markersize=6, linestyle="-", label=title(mu)
    )
axes[0].set_title("OCT, covariance of the mean")
axes[0].set_xlabel("eigenvalue, from the largest on")
axes[0].set_xticks((1, 5, 10, 15))
axes[0].legend(frameon=False, fontsize=9)

circle = np.stack([np.cos(t := np.linspace(0, 2 * np.pi, 200)), np.sin(t)])
for ax, mu in zip(axes[1:], (1.0, 2.0), strict=True):
    for name, (colour, marker) in CLASSES.items():
        fit, without = pairs[mu][name], pairs[np.inf][name]
        region = fit.confidence_region_

        def chart(points, space=fit.manifold_):
            return space.log_coords(xrays.center, points)[..., [GREY, EDGE]]

        shadow = region.covariance[np.ix_([GREY, EDGE], [GREY, EDGE])] * region.critical_value
        ellipse = chart(fit.mean_)[:, None] + np.linalg.cholesky(shadow) @ circle
        ax.plot(*chart(by_class[name]).T, ".", color=colour, alpha=0.25, markersize=3)
        ax.plot(*ellipse, color=colour, linewidth=2)
        ax.plot(
            *chart(fit.mean_),
            marker,
            color=colour,
            markersize=8,
            markeredgecolor="black",
            linestyle="none",
            label=f"{name}, private mean",
        )
        label = "means, NOT private" if name == "normal" else None
        ax.plot(
            *chart(without.mean_), "x", color="black", markersize=8, linestyle="none", label=label
        )
    ax.set_title(f"X-rays, μ = {mu:g} for each class")
    ax.set_xlabel("log-variance of the grey values, relative")
    ax.set_ylabel("log-variance of the edges, relative")
handles, labels = axes[1].get_legend_handles_labels()
order = (0, 2, 1)
fig.legend(
    [handles[i] for i in order],
    [labels[i] for i in order],
    loc="outside lower right",
    ncols=3,
    frameon=False,
)

if fig.canvas.required_interactive_framework:  # without a window there is nothing to show it in
    plt.show()
