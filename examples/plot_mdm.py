"""
A private classifier of covariance matrices
===========================================

pyRiemann's ``MDM`` sums up every class by its mean and sends a new record to the nearest one.
``DPMDM`` takes its place, with means that are private. Other than with a linear model behind
``DPFrechetMean``, the whole classifier is then private: it knows the released means and nothing
else, and whoever has it can classify records of their own.

**What is public:** the labels and how many records each class has. Neighbours are two data sets
that differ in one record, with the same label. That record enters one mean only, so each mean gets
the whole budget (parallel composition).

Two public data sets serve: the SSVEP trials, of three persons (hiding a trial hides no person), and
the chest X-rays. The noise has no ``random_state``, so the numbers differ from run to run.
"""

import matplotlib.pyplot as plt
import numpy as np
from pyriemann.classification import MDM
from pyriemann.estimation import Shrinkage
from pyriemann.preprocessing import Whitening
from pyriemann.tangentspace import FGDA, TangentSpace
from sklearn.metrics import accuracy_score, confusion_matrix
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline

from skdpfrechet import DPMDM, audit_pipeline
from skdpfrechet.datasets import load_muse_eeg, load_pneumonia_descriptors
from skdpfrechet.manifolds import SPDAffineInvariant

ssvep = load_muse_eeg(kind="ssvep")
xrays = load_pneumonia_descriptors()
for name, data in (("SSVEP", ssvep), ("X-rays", xrays)):
    sizes = np.unique(data.target, return_counts=True)[1]
    print(f"{name}: {data.data.shape}, classes of {sizes[0]} and {sizes[1]}")

# %%
# One fit
# -------
# The ball is that of the loader, argued for from outside the data. The report has a line for each
# class: the smaller class gets more noise.


def private_mdm(data, mu):
    return DPMDM(radius=data.radius, center=data.center, mu=mu)


classifier = private_mdm(xrays, mu=1.0).fit(xrays.data, xrays.target)
print(f"\n{classifier.privacy_}\n")

# %%
# What may come before it
# -----------------------
# A guarantee speaks of the records as they reach the step. If an earlier step has learnt from all
# records, one record changes what all the others become. ``audit_pipeline`` reads the steps and
# says which are safe.

for steps in ((Shrinkage(),), (Shrinkage(), Whitening("riemann"))):
    print(f"{audit_pipeline(make_pipeline(*steps, private_mdm(ssvep, mu=1.0)))}\n")

# %%
# Seen on the data: one trial is replaced by another of its class, on the edge of the public ball.
# How far does this move the other 404, as a step passes them on? A private mean after these steps
# is made for a change of one of them.

space = SPDAffineInvariant(8)
neighbour = ssvep.data.copy()
neighbour[0] = space.exp_coords(ssvep.center, ssvep.radius * np.eye(space.dim)[0])


def largest_move(step):
    """Largest change of a record that is the same in both data sets."""
    first, second = (
        step.fit(X, ssvep.target).transform(ssvep.data[1:]) for X in (ssvep.data, neighbour)
    )
    if first.ndim == 2:  # tangent vectors
        return np.linalg.norm(first - second, axis=1).max()
    return space.dist(first, second).max()


moves = {
    type(step).__name__: largest_move(step)
    for step in (Shrinkage(), Whitening("riemann"), TangentSpace(), FGDA())
}
for name, move in moves.items():
    print(f"{name:<13} moves another record by {move:.3f}")

# %%
# Accuracy against budget
# -----------------------
# Five folds, repeated with fresh noise and fresh folds; the twin is pyRiemann's ``MDM`` on the same
# folds. For this demonstration on public data only: a score is computed from records without noise,
# and each of these fits would have to be paid for.

budgets, repeats = [0.1, 0.3, 1, 3], 6


def predictions(data, estimator, seed):
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)  # of the folds, not of the noise
    return cross_val_predict(estimator, data.data, data.target, cv=folds)


def score(data, estimator, seed):
    return accuracy_score(data.target, predictions(data, estimator, seed))


print("\n   data   " + "".join(f"{f'μ = {mu:g}':>10}" for mu in budgets) + "   MDM, NOT private")
curves = {}
for name, data in (("SSVEP", ssvep), ("X-rays", xrays)):
    exact = [score(data, MDM(), seed) for seed in range(repeats)]
    noisy = [[score(data, private_mdm(data, mu), s) for s in range(repeats)] for mu in budgets]
    curves[name] = np.array(noisy), np.mean(exact)
    cells = "".join(f"{np.mean(values):10.3f}" for values in noisy)
    print(f"{name:>9} {cells}   {np.mean(exact):.3f}")

# %%
# The sensitivity of a class mean is 2r/n, and the noise has as many coordinates as the space: 15
# for the X-rays, 36 for SSVEP. At μ = 1 the accuracy is that of the exact means in both.
#
# Left above, the accuracy; the dots are single cross-validations. Right above, how far one trial
# moves the others through the steps before. Below, what becomes of the X-rays with exact and with
# private means.

BLUE, ORANGE, GREY = "#0072B2", "#E69F00", "0.5"
fig, axes = plt.subplots(2, 2, figsize=(10, 8), layout="constrained")
(curve, bars), below = axes
for (name, (noisy, exact)), colour in zip(curves.items(), (ORANGE, BLUE), strict=True):
    curve.plot(np.repeat(budgets, repeats), noisy.ravel(), "o", color=colour, alpha=0.3, mew=0)
    curve.plot(budgets, noisy.mean(axis=1), color=colour, label=f"{name}, private")
    curve.axhline(exact, color=colour, linestyle="--", label=f"{name}, exact")
curve.axhline(0.5, color=GREY, linestyle=":", label="a coin")
curve.set_xscale("log")
curve.set_xticks(budgets, [f"{mu:g}" for mu in budgets])
curve.minorticks_off()
curve.set_ylim(0.35, 1)
curve.set_xlabel("μ")
curve.set_ylabel("accuracy in five folds")
curve.set_title("DPMDM and MDM")
curve.legend(loc="lower right", ncols=2, fontsize="small")

safe = [move < 1e-9 for move in moves.values()]  # rounding in the distance
bars.barh(list(moves), list(moves.values()), color=ORANGE)
for place, move in enumerate(moves.values()):
    bars.text(move, place, " not at all" if safe[place] else f" {move:.2g}", va="center")
bars.invert_yaxis()
bars.set_xlim(0, 1.2 * max(moves.values()))
bars.set_xlabel("largest distance that another trial moves")
bars.set_title("What replacing one trial does to the others")

estimators = {"MDM, not private": MDM(), "DPMDM, μ = 1": private_mdm(xrays, 1.0)}
for ax, (name, estimator) in zip(below, estimators.items(), strict=True):
    counts = confusion_matrix(xrays.target, predictions(xrays, estimator, 0))
    ax.imshow(counts / counts.sum(axis=1, keepdims=True), cmap="Blues", vmin=0, vmax=1)
    for i, j in np.ndindex(2, 2):
        share = counts[i, j] / counts[i].sum()
        text = f"{counts[i, j]}\n{100 * share:.0f} %"
        ax.text(j, i, text, ha="center", va="center", color="white" if share > 0.5 else "black")
    ax.set_xticks((0, 1), ("normal", "pneumonia"))
    ax.set_yticks((0, 1), ("normal", "pneumonia"))
    ax.set_xlabel("predicted")
    ax.set_ylabel("labelled")
    ax.set_title(f"X-rays: {name}")

if fig.canvas.required_interactive_framework:  # without a window there is nothing to show it in
    plt.show()
