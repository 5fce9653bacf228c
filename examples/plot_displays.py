"""
Pictures of releases, and a plan made without data
==================================================

``skdpfrechet.plotting`` draws what a fit has released: regions on the sphere, in the cone of
covariance matrices, as ellipses, and in coordinates of the tangent space. A picture of a release is
as public as the release. Drawing the *records*, or the error of a private mean, would be another
release, and there is no display for it.

There is no ``random_state`` here, so the numbers differ from run to run.
"""

import matplotlib.pyplot as plt
import numpy as np

from skdpfrechet import DPFrechetMean, compose
from skdpfrechet.datasets import (
    load_diffusion_tensors,
    load_muse_eeg,
    load_occupational_judgements,
    load_pneumonia_descriptors,
)
from skdpfrechet.manifolds import SPDAffineInvariant
from skdpfrechet.plotting import ConfidenceRegionDisplay, PrivacyUtilityDisplay

# %%
# Plan
# ----
# Before any record is looked at: how large will the error be? The manifold, the radius of the ball
# and the number of records give the noise at every budget; a guess of the spread, from outside the
# data, adds the sampling error. Where the two cross, privacy costs as much as sampling.

fig = plt.figure(figsize=(13, 8.4), layout="constrained")
spaces = {"projection": "3d"}

xrays = load_pneumonia_descriptors()
plan = PrivacyUtilityDisplay.from_public(
    SPDAffineInvariant(5),
    radius=xrays.radius,
    n_samples=len(xrays.data),
    spread=xrays.radius / 3,  # a guess: most records within 3/5 of the ball
    ax=fig.add_subplot(2, 3, 6),
)
crossing = np.interp(1, plan.curves["sampling"] / plan.curves["noise"], plan.mu)
print(f"X-rays: noise and sampling error are equal at μ = {crossing:.2f}")

# sphinx_gallery_defer_figures

# %%
# Release
# -------
# Three fits at increasing budgets join the plan. They are of the same records, so their budgets
# add up, which the legend says.

ball = {"manifold": "spd", "center": xrays.center, "radius": xrays.radius}
fits = [DPFrechetMean(**ball, mu=mu).fit(xrays.data) for mu in (0.3, 0.6, 1.2)]
released = PrivacyUtilityDisplay.from_estimators(fits, ax=plan.ax_)
((label, sizes),) = released.curves.items()
print(f"X-rays, {label}: effective radii {', '.join(f'{size:.3f}' for size in sizes)}")

# sphinx_gallery_defer_figures

# %%
# The two classes, drawn in two of fifteen coordinates. Each outline is the shadow of the whole
# region, so what is disjoint in one pair of coordinates is disjoint.

classes = [DPFrechetMean(**ball).fit(xrays.data[xrays.target == k]) for k in (0, 1)]
shadows = ConfidenceRegionDisplay.from_estimator(
    classes, labels=xrays.target_names, coordinates=(0, 5), ax=fig.add_subplot(2, 3, 5)
)

# sphinx_gallery_defer_figures

# %%
# On the sphere
# -------------
# 48 persons judge by four criteria; nobody knows the centre, so it is bought. In Lambert's
# projection equal areas are equal, and the rings show distances from the middle.

judgements = load_occupational_judgements()
means = [
    DPFrechetMean("sphere", center="private", radius=judgements.radius, mu=2.0).fit(
        judgements.data[judgements.target == name]
    )
    for name in judgements.criteria
]
total = compose(*(mean.privacy_.total for mean in means))
print(f"judgements: μ = 2 for each of {len(means)} criteria, {total} for a person")
globe = ConfidenceRegionDisplay.from_estimator(
    means, kind="sphere", labels=judgements.criteria, ax=fig.add_subplot(2, 3, 1, **spaces)
)
chart = ConfidenceRegionDisplay.from_estimator(
    means, labels=judgements.criteria, ax=fig.add_subplot(2, 3, 2)
)
globe.ax_.get_legend().remove()

# sphinx_gallery_defer_figures

# %%
# Covariance matrices
# -------------------
# Two channels at the front of the head and two behind the ears: 2 × 2 covariances, regions in the
# cone of positive definite matrices. Diffusion tensors are 3 × 3: the mean as an ellipse, and
# behind it matrices on the boundary of its region. (All voxels are of one person: this protects a
# voxel, not a person.)

eeg = load_muse_eeg()
places = {"front": [1, 2], "ears": [0, 3]}
pairs = [
    DPFrechetMean("spd", center=100 * np.eye(2), radius=3.3).fit(eeg.data[np.ix_(range(64), i, i)])
    for i in places.values()
]
cone = ConfidenceRegionDisplay.from_estimator(
    pairs, labels=list(places), ax=fig.add_subplot(2, 3, 3, **spaces)
)
tensors = load_diffusion_tensors()
budgets = (0.05, 0.2)
diffusion = [DPFrechetMean("spd", radius=tensors.radius, mu=mu).fit(tensors.data) for mu in budgets]
ellipses = ConfidenceRegionDisplay.from_estimator(diffusion, ax=fig.add_subplot(2, 3, 4))
for fit in diffusion:
    print(
        f"tensors at μ = {fit.mu:g}: effective radius {fit.confidence_region_.effective_radius:.3f}"
    )

# sphinx_gallery_defer_figures

# %%
# The titles are ours: a display keeps its axes in ``ax_`` and what it drew in ``centers_`` and
# ``boundaries_``, for any further change.

for display, title in (
    (globe, "Judgements on the sphere"),
    (chart, "The same, areas preserved"),
    (cone, "EEG of two channels, in the cone"),
    (ellipses, "Diffusion tensors, standard deviations"),
    (shadows, "X-rays, two coordinates of 15"),
    (plan, "X-rays: planned and released"),
):
    display.ax_.set_title(title)

if fig.canvas.required_interactive_framework:  # without a window there is nothing to show it in
    plt.show()
