"""
Do two populations differ? Tests on private releases
====================================================

Once means and variances are released with honest errors, comparing them is post-processing: it
costs nothing. Chest X-rays of children with and without pneumonia show the tests next to those
without privacy.

The tests believe that the samples have **nothing in common**. Two criteria by which the same 48
persons judged show what goes wrong when that is not so, and what to do instead.

There is no ``random_state`` here, so the numbers differ from run to run.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import chi2

from skdpfrechet import (
    GDP,
    DPFrechetMean,
    DPFrechetVariance,
    compose,
    one_sample_test,
    sensitivity,
    two_sample_test,
    variance_ratio_interval,
    variance_test,
)
from skdpfrechet.datasets import load_occupational_judgements, load_pneumonia_descriptors
from skdpfrechet.mechanisms import Gaussian

# %%
# Two samples without a common record
# -----------------------------------
# Every X-ray is summarised by a 5 × 5 covariance matrix of its grey values and edges. An image is
# either normal or not, so the classes share no record, and a guarantee of μ for each class is one
# of μ for every image. (In the collection a child may have several images and nobody tells which;
# this protects images, and the errors count images.)
#
# Both classes use the same public ball. In different balls even the same population may have
# different means, once records are moved into them.

xrays = load_pneumonia_descriptors()
classes = [xrays.data[xrays.target == k] for k in (0, 1)]
public = {"manifold": xrays.manifold, "center": xrays.center, "radius": xrays.radius}
for name, X in zip(xrays.target_names, classes, strict=True):
    print(f"{name:>10}: {len(X)} images")


def release(X, mu):
    """Mean and variance of one class for μ in all: 0.8² + 0.6² = 1."""
    mean = DPFrechetMean(**public, mu=0.8 * mu).fit(X)
    return mean, DPFrechetVariance(**public, mu=0.6 * mu, mean=mean.release_).fit(X)


budgets = (0.1, 0.2, 0.5, 1.0, 2.0, np.inf)  # alternatives: publishing all of them would add up
results = {}
print(f"\n{'μ':>11}   p of equal means   p of equal variances   ratio of variances (95 %)")
for mu in budgets:
    (mean_a, variance_a), (mean_b, variance_b) = (release(X, mu) for X in classes)
    means, variances = two_sample_test(mean_a, mean_b), variance_test(variance_a, variance_b)
    low, high = variance_ratio_interval(variance_a, variance_b)
    results[mu] = means, variances
    title = "NOT private" if mu == np.inf else f"{mu:g}"
    print(
        f"{title:>11}   {means.pvalue:16.2g}   {variances.pvalue:20.2g}   [{low:.2f}, {high:.2f}]"
    )

# %%
# The means of the classes differ so much that little budget shows it. The variances need more: the
# noise of a variance grows with the square of the radius, and the ball is large.
#
# Two samples of the same persons
# -------------------------------
# Social status and reward were judged by the same 48 persons. Nobody knows where on the sphere
# judgements lie, so the centre of the ball is bought first: the average over both criteria, in
# which a person has two vectors but moves the average by no more than 2/n.

judgements = load_occupational_judgements()
criteria = ("Social Status", "Reward")
status, reward = (load_occupational_judgements(criterion=c).data for c in criteria)
n, total = len(status), 3.0
mu_center, mu_rest = total / 2, total * np.sqrt(3) / 2
noise = Gaussian.calibrate(sensitivity.extrinsic_mean(n), GDP(mu_center))
average = noise.release((status + reward).mean(axis=0) / 2, np.random.default_rng())
center = average / np.linalg.norm(average)
sphere = {"manifold": "sphere", "center": center, "radius": judgements.radius}

# %%
# Published comparisons of these data treat the two criteria as independent samples. Then each takes
# a fit of its own, and since a person is in both, the budgets add up. No release says whose
# judgements it holds, so the library cannot refuse the comparison.


def compare_as_independent(mu):
    """The p-value that would be right if the criteria were judged by different persons."""
    fits = [DPFrechetMean(**sphere, mu=mu).fit(X) for X in (status, reward)]
    return fits, two_sample_test(*fits)


fits, independent = compare_as_independent(mu_rest / np.sqrt(2))
spent = compose(GDP(mu_center), *(fit.privacy_.guarantee for fit in fits))
print(f"\n{' & '.join(criteria)}, judged by the same {n} persons; {spent} in all")
print(f"   as if by different persons: p = {independent.pvalue:.3f}, only indicative")

# %%
# It is better to make **one record of each person**: the difference of the two judgements, as
# vectors of the tangent plane at the released centre. They are ordinary vectors, their mean is 0 if
# the two criteria have the same distribution, and a person pays once. Judgements within r of the
# centre are at most 2r apart in that plane, so a ball of radius 2r leaves every difference alone.


def differences():
    """Per person, reward minus status in the tangent plane at the released centre."""
    space = fits[0].manifold_
    inside = [space.project_to_ball(X, center, judgements.radius) for X in (status, reward)]
    return np.subtract(*(space.log_coords(center, X) for X in reversed(inside)))


def compare_in_pairs(mu):
    """The test of the persons' differences."""
    fit = DPFrechetMean("euclidean", radius=2 * judgements.radius, mu=mu).fit(differences())
    return fit, one_sample_test(fit, np.zeros(2))


fit, paired = compare_in_pairs(mu_rest)
spent = compose(GDP(mu_center), fit.privacy_.guarantee)
print(f"   a difference per person:    p = {paired.pvalue:.3f}; {spent} in all")

# %%
# Why it matters
# --------------
# These judgements are published, so we may look at them. Persons who place status further than
# others in some direction tend to place reward further there, too. Independence adds the two
# variances; in truth twice the covariance has to be taken off. Here that makes the comparison of
# supposedly independent samples too cautious; a negative correlation would make it too bold.

print("\nfor this demonstration on public data only, NOT private:")
exact_fits, exact_independent = compare_as_independent(np.inf)
exact_fit, exact_paired = compare_in_pairs(np.inf)
space = exact_fits[0].manifold_
inside = [space.project_to_ball(X, center, judgements.radius) for X in (status, reward)]
deviations = [
    space.log_coords(center, X) - space.log_coords(center, X).mean(axis=0) for X in inside
]
axis = exact_fit.mean_ / np.linalg.norm(exact_fit.mean_)
along = np.degrees([d @ axis for d in deviations])
correlation = np.corrcoef(along)[0, 1]
assumed = sum(d.T @ d for d in deviations) / n**2  # covariance of the difference of the means
actual = np.cov(deviations[1].T - deviations[0].T, bias=True) / n
print(f"   correlation of the deviations along the difference: {correlation:.2f}")
ratio = axis @ actual @ axis / (axis @ assumed @ axis)
print(f"   variance of the difference there: {ratio:.2f} of what independence assumes")
print(f"   as if by different persons: p = {exact_independent.pvalue:.3f}")
print(f"   a difference per person:    p = {exact_paired.pvalue:.3f}")

# %%
# Left, the statistics over the value at which a test of level 5 % rejects, from one release at each
# μ; open markers are not private. Middle, the judgements of the 48 persons in the direction in
# which the criteria differ. Right, 95 % regions of the difference with and without the assumption
# that nobody judged by both.

BLUE, ORANGE, GREEN = "#0072B2", "#E69F00", "#009E73"
fig, (left, middle, right) = plt.subplots(1, 3, figsize=(13, 4.6), layout="compressed")
fig.get_layout_engine().set(w_pad=0.12)

place = np.arange(len(budgets))
for k, (colour, marker, label) in enumerate(((BLUE, "o", "means"), (ORANGE, "s", "variances"))):
    tests = [results[mu][k] for mu in budgets]
    # Both on the scale of χ²: the statistic of the variances is Student's.
    heights = [
        test.statistic / chi2.ppf(0.95, test.df) if k == 0 else (test.statistic / 1.96) ** 2
        for test in tests
    ]
    left.plot(place[:-1], heights[:-1], color=colour, marker=marker, label=label)
    left.plot(place[-1], heights[-1], color=colour, marker=marker, markerfacecolor="white")
left.axhline(1, color="0.5", linestyle=":", label="rejected above")
left.set_yscale("log")
left.set_ylim(bottom=min(0.05, left.get_ylim()[0]))
left.set_xticks(place, [f"{mu:g}" for mu in budgets[:-1]] + ["not\nprivate"])
left.set_xlabel("μ")
left.set_title("X-rays: statistic / critical value")
left.legend(frameon=False)

middle.scatter(*along, color=GREEN, s=24, alpha=0.7, linewidth=0)
middle.axhline(0, color="0.8", zorder=0)
middle.axvline(0, color="0.8", zorder=0)
slope = np.polyfit(*along, 1)
ends = np.array([along[0].min(), along[0].max()])
middle.plot(ends, np.polyval(slope, ends), color="black")
middle.set_xlabel("social status (°)")
middle.set_ylabel("reward (°)")
middle.set_title(f"Persons' deviations: correlation {correlation:.2f}")

circle = np.linspace(0, 2 * np.pi, 200)
circle = np.sqrt(chi2.ppf(0.95, 2)) * np.stack([np.cos(circle), np.sin(circle)])
for covariance, colour, style, label in (
    (assumed, ORANGE, "--", "as if different persons"),
    (actual, BLUE, "-", "a difference per person"),
):
    ellipse = exact_fit.mean_[:, None] + np.linalg.cholesky(covariance) @ circle
    right.plot(*np.degrees(ellipse), color=colour, linestyle=style, linewidth=2, label=label)
right.plot(*np.degrees(exact_fit.mean_), "k+", markersize=9)
right.plot(0, 0, "kx", markersize=9)
right.annotate("no difference", (0, 0), xytext=(6, -14), textcoords="offset points")
right.set_aspect("equal", adjustable="datalim")
right.set_xlabel("degrees in the tangent plane")
right.set_title("Reward minus status, 95 %, not private")
right.legend(frameon=False, loc="upper left")

if fig.canvas.required_interactive_framework:  # without a window there is nothing to show it in
    plt.show()
