"""Level and power of the tests on releases, over simulated data sets.

``python -m tests.statistical.level_study --replications 1000 --output docs/tests.md``
prints one line per design with the Monte Carlo error of every rate, and writes the tables.

A fit costs far more than a test, so every fit serves in several: replication i compares the fits
i, i + 1, ... (cyclically), and the Monte Carlo errors allow for what the replications share.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf, pi, sqrt
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

from skdpfrechet import (
    ConfidenceRegion,
    DPFrechetMean,
    DPFrechetVariance,
    frechet_anova,
    one_sample_test,
    two_sample_test,
    variance_test,
)
from skdpfrechet.inference import VarianceRelease
from tests.statistical.coverage_study import CENTRED, OFF_CENTRE, Design

LEVEL = 0.05
BUDGETS = (0.1, 0.3, 1.0, 2.5, inf)
SHIFTS = (0.025, 0.05, 0.1, 0.2)  # of the radius
RATIOS = (1.1, 1.2, 1.4)  # of the variances


@dataclass(frozen=True)
class Rate:
    """Share of replications that reject, with its Monte Carlo standard error."""

    value: float
    error: float

    @classmethod
    def of(cls, rejected: np.ndarray) -> Rate:
        """Rate of cyclic replications: those one or two apart may share a fit."""
        centred = rejected - rejected.mean()
        variance = sum(
            weight * (centred * np.roll(centred, lag)).mean()
            for lag, weight in ((0, 1), (1, 2), (2, 2))
        )
        return cls(float(rejected.mean()), sqrt(max(variance, 0.0) / len(rejected)))

    def __str__(self) -> str:
        return f"{self.value:.3f} ± {self.error:.3f}"


def fit(
    design: Design, n: int, mu: float, seed: int, what: str = "both"
) -> tuple[ConfidenceRegion | None, VarianceRelease | None]:
    """Return what is released about the mean and the variance of one data set."""
    X = design.draw(n, np.random.default_rng([seed, 0]))
    shared = {
        "manifold": design.manifold,
        "radius": design.radius,
        "center": design.center,
        "mu": mu,
    }
    region = release = None
    if what != "variance":
        region = DPFrechetMean(random_state=2 * seed, **shared).fit(X).confidence_region_
    if what != "mean":
        release = DPFrechetVariance(random_state=2 * seed + 1, **shared).fit(X).release_
    return region, release


def fits(
    design: Design, n: int, mu: float, replications: int, stream: int, n_jobs: int, what: str
) -> list[tuple[ConfidenceRegion | None, VarianceRelease | None]]:
    seeds = np.random.SeedSequence([stream, n, 0 if mu == inf else int(1000 * mu)]).generate_state(
        replications
    )
    return Parallel(n_jobs=n_jobs)(delayed(fit)(design, n, mu, int(seed), what) for seed in seeds)


def rejections(test: Callable, *groups: list, step: int = 1) -> np.ndarray:
    """Return whether the test rejects group 0's fit i, group 1's fit i + 1, ..., cyclically.

    With ``step = len(groups)`` and one list for all groups no two replications share a fit.
    """
    size = len(groups[0])
    return np.array(
        [
            test(*(group[(i + lag) % size] for lag, group in enumerate(groups))).pvalue < LEVEL
            for i in range(0, size - step + 1, step)
        ],
        dtype=float,
    )


def level_rejections(
    design: Design, mu: float, replications: int, n_jobs: int = 1, disjoint: bool = False
) -> dict[str, np.ndarray]:
    """Return the rejections of true hypotheses by every test, n = 600 in each group."""
    stream = int(1000 * design.radius)
    pairs = fits(design, 600, mu, replications, stream, n_jobs, "both")
    regions, releases = ([pair[i] for pair in pairs] for i in (0, 1))
    pair_step, triple_step = (2, 3) if disjoint else (1, 1)
    return {
        "one sample": rejections(lambda region: one_sample_test(region, design.mean), regions),
        "two samples": rejections(two_sample_test, regions, regions, step=pair_step),
        "three samples": rejections(frechet_anova, *[regions] * 3, step=triple_step),
        "variances": rejections(variance_test, releases, releases, step=pair_step),
    }


def level_table(replications: int, n_jobs: int) -> list[str]:
    lines = ["| space | μ | one mean | two means | three means | two variances |", "|---" * 6 + "|"]
    for space, design in CENTRED.items():
        for mu in BUDGETS:
            rates = level_rejections(design, mu, replications, n_jobs).values()
            lines.append(
                f"| {space} | {_budget(mu)} | {' | '.join(str(Rate.of(r)) for r in rates)} |"
            )
            print(lines[-1], flush=True)
    return lines


UNEQUAL = (
    ((600, 0.1), (200, 1.0), (100, inf)),
    ((50, 0.3), (600, 0.3), (600, 0.3)),
    ((100, 0.5), (100, 0.5), (100, 0.5)),
)


def unequal_table(replications: int, n_jobs: int) -> list[str]:
    lines = ["| design | (n, μ) | two means | three means | two variances |", "|---" * 5 + "|"]
    for space, design in OFF_CENTRE.items():
        for sizes in UNEQUAL:
            groups = [
                fits(design, n, mu, replications, stream, n_jobs, "both" if stream < 2 else "mean")
                for stream, (n, mu) in enumerate(sizes)
            ]
            regions = [[pair[0] for pair in group] for group in groups]
            releases = [[pair[1] for pair in group] for group in groups]
            rates = (
                Rate.of(rejections(two_sample_test, *regions[:2])),
                Rate.of(rejections(frechet_anova, *regions)),
                Rate.of(rejections(variance_test, *releases[:2])),
            )
            named = ", ".join(f"({n}, {_budget(mu)})" for n, mu in sizes)
            lines.append(f"| {space} | {named} | {' | '.join(map(str, rates))} |")
            print(lines[-1], flush=True)
    return lines


def power_tables(replications: int, n_jobs: int) -> list[str]:
    """Rates of rejection of two means a distance apart, and of two variances of some ratio."""
    heads = [f"{_budget(mu)}" for mu in BUDGETS[:-1]] + ["not private"]
    lines = []
    for what, effects, name in (
        ("mean", SHIFTS, "distance of the means / r"),
        ("variance", RATIOS, "ratio of the variances"),
    ):
        lines += ["", f"| space | {name} | μ = {' | '.join(heads)} |", "|---" * 7 + "|"]
        for space, base in CENTRED.items():
            start = replace(base, spread=0.6 * base.radius)
            first = {mu: fits(start, 600, mu, replications, 10, n_jobs, what) for mu in BUDGETS}
            for k, effect in enumerate(effects):
                other = _shifted(start, effect) if what == "mean" else _spread(start, effect)
                cells = []
                for mu in BUDGETS:
                    second = fits(other, 600, mu, replications, 11 + k, n_jobs, what)
                    index, test = (0, two_sample_test) if what == "mean" else (1, variance_test)
                    groups = ([pair[index] for pair in group] for group in (first[mu], second))
                    cells.append(f"{rejections(test, *groups).mean():.2f}")
                lines.append(f"| {space} | {effect:g} | {' | '.join(cells)} |")
                print(lines[-1], flush=True)
    return lines


def _shifted(design: Design, shift: float) -> Design:
    step = np.eye(design.manifold.dim)[0] * shift * design.radius
    return replace(design, mean=design.manifold.exp_coords(design.center, step))


def _spread(design: Design, ratio: float) -> Design:
    """On the sphere the ratio holds up to the curvature: within 1%."""
    return replace(design, spread=sqrt(ratio) * design.spread)


def _budget(mu: float) -> str:
    return "∞" if mu == inf else f"{mu:g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--output", type=Path, default=None)
    options = parser.parse_args()
    few = max(options.replications // 4, 1)
    page = [
        "# Level and power of the tests",
        "",
        "Rates of rejection at the nominal level .05; ± is one Monte Carlo standard error. Written "
        "by",
        "",
        "```",
        f"python -m tests.statistical.level_study --replications {options.replications} "
        "--output docs/tests.md",
        "```",
        "",
        "A fit serves in several replications (replication i compares the fits i, i + 1, ...), "
        "and the Monte Carlo errors allow for that.",
        "",
        "## Level in the designs of the paper",
        "",
        f"{options.replications} data sets of n = 600 per line, every group with the same μ. S²: "
        f"uniform in the ball of radius π/8 = {pi / 8:.2f}. SPD(2): tangent vectors uniform in the "
        "Frobenius ball of radius 1.5. μ = ∞ is the test without privacy; its law is that of large "
        "samples (n = 30 in dimension 3 doubles the level).",
        "",
        *level_table(options.replications, options.jobs),
        "",
        "## Level with unequal groups off the centre",
        "",
        f"{few} data sets per group and line. Records within .4 r of a point at distance .6 r from "
        "the public centre. The three pairs (n, μ) are the groups; two means and two variances "
        "compare the first two. The tests are cautious here, as the regions are: the noise in the "
        "second moments is large against what it measures.",
        "",
        *unequal_table(few, options.jobs),
        "",
        "## Power",
        "",
        f"{few} data sets of n = 600 per group; rates have a standard error of at most "
        f"{0.5 / sqrt(few):.2f}. Both populations are uniform in balls of radius .6 r; the first "
        "is centred at the public centre. The second is moved away from it, or has a wider ball.",
        *power_tables(few, options.jobs),
        "",
    ]
    if options.output is not None:
        options.output.write_text("\n".join(page), encoding="utf-8")


if __name__ == "__main__":
    main()
