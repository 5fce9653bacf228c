"""
Private principal geodesics of chest X-rays
===========================================

In which ways do records differ most? Principal geodesic analysis answers with the curves through
the mean along which they spread. ``DPPrincipalGeodesics`` releases a mean and a second moment, and
the rest is arithmetic on the two: **the geodesics are private and may be published**, the scores of
the records along them may not.

The records are 624 chest X-rays, each described by the 5 × 5 covariance of its grey values and
their first and second derivatives: points of a space of dimension 15. The noise has no
``random_state``, so the numbers differ from run to run.
"""

import matplotlib.pyplot as plt
import numpy as np

from skdpfrechet import DPPrincipalGeodesics
from skdpfrechet.datasets import load_pneumonia_descriptors

xrays = load_pneumonia_descriptors()
print(f"{len(xrays.data)} X-rays, features {', '.join(xrays.feature_names)}")


def analyse(mu):
    return DPPrincipalGeodesics(center=xrays.center, radius=xrays.radius, mu=mu).fit(xrays.data)


pga = analyse(mu=1.0)
print(f"\n{pga.privacy_}\n")

# %%
# How many geodesics can be trusted
# ---------------------------------
# The noise in the second moment has a spectrum of its own. ``noise_floor_``, a public number, is
# where it ends. A component whose variance is well above it is one of the records; the others point
# where the noise does. The exact analysis, which may be seen here because the data are public,
# confirms it.

exact = analyse(mu=np.inf)
print("for this demonstration on public data only, the exact analysis, NOT private:")
print(f"noise floor {pga.noise_floor_:.3f}\n")
print("component   released variance   share   exact   cosine of the directions")
for k in range(4):
    # The frames at two means differ; a short geodesic is carried from one to the other.
    along = exact.manifold_.exp_coords(
        exact.mean_, np.array([-0.1, 0.1])[:, None] * exact.components_[k]
    )
    ends = pga.manifold_.log_coords(pga.mean_, along)
    direction = (ends[1] - ends[0]) / np.linalg.norm(ends[1] - ends[0])
    cosine = abs(direction @ pga.components_[k])
    released, share = pga.explained_variance_[k], pga.explained_variance_ratio_[k]
    twin = exact.explained_variance_[k]
    print(f"{k + 1:9}   {released:17.3f}   {share:5.2f}   {twin:5.3f}   {cosine:.3f}")

# %%
# Walk along the first geodesic
# -----------------------------
# ``inverse_transform`` turns scores into matrices. From two standard deviations below the mean to
# two above, the standard deviations of all five features grow together: the first way in which
# X-rays differ is their contrast.

steps = np.linspace(-2, 2, 9)
scores = np.zeros((len(steps), pga.manifold_.dim))
scores[:, 0] = steps * np.sqrt(pga.explained_variance_[0])
matrices = pga.inverse_transform(scores)
deviations = np.sqrt(np.diagonal(matrices, axis1=1, axis2=2))
growth = deviations[-1] / deviations[0]
print("\nfrom -2 to +2 standard deviations along the first geodesic:")
for name, factor in zip(xrays.feature_names, growth, strict=True):
    print(f"   standard deviation of {name:<5} times {factor:.2f}")

# %%
# What the budget buys
# --------------------
# k geodesics leave some of the records unexplained: the mean square of the rest, as a fraction of
# all. Many fits on the same records, for this demonstration only.

budgets, repeats = [0.1, 0.3, 1, 3, 10], 6
inside = exact.manifold_.project_to_ball(xrays.data, xrays.center, xrays.radius)
total = exact.explained_variance_.sum()


def unexplained(fit, k):
    logs = fit.manifold_.log_coords(fit.mean_, inside)
    return ((logs**2).sum() - ((logs @ fit.components_[:k].T) ** 2).sum()) / len(logs) / total


left = np.array(
    [
        [[unexplained(fit, k) for k in (1, 3)] for fit in map(analyse, [mu] * repeats)]
        for mu in budgets
    ]
)
print("\n     μ   left by 1 geodesic   by 3")
for mu, values in zip(budgets, left.mean(axis=1), strict=True):
    print(f"{mu:6g}   {values[0]:18.3f}   {values[1]:.3f}")
print(f"   inf   {unexplained(exact, 1):18.3f}   {unexplained(exact, 3):.3f}   NOT private")

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#E69F00", "#009E73", "0.5"
fig, (spectrum, walk, budget) = plt.subplots(1, 3, figsize=(13, 4.4), layout="constrained")

places = np.arange(1, 9)
spectrum.plot(places, exact.explained_variance_[:8], "o-", color=ORANGE, label="exact, not private")
spectrum.plot(places, pga.explained_variance_[:8], "s-", color=BLUE, label="private, μ = 1")
spectrum.axhspan(0, pga.noise_floor_, color=GREY, alpha=0.15, label="below the noise floor")
spectrum.set_ylim(bottom=0)
spectrum.set_xlabel("component")
spectrum.set_ylabel("variance")
spectrum.set_title("One direction stands out of the noise")
spectrum.legend()

looks = ((BLUE, "-"), (ORANGE, "-"), (ORANGE, "--"), (GREEN, "-"), (GREEN, "--"))
for name, values, (colour, style) in zip(xrays.feature_names, deviations.T, looks, strict=True):
    walk.plot(steps, values, style, color=colour, label=name)
walk.set_yscale("log")
walk.set_yticks((0.02, 0.05, 0.1, 0.2), ("0.02", "0.05", "0.1", "0.2"))
walk.minorticks_off()
walk.legend()
walk.set_xlabel("standard deviations from the private mean")
walk.set_ylabel("standard deviation of the feature")
walk.set_title("Along the first geodesic (private)")

for k, colour, marker, word in ((0, BLUE, "o", "1 geodesic"), (1, GREEN, "s", "3 geodesics")):
    budget.plot(
        np.repeat(budgets, repeats), left[..., k].ravel(), marker, color=colour, alpha=0.3, mew=0
    )
    budget.plot(budgets, left[..., k].mean(axis=1), color=colour, label=f"private, {word}")
    budget.axhline(
        unexplained(exact, (1, 3)[k]), color=colour, linestyle="--", label=f"exact, {word}"
    )
budget.set_xscale("log")
budget.set_yscale("log")
budget.set_xticks(budgets, [f"{mu:g}" for mu in budgets])
budget.set_yticks((0.1, 0.2, 0.5, 1), ("0.1", "0.2", "0.5", "1"))
budget.minorticks_off()
budget.set_xlabel("μ")
budget.set_ylabel("fraction left unexplained")
budget.set_title("What the budget buys")
budget.legend()

if fig.canvas.required_interactive_framework:  # without a window there is nothing to show it in
    plt.show()
