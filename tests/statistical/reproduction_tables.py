"""Tables 1 to 4 of the paper: designs, printed figures and simulation."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from math import inf

import numpy as np
from joblib import Parallel, delayed

from tests.statistical.batched_fits import Samples, fit_means, fit_variances
from tests.statistical.coverage_study import CENTRED, Design

N = 600
BUDGETS = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 2.5, inf)
RECIPES = ("paper", "sharp")
CHUNK = 25  # data sets at a time: 1 MB of records, and intermediate arrays of about as much each


@dataclass(frozen=True, eq=False)
class Table:
    """One table of the paper: a design, what is estimated, and the errors as printed."""

    number: int
    title: str
    design: Design
    statistic: str
    unit: str
    printed: tuple[float, ...]  # in `unit`, in the order of BUDGETS

    @property
    def scale(self) -> float:
        return float(self.unit)


TABLES = {
    1: Table(
        number=1,
        title="mean on S²",
        design=CENTRED["S²"],
        statistic="mean",
        unit="1e-4",
        printed=(183, 126, 116, 106, 106, 107, 105, 105, 103, 103),
    ),
    2: Table(
        number=2,
        title="variance on S²",
        design=CENTRED["S²"],
        statistic="variance",
        unit="1e-4",
        printed=(137, 73.9, 51.1, 31.8, 25.6, 21.5, 17.6, 16.2, 16.4, 14.6),
    ),
    3: Table(
        number=3,
        title="mean on SPD(2)",
        design=CENTRED["SPD(2)"],
        statistic="mean",
        unit="1e-3",
        printed=(144, 78.1, 59.9, 46.6, 42.1, 40.1, 39.4, 38.2, 38, 37.7),
    ),
    4: Table(
        number=4,
        title="variance on SPD(2)",
        design=CENTRED["SPD(2)"],
        statistic="variance",
        unit="1e-3",
        printed=(207, 105, 71.6, 46.4, 34.9, 29.2, 22.9, 21.4, 20.8, 19.7),
    ),
}


@dataclass(frozen=True, eq=False)
class Cell:
    """Absolute error, coverage and size (volume or length) in each replication."""

    error: np.ndarray
    covered: np.ndarray
    size: np.ndarray


Cells = dict[tuple[str, float], Cell]


def simulate(table: Table, replications: int, seed: np.random.SeedSequence) -> Cells:
    """All budgets and recipes on the same data sets, whose means are solved once."""
    rng = np.random.default_rng(seed)
    design = table.design
    X = design.draw(replications * N, rng)
    X = X.reshape(replications, N, *design.manifold.point_shape)
    samples = Samples.make(design.manifold, design.center, design.radius, X)
    cells = {}
    for recipe in RECIPES:
        for mu in BUDGETS:
            if table.statistic == "mean":
                means = fit_means(samples, mu, recipe, rng)
                truth = design.mean
                cell = Cell(means.distance(truth), means.covers(truth), means.volume())
            else:
                fits, true = fit_variances(samples, mu, recipe, rng), design.variance
                covered = (fits.low <= true) & (true <= fits.high)
                cell = Cell(np.abs(fits.value - true), covered, fits.high - fits.low)
            cells[recipe, mu] = cell
    return cells


def study(table: Table, replications: int, n_jobs: int = 1, bar: bool = False) -> Cells:
    """Simulate in chunks; the result does not depend on `n_jobs`."""
    count = -(-replications // CHUNK)
    sizes = [len(chunk) for chunk in np.array_split(np.arange(replications), count)]
    seeds = np.random.SeedSequence([2605, 14762, table.number]).spawn(count)
    chunks = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(simulate)(table, size, seed) for size, seed in zip(sizes, seeds, strict=True)
    )
    if bar:
        chunks = progress(chunks, count, f"Table {table.number}")
    chunks = list(chunks)
    return {key: _joined([chunk[key] for chunk in chunks]) for key in chunks[0]}


def _joined(cells: list[Cell]) -> Cell:
    return Cell(*(np.concatenate([getattr(cell, f.name) for cell in cells]) for f in fields(Cell)))


def progress(parts: Iterable, total: int, label: str) -> Iterator:
    """Yield the parts and keep a bar on stderr."""
    start = time.perf_counter()
    for done, part in enumerate(parts, 1):
        filled = 30 * done // total
        bar = "#" * filled + "." * (30 - filled)
        seconds = time.perf_counter() - start
        if filled > 30 * (done - 1) // total:
            sys.stderr.write(f"\r{label:12} [{bar}] {done}/{total}  {seconds:.0f} s")
            sys.stderr.flush()
        yield part
    sys.stderr.write("\n")
