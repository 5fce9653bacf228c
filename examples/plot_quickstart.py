"""
Quickstart: the average EEG covariance of 64 persons, privately
===============================================================

Every person wore a four-channel EEG headband and contributes one covariance matrix. We release the
Fréchet mean of these matrices with a confidence region, and their Fréchet variance with an
interval, such that the results would hardly look different had any one person had quite other
brain waves.

There is no ``random_state`` here: whoever knows the seed can take the noise off again. So the
numbers differ from run to run.
"""

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np

from skdpfrechet import DPFrechetMean, DPFrechetVariance
from skdpfrechet.datasets import load_muse_eeg

# %%
# What is public
# --------------
# Each record is moved into a ball whose centre and radius are chosen *without looking at the
# records*. Here they come from textbooks on EEG: about 10 µV on every electrode, and one order of
# magnitude of variance in either direction. The number of persons is public, too.

eeg = load_muse_eeg()
n, channels = len(eeg.data), eeg.feature_names
print(f"{n} persons, channels {', '.join(channels)}; a record is a {eeg.unit}")
print(f"public ball: centre {eeg.center[0, 0]:g} µV² · I, radius {eeg.radius:g}")

# %%
# Two fits, one budget
# --------------------
# The mean gets μ = 0.8, the variance μ = 0.6. Squares add, so both together cost μ = 1. The
# variance reuses the point that is already released and does not pay for it a second time.
# ``groups`` says whose record it is, so that the person is what is protected, whatever the number
# of records; here everyone has one.

start = perf_counter()
public = {"manifold": "spd", "center": eeg.center, "radius": eeg.radius}
mean = DPFrechetMean(**public, mu=0.8, unit="person").fit(eeg.data, groups=eeg.subject)
variance = DPFrechetVariance(**public, mu=0.6, mean=mean.release_, unit="person")
variance.fit(eeg.data, groups=eeg.subject)
region = mean.confidence_region_
seconds = perf_counter() - start

print("\nprivate mean covariance (µV²)")
print(" " * 6 + "".join(f"{name:>8}" for name in channels))
for name, row in zip(channels, mean.mean_, strict=True):
    print(f"{name:>6}" + "".join(f"{value:8.1f}" for value in row))

# %%
# How far to trust them
# ---------------------
# Distances between covariance matrices are logarithmic: a step of length s along one axis
# multiplies the amplitude along that axis by exp(s/2). The effective radius of the region is the
# typical distance between the released and the true mean, over all dimensions together.

per_axis = region.effective_radius / np.sqrt(mean.manifold_.dim)
print(f"\n{region.confidence_level:.0%} region: effective radius {region.effective_radius:.2f}")
print(f"standard error of the amplitude along an axis: {np.exp(per_axis / 2) - 1:.0%}")


def amplitudes(mean):
    """Root mean square of each channel (µV) with its 95 % interval, from released numbers only."""
    rms = np.sqrt(np.diag(mean.mean_))
    # covariance_ refers to an orthonormal frame of tangent vectors (here matrices) at the mean.
    frame = mean.manifold_.frame(mean.mean_)
    slope = np.diagonal(frame, axis1=1, axis2=2) / (2 * rms**2)  # of log(rms)
    error = np.sqrt(np.einsum("ki,kl,li->i", slope, mean.covariance_, slope))
    return rms, rms * np.exp(-1.96 * error), rms * np.exp(1.96 * error)


print("\nprivate amplitudes (µV, root mean square) with 95 % intervals")
for name, rms, low, high in zip(channels, *amplitudes(mean), strict=True):
    print(f"{name:>6}  {rms:5.1f}  [{low:.1f}, {high:.1f}]")

low, high = variance.interval_
print(f"\nprivate Fréchet variance {variance.variance_:.2f}, 95 % interval [{low:.2f}, {high:.2f}]")
print(f"a person is typically {np.sqrt(low):.1f} to {np.sqrt(high):.1f} away from the mean")

# %%
# What it cost
# ------------
# Every fit carries its own report. That of the variance also counts the mean that it reuses: its
# ``total`` is for both.

print(f"\n{mean.privacy_}")
report = variance.privacy_
print(f"\n{report}")
print(f"\nmean μ = {mean.mu:g} and variance μ = {variance.mu:g}: together {report.total}, which is")
print(f"(ε, δ)-DP with ε = {report.epsilon(1e-5):.2f} at δ = 1e-5")
print(f"both fits and the region took {seconds:.2f} s")

# %%
# For this demonstration on public data only: the non-private answer
# ------------------------------------------------------------------
# These recordings are published, so we may look at the exact mean. On private records this
# comparison would itself be a disclosure.

exact = DPFrechetMean(**public, mu=np.inf).fit(eeg.data)
exact_variance = DPFrechetVariance(**public, mu=np.inf).fit(eeg.data)
print("\nfor this demonstration on public data only, NOT private:")
distance = mean.manifold_.dist(mean.mean_, exact.mean_)
exact_low, exact_high = exact_variance.interval_
print(f"   distance of the private mean from the exact one: {distance:.2f}")
print(f"   effective radius: {exact.confidence_region_.effective_radius:.2f}")
print(f"   Fréchet variance: {exact_variance.variance_:.2f} [{exact_low:.2f}, {exact_high:.2f}]")

# %%
# Left, the private mean: the colour is the correlation, the number the covariance. Right, the
# amplitudes that follow from it. Part of every interval is there without privacy, because 64
# persons are a sample; the rest is the price of the guarantee.

BLUE, ORANGE = "#0072B2", "#E69F00"
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4.6), layout="compressed")
fig.get_layout_engine().set(w_pad=0.15)

rms = np.sqrt(np.diag(mean.mean_))
correlation = mean.mean_ / np.outer(rms, rms)
image = left.imshow(correlation, cmap="RdBu_r", vmin=-1, vmax=1)
for (i, j), value in np.ndenumerate(mean.mean_):
    colour = "white" if abs(correlation[i, j]) > 0.6 else "black"
    left.text(j, i, f"{round(value)}", ha="center", va="center", color=colour)
left.set_xticks(range(len(channels)), channels)
left.set_yticks(range(len(channels)), channels)
left.set_title("Private mean covariance (µV²)")
fig.colorbar(image, ax=left, label="correlation")

place = np.arange(len(channels))
for shift, fit, colour, marker, label in (
    (-0.12, mean, BLUE, "o", "private, μ = 0.8"),
    (0.12, exact, ORANGE, "s", "not private (public data only)"),
):
    rms, low, high = amplitudes(fit)
    right.errorbar(
        place + shift,
        rms,
        yerr=[rms - low, high - rms],
        fmt=marker,
        color=colour,
        capsize=4,
        label=label,
    )
right.axhline(np.sqrt(eeg.center[0, 0]), color="0.5", linestyle=":", label="public centre")
right.set_xticks(place, channels)
right.set_xlim(-0.5, len(channels) - 0.5)
right.set_ylim(bottom=0)
right.set_title("Root mean square (µV), 95 % intervals")
fig.legend(loc="outside lower center", ncols=3, frameon=False)

if fig.canvas.required_interactive_framework:  # without a window there is nothing to show it in
    plt.show()
