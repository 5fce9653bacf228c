"""
Persons as the unit of privacy
==============================

The guarantee hides one record. Whoever gave twelve trials has twelve times the μ, and as trials of
one person are alike, a region that takes them for independent is too small. Both are mended by
``groups``: all records of a person become one point, their own Fréchet mean, and what is protected
is the person with everything he or she recorded.

The EEG has one covariance per person; the trials below are **simulated** from it. The noise that
makes things private has no ``random_state``, so the numbers differ from run to run.
"""

import matplotlib.pyplot as plt
import numpy as np
from pyriemann.estimation import Covariances
from sklearn import config_context
from sklearn.pipeline import make_pipeline

from skdpfrechet import GDP, DPFrechetMean, audit_pipeline
from skdpfrechet.datasets import load_muse_eeg
from skdpfrechet.manifolds import SPDAffineInvariant

eeg = load_muse_eeg()
space = SPDAffineInvariant(4)
MU = 1.0


def private_mean(mu=MU):
    return DPFrechetMean("spd", center=eeg.center, radius=eeg.radius, mu=mu)


# %%
# One record per person
# ---------------------
# Here ``groups`` changes nothing but the report, which now states what is hidden: a person, as
# ``unit`` calls a group. The number of persons is public, how many records each has is not.

print(f"{len(eeg.data)} covariances of {len(set(eeg.subject))} persons")
print(f"\n{private_mean().set_params(unit='person').fit(eeg.data, groups=eeg.subject).privacy_}\n")

# %%
# Several trials per person: a simulation
# ---------------------------------------
# The 64 covariances serve as a population. A study draws 64 persons from it, with replacement, and
# 3 to 12 trials of each: 128 samples of Gaussian noise with the covariance of that person. Trials
# of one person differ by chance only; persons differ as the real ones do.

N_PERSONS, MOST_TRIALS, SAMPLES = 64, 12, 128
rng = np.random.default_rng(0)  # of the simulated signals, not of the noise for privacy
mixing = np.linalg.cholesky(eeg.data)


def signals(persons):
    """One epoch, channels by times, for each entry."""
    return mixing[persons] @ rng.standard_normal((len(persons), 4, SAMPLES))


def study():
    """Epochs of one study, and whose they are."""
    members = rng.integers(len(eeg.data), size=N_PERSONS)
    trials = rng.integers(3, MOST_TRIALS + 1, size=N_PERSONS)
    trials[0] = MOST_TRIALS
    return signals(np.repeat(members, trials)), np.repeat(np.arange(N_PERSONS), trials)


epochs, person = study()
print(f"simulated: {len(epochs)} trials of {N_PERSONS} persons, 3 to {MOST_TRIALS} each")

# %%
# Through a pipeline
# ------------------
# Covariances are computed trial by trial, which leaves every guarantee intact. For the groups to
# reach the private step, scikit-learn must be told to route them.

with config_context(enable_metadata_routing=True):
    pipeline = make_pipeline(
        Covariances("scm"),
        private_mean().set_params(unit="person").set_fit_request(groups=True),
    )
    by_person = pipeline.fit(epochs, groups=person)[-1]
    by_trial = make_pipeline(Covariances("scm"), private_mean()).fit(epochs)[-1]

print(audit_pipeline(pipeline))
for name, fit in (("groups", by_person), ("no groups", by_trial)):
    row = fit.privacy_.releases[0]
    print(f"{name:>10}: unit {fit.privacy_.unit}, n = {fit.n_samples_}, ", end="")
    print(f"noise of the mean {row.noise_scale:.3f} per coordinate")

# %%
# What a person risks
# -------------------
# Less noise, and the same μ = 1 in the report: but of a *trial*. A person with k of them is k
# replacements away from a study without him or her, and k replacements are kμ-GDP. To promise a
# person μ this way, every trial must be given μ/k, for the *largest* k, which has to be fixed
# beforehand.

for k in (1, MOST_TRIALS):
    guarantee = GDP(k * MU)
    print(f"{k:3d} trials: {guarantee}, ε = {guarantee.epsilon(1e-5):.2f} at δ = 1e-5")
print(f"μ = {MU:g} for everyone without groups: μ = {MU / MOST_TRIALS:.3f} for a trial")

# %%
# Seen on the data: the trials of the first person are exchanged for others at the edge of the
# ball, and the exact mean moves. In standard deviations of the noise, that is how well the two
# studies can be told apart, and what μ bounds.

covariances = Covariances("scm").transform(epochs)
edge = space.exp_coords(eeg.center, eeg.radius * np.eye(space.dim)[0])
opposite = space.exp_coords(eeg.center, -eeg.radius * np.eye(space.dim)[0])


def move(private, replaced, groups):
    """Distance between the exact means of two neighbours, in standard deviations of the noise."""
    means = []
    for point in (edge, opposite):
        neighbour = covariances.copy()
        neighbour[replaced] = point
        means.append(private_mean(np.inf).fit(neighbour, groups=groups).mean_)
    first, second = space.log_coords(eeg.center, np.stack(means))  # where the noise is added
    return np.linalg.norm(first - second) / private.privacy_.releases[0].noise_scale


one_trial, one_person = np.arange(len(person)) == 0, person == 0
moves = {
    "no groups,\none trial": move(by_trial, one_trial, None),
    "no groups,\none person": move(by_trial, one_person, None),
    "groups,\none person": move(by_person, one_person, person),
}
print("\nhow far the mean moves, in standard deviations of its noise")
for name, value in moves.items():
    print(f"{name.replace(chr(10), ' '):>22} replaced: {value:5.2f}")
allowed = [fit.privacy_.releases[0].mu for fit in (by_trial, by_person)]
print(f"the mean's part of μ = {MU:g}: {allowed[0]:.2f} without groups, {allowed[1]:.2f} with them")

# %%
# Which population?
# -----------------
# A region for the mean of *persons* has to allow for the spread between them; the many trials
# only tell better where each of them is. Studies are repeated with fresh persons and fresh noise.
# The target is the mean over the population, from 200 trials of each of the 64.

everyone = np.repeat(np.arange(len(eeg.data)), 200)
with config_context(enable_metadata_routing=True):
    exact = make_pipeline(
        Covariances("scm"), private_mean(np.inf).set_fit_request(groups=True)
    ).fit(signals(everyone), groups=everyone)[-1]
target = exact.mean_

REPLICATIONS = 30
recipes = {  # μ, and whether groups are passed
    "no groups, μ": (MU, False),
    "no groups, μ/12": (MU / MOST_TRIALS, False),
    "groups, μ": (MU, True),
}
outcomes = {name: [] for name in recipes}
for _ in range(REPLICATIONS):
    epochs, person = study()
    X = Covariances("scm").transform(epochs)
    for name, (mu, grouped) in recipes.items():
        fit = private_mean(mu).fit(X, groups=person if grouped else None)
        region = fit.confidence_region_
        error = space.dist(fit.mean_, target)
        outcomes[name].append((error, region.effective_radius, region.contains(target)))

print(f"\n{REPLICATIONS} studies, 95 % regions for the mean of the persons")
print("                 a person has    distance    effective radius    covered")
promised = {"no groups, μ": GDP(MOST_TRIALS * MU), "no groups, μ/12": GDP(MU), "groups, μ": GDP(MU)}
for name, rows in outcomes.items():
    error, size, covered = np.mean(rows, axis=0)
    print(f"{name:>16} {promised[name]!s:>12} {error:11.2f} {size:19.2f} {covered:10.2f}")

# %%
# Without groups the mean is nearer to the target, at 12-GDP for a person, and its region is several
# times too small. With μ/12 a person has the promise, but more noise than with groups, since few
# have as many as twelve trials; the region is still not made for persons, and if it covers often,
# that is because noise drowns the rest.
#
# Left, the reason for small regions: trials cluster by person (dots are trials, the large marks
# those of five persons). Middle, how far one person can move the mean. Right, the error of each
# study against the size of its region.

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#E69F00", "#009E73", "0.7"
fig, (cloud, bars, scatter) = plt.subplots(1, 3, figsize=(13, 4.6), layout="constrained")

coordinates = space.log_coords(target, X)
axes = np.linalg.svd(coordinates - coordinates.mean(axis=0), full_matrices=False)[2][:2]
flat = coordinates @ axes.T
cloud.plot(*flat.T, ".", color=GREY, markersize=3)
shown = ((0, BLUE, "o"), (1, ORANGE, "s"), (2, GREEN, "^"), (3, "#CC79A7", "D"), (4, "black", "v"))
for member, color, marker in shown:
    cloud.plot(*flat[person == member].T, marker, color=color, markersize=6, alpha=0.8)
cloud.set_aspect("equal", adjustable="datalim")
cloud.set_xlabel("first principal coordinate")
cloud.set_ylabel("second")
cloud.set_title("Simulated trials, five persons marked")

bars.bar(list(moves), list(moves.values()), color=(GREY, ORANGE, BLUE), hatch=("", "//", ""))
for place, value in enumerate(moves.values()):
    bars.text(place, max(value, MU) + 0.1, f"{value:.2f}", ha="center", va="bottom")
bars.axhline(MU, color="black", linestyle="--", label="μ = 1")
bars.set_ylim(top=1.15 * max(moves.values()))
bars.set_ylabel("standard deviations of the noise")
bars.set_title("How far one replacement moves the mean")
bars.legend(loc="upper right")

marks = {"no groups, μ": (ORANGE, "s"), "no groups, μ/12": (GREEN, "^"), "groups, μ": (BLUE, "o")}
for name, rows in outcomes.items():
    error, size, covered = np.array(rows).T
    color, marker = marks[name]
    label = f"{name}: covered {covered.mean():.0%}"
    scatter.plot(size, error, marker, color=color, alpha=0.7, mew=0, label=label)
limit = 1.35 * max(np.array(rows)[:, :2].max() for rows in outcomes.values())
scatter.plot([0, limit], [0, limit], color="black", linestyle=":")
scatter.set_xlim(0, limit)
scatter.set_ylim(0, limit)
scatter.set_xlabel("effective radius of the region")
scatter.set_ylabel("distance of the mean to the target")
scatter.set_title("Error and what the region claims")
scatter.legend(loc="upper left")

if fig.canvas.required_interactive_framework:  # without a window there is nothing to show it in
    plt.show()
