"""
A private reference point in a pyRiemann pipeline
=================================================

A classifier of EEG epochs often works in the tangent space at the mean covariance matrix. Here
``DPFrechetMean`` takes the place of pyRiemann's ``TangentSpace``, so that the mean, the one thing
the transformation learns from all epochs, is released privately.

What is private is **the reference point** (and what is computed from it alone). Not private are

* the **transformed records**: each is as sensitive as the epoch it comes from;
* the **classifier**: it is trained on the transformed records, and its coefficients and scores
  carry no guarantee;
* anything **fitted before**: ``Whitening``, ``XdawnCovariances`` or ``CSP`` learn from all records
  what each record is turned into, so one record changes all of them and the guarantee is void.
  Steps that look at one record at a time, such as ``Covariances``, are safe.

The epochs are simulated. The noise has no ``random_state``, so the numbers differ from run to run.
"""

import matplotlib.pyplot as plt
import numpy as np
from pyriemann.estimation import Covariances
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline

from skdpfrechet import DPFrechetMean, compose

# %%
# Two classes of epochs
# ---------------------
# Imagined movement of a hand lowers the 10 Hz rhythm over the opposite side of the motor cortex.
# Eight sources have a background spectrum and this rhythm, which is weaker in one source for class
# 0 and in another for class 1; the powers vary from epoch to epoch. Each electrode records a
# mixture of the sources, and noise of its own. Amplitudes are in µV.

N_CHANNELS, N_TIMES, RATE = 8, 256, 128


def noise_in_band(shape, low, high, slope, rng):
    """Gaussian noise of unit variance with the power spectrum 1/f^slope between low and high Hz."""
    frequency = np.fft.rfftfreq(N_TIMES, 1 / RATE)
    inside = (frequency >= low) & (frequency <= high)
    weight = np.where(inside, np.maximum(frequency, low) ** (-slope / 2), 0)
    signal = np.fft.irfft(np.fft.rfft(rng.standard_normal((*shape, N_TIMES))) * weight)
    return signal / signal.std(axis=-1, keepdims=True)


def simulate_epochs(n_epochs, rng):
    """Epochs of shape (n_epochs, N_CHANNELS, N_TIMES) and their classes."""
    y = np.arange(n_epochs) % 2
    shape = (n_epochs, N_CHANNELS)
    background = 6 * np.exp(0.4 * rng.standard_normal(shape))
    rhythm = 8 * np.exp(0.3 * rng.standard_normal(shape))
    rhythm[y == 0, 2] *= 0.4
    rhythm[y == 1, 5] *= 0.4
    sources = background[..., None] * noise_in_band(shape, 1, 30, 1, rng)
    sources += rhythm[..., None] * noise_in_band(shape, 8, 12, 0, rng)
    angle = 2 * np.pi * np.arange(N_CHANNELS) / N_CHANNELS  # electrodes and sources on a ring
    mixing = np.exp(2 * (np.cos(angle[:, None] - angle - 0.3) - 1))
    return mixing @ sources + rng.standard_normal((*shape, N_TIMES)), y


simulation = np.random.default_rng(2026)  # the seed of the simulated epochs, not of the privacy
X_train, y_train = simulate_epochs(100, simulation)
X_test, y_test = simulate_epochs(1000, simulation)
print(f"{len(X_train)} epochs to train on, {len(X_test)} to test, {N_CHANNELS} channels")

# %%
# One pipeline
# ------------
# The public ball comes from textbooks: 10 µV on every electrode, and one order of magnitude of
# variance in either direction along each of the eight principal axes, √8 ln 10 = 6.5. The
# classifier needs no confidence region; with ``confidence_level=None`` the whole budget goes to the
# mean.


def reference_point(mu):
    return DPFrechetMean(
        "spd", center=100 * np.eye(N_CHANNELS), radius=6.5, mu=mu, confidence_level=None
    )


pipeline = make_pipeline(
    Covariances("oas"), reference_point(mu=1.0), LogisticRegression(max_iter=1000)
)
pipeline.fit(X_train, y_train)
report = pipeline["dpfrechetmean"].privacy_
print(f"test accuracy {pipeline.score(X_test, y_test):.3f}\n")
print("privacy of the reference point (the rest of the pipeline has none)")
print(report)

# %%
# A record is an epoch here. If all epochs are of one person, this hides an epoch and not the
# person.
#
# Cross-validation spends
# -----------------------
# Every refit draws noise of its own and is a release of its own. With K folds each record is in
# K - 1 training sets; to count all K is simple and safe. If a grid of parameters is searched, every
# candidate adds its K fits. The scores are computed from private records with no noise at all: to
# publish them, or the parameters they select, is outside the guarantee.

folds = cross_validate(pipeline, X_train, y_train, cv=5, return_estimator=True)
spent = [fitted["dpfrechetmean"].privacy_.guarantee for fitted in folds["estimator"]]
total = compose(*spent, report.guarantee)
epsilon = total.epsilon(1e-5)
print(f"\n5 folds and the final fit at 1-GDP each: {total}, ε = {epsilon:.2f} at δ = 1e-5")

# %%
# Accuracy against budget
# -----------------------
# For this demonstration on simulated data only: many fits on the same epochs, and a comparison with
# the non-private twin, ``mu=np.inf``. On real epochs the μ² of all these fits would add up.

to_covariances = Covariances("oas")  # one record at a time, so doing it once changes nothing
C_train, C_test = (to_covariances.fit_transform(X) for X in (X_train, X_test))


def fit_and_score(mu):
    classifier = make_pipeline(reference_point(mu), LogisticRegression(max_iter=1000))
    classifier.fit(C_train, y_train)
    return classifier[0].mean_, classifier.score(C_test, y_test)


space = pipeline["dpfrechetmean"].manifold_
exact_mean, exact_score = fit_and_score(np.inf)
budgets, repeats = [0.03, 0.1, 0.3, 1, 3], 5
scores, distances = np.empty((2, len(budgets), repeats))
for i, mu in enumerate(budgets):
    for k in range(repeats):
        mean, scores[i, k] = fit_and_score(mu)
        distances[i, k] = space.dist(mean, exact_mean)

print("\n     μ   median accuracy   median distance from the exact mean")
for mu, score, distance in zip(budgets, scores, distances, strict=True):
    print(f"{mu:6g}   {np.median(score):15.3f}   {np.median(distance):10.2f}")
print(f"   inf   {exact_score:15.3f}   {0:10.2f}   NOT private")

# %%
# The reference point is cheap. Tangent coordinates separate the classes at any point near the data,
# so a hundred epochs and a small budget place it well enough. The accuracy gives way, slowly, only
# when the noise is as large as the public ball itself. Remember why: the classifier sees the
# transformed epochs without any noise, and they, like the classifier, are not private.

BLUE, ORANGE = "#0072B2", "#E69F00"
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
for ax, values in ((left, scores), (right, distances)):
    ax.plot(np.repeat(budgets, repeats), values.ravel(), "o", color=BLUE, alpha=0.35, mew=0)
    ax.plot(budgets, np.median(values, axis=1), color=BLUE, label="private mean, median of 5 fits")
    ax.set_xscale("log")
    ax.set_xticks(budgets, [f"{mu:g}" for mu in budgets])
    ax.minorticks_off()
    ax.set_xlabel("μ of the reference point")
left.axhline(exact_score, color=ORANGE, linestyle="--", label="exact mean (not private)")
left.axhline(0.5, color="0.5", linestyle=":", label="chance")
left.set_ylim(0.45, 1)
left.set_ylabel("fraction of epochs classified correctly")
left.set_title("Test accuracy")
right.axhline(6.5, color="0.5", linestyle="-.", label="radius of the public ball")
right.set_yscale("log")
right.set_ylabel("distance from the exact mean")
right.set_title("Error of the reference point")
left.legend(loc="upper right")
right.legend(loc="upper right")

if fig.canvas.required_interactive_framework:  # without a window there is nothing to show it in
    plt.show()
