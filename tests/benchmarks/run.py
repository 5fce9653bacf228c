"""Speed of the Fréchet mean against pyriemann and geomstats, and of what a private fit adds.

``python -m tests.benchmarks.run --output docs/benchmarks.md`` runs every contestant of a row in
turn, several times over, prints medians and ratios, and writes the page. geomstats needs an older
numpy: the program makes an environment for it and talks to a process there.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import pi
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from skdpfrechet import DPFrechetMean, _kernels
from skdpfrechet._solvers import frechet_mean
from skdpfrechet.manifolds import (
    Manifold,
    SPDAffineInvariant,
    SPDLogCholesky,
    SPDLogEuclidean,
    Sphere,
)
from tests.benchmarks.fit_timing import fit_table, parts_table
from tests.benchmarks.secure_timing import secure_table
from tests.benchmarks.turns import clock, medians
from tests.benchmarks.workloads import covariances, directions

TOLERANCE = 1e-8
WORKER = Path(__file__).with_name("geomstats_worker.py")


@dataclass(frozen=True)
class Row:
    """One line of the table: a space, the size of the data, and what was aimed at."""

    space: str
    replications: int
    n: int
    size: int
    goal: str
    geomstats: bool = True

    @property
    def name(self) -> str:
        space = f"S^{self.size}" if self.space == "sphere" else f"SPD({self.size})"
        many = f"{self.replications:,} × " if self.replications > 1 else ""
        return f"{space}, {many}n = {self.n:,}"

    @property
    def manifold(self) -> Manifold:
        if self.space == "sphere":
            return Sphere(self.size)
        return SPDAffineInvariant(self.size)

    def data(self) -> np.ndarray:
        make = directions if self.space == "sphere" else covariances
        return make(self.replications, self.n, self.size)


ROWS = (
    Row("spd", 1, 600, 2, "40 × pyriemann"),
    Row("spd", 1, 1_000, 5, "120 × pyriemann"),
    Row("spd", 1, 10_000, 5, "200 × pyriemann"),
    Row("spd", 1, 100_000, 3, "300 × pyriemann"),
    Row("spd", 1, 1_000, 16, "60 × pyriemann"),
    Row("spd", 1, 1_000, 32, "60 × pyriemann"),
    Row("spd", 1, 300, 64, "25 × pyriemann"),
    Row("spd", 1, 1_000_000, 5, "200 × pyriemann", geomstats=False),
    Row("spd", 1_000, 600, 2, "100 × pyriemann", geomstats=False),
    Row("sphere", 1, 600, 2, "80 × geomstats"),
    Row("sphere", 1, 100_000, 2, "80 × geomstats"),
    Row("sphere", 1, 10_000, 99, "100 × geomstats"),
    Row("sphere", 1_000, 600, 2, "130 × geomstats"),
)


class Geomstats:
    """A process with geomstats in an environment made for it."""

    def __init__(self, folder: str) -> None:
        venv.create(folder, with_pip=True)
        python = Path(folder) / ("Scripts" if os.name == "nt" else "bin") / "python"
        install = [python, "-m", "pip", "install", "-q", "geomstats==2.8.0", "numpy<2.4"]
        subprocess.run(install, check=True, stderr=subprocess.DEVNULL)
        self.process = subprocess.Popen(
            [python, WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def seconds(self, row: Row) -> float:
        """Return the time of one run, data made before."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        request = {"space": row.space, "replications": row.replications}
        request |= {"n": row.n, "size": row.size}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        assert answer["residual"] <= TOLERANCE, answer
        return float(answer["seconds"])


def means(row: Row, geomstats: Geomstats | None, budget: float) -> dict[str, float]:
    """Return the median seconds of all contestants on one row, each certified to `TOLERANCE`."""
    X, manifold = row.data(), row.manifold
    start = np.eye(row.size + 1)[-1] if row.space == "sphere" else np.eye(row.size)
    radius = 0.49 * pi if row.space == "sphere" else np.inf

    def ours(kernels: str, threads: int) -> Callable[[], object]:
        def run() -> object:
            with _kernels.kernels(kernels), _kernels.threads(threads):
                return frechet_mean(manifold, X, start, radius=radius, tolerance=TOLERANCE)

        return run

    contestants = {
        "1 thread": clock(ours("numba", 1)),
        "2 threads": clock(ours("numba", 2)),
    }
    if X.size < 2e7:
        contestants["numpy"] = clock(ours("numpy", 1))
    if row.space == "spd":
        from pyriemann.geometry.mean import mean_riemann

        def pyriemann() -> None:
            for sample in X:
                mean_riemann(sample, tol=TOLERANCE, maxiter=100)

        contestants["pyriemann"] = clock(pyriemann)
    if geomstats is not None and row.geomstats:
        contestants["geomstats"] = lambda: geomstats.seconds(row)
    with threadpool_limits(1):
        return medians(contestants, budget)


def mean_table(geomstats: Geomstats | None, budget: float) -> list[str]:
    lines = [
        "| data | pyriemann ms | geomstats ms | numpy ms | 1 thread ms | 2 threads ms "
        "| × pyriemann, 1 / 2 threads | × geomstats, 1 / 2 threads | goal |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in ROWS:
        seconds = means(row, geomstats, budget)
        peers = [_ratios(seconds, peer) for peer in ("pyriemann", "geomstats")]
        times = [
            _milliseconds(seconds.get(name))
            for name in ("pyriemann", "geomstats", "numpy", "1 thread", "2 threads")
        ]
        lines.append(f"| {' | '.join([row.name, *times, *peers, row.goal])} |")
        print(lines[-1], flush=True)
    return lines


def pass_table(budget: float) -> list[str]:
    """What one pass over packed SPD matrices costs: the limit of every mean that takes some."""
    from skdpfrechet._kernels import _spd

    lines = [
        "| p | n | eigh (numpy), ns per matrix | pass, ns per matrix | 2 threads | eigh / pass |",
        "|---|---|---|---|---|---|",
    ]
    for p, n in ((2, 100_000), (3, 100_000), (5, 100_000), (8, 20_000), (16, 4_000), (32, 1_000)):
        X = covariances(1, n, p)
        packed, whitener = _spd.pack(X), np.eye(p)[None] / 3
        contestants = {"eigh": clock(partial(np.linalg.eigh, X[0]))}
        for jobs in (1, 2):
            run = partial(_spd.log_sums, packed, whitener, "full", jobs)
            contestants[str(jobs)] = clock(run)
        with threadpool_limits(1):
            s = {name: 1e9 * value / n for name, value in medians(contestants, budget).items()}
        lines.append(
            f"| {p} | {n:,} | {s['eigh']:,.0f} | {s['1']:,.0f} | × {s['1'] / s['2']:.2f} "
            f"| {s['eigh'] / s['1']:.0f} |"
        )
        print(lines[-1], flush=True)
    return lines


def sphere_pass_table(budget: float) -> list[str]:
    """What one pass over points costs, next to reading them, and what a mean costs without any."""
    from skdpfrechet._kernels import _sphere

    lines = [
        "| S^d | n | read once (numpy's sum) ms | pass ms | 2 threads | mean of 16 points ms |",
        "|---|---|---|---|---|---|",
    ]
    for d, n in ((2, 100_000), (99, 10_000)):
        X, base = directions(1, n, d), np.eye(d + 1)[-1:]
        packed, few = _sphere.pack(X), directions(1, 16, d)[0]
        contestants = {"read": clock(X.sum), "few": clock(partial(_certified, Sphere(d), few))}
        for jobs in (1, 2):
            contestants[str(jobs)] = clock(partial(_sphere.log_sums, packed, base, d < 10, jobs))
        with threadpool_limits(1):
            s = medians(contestants, budget)
        lines.append(
            f"| {d} | {n:,} | {_milliseconds(s['read'])} | {_milliseconds(s['1'])} "
            f"| × {s['1'] / s['2']:.2f} | {_milliseconds(s['few'])} |"
        )
        print(lines[-1], flush=True)
    return lines


def _certified(manifold: Manifold, X: np.ndarray) -> np.ndarray:
    start = np.eye(X.shape[-1])[-1]
    return frechet_mean(manifold, X, start, radius=1.45, tolerance=TOLERANCE)


def flat_table(budget: float) -> list[str]:
    """Log-Euclidean and log-Cholesky means: one pass."""
    from pyriemann.geometry.mean import mean_logchol, mean_logeuclid

    lines = [
        "| mean | data | pyriemann ms | 1 thread ms | 2 threads ms | × pyriemann |",
        "|---|---|---|---|---|---|",
    ]
    for p, n in ((2, 10_000), (5, 10_000), (16, 1_000), (32, 1_000)):
        X = covariances(1, n, p)[0]
        for name, manifold, peer in (
            ("log-Euclidean", SPDLogEuclidean(p), mean_logeuclid),
            ("log-Cholesky", SPDLogCholesky(p), mean_logchol),
        ):
            local = manifold.localize(np.eye(p))

            def ours(threads: int, local=local, X=X) -> Callable[[], object]:
                def run() -> object:
                    with _kernels.threads(threads):
                        return local.from_model(local.to_model(X).mean(axis=0))

                return run

            contestants = {
                "1": clock(ours(1)),
                "2": clock(ours(2)),
                "peer": clock(lambda peer=peer, X=X: peer(X)),
            }
            with threadpool_limits(1):
                s = medians(contestants, budget)
            lines.append(
                f"| {name} | SPD({p}), n = {n:,} | {_milliseconds(s['peer'])} "
                f"| {_milliseconds(s['1'])} | {_milliseconds(s['2'])} "
                f"| {s['peer'] / s['1']:.1f} / {s['peer'] / s['2']:.1f} |"
            )
            print(lines[-1], flush=True)
    return lines


def region_table(budget: float) -> list[str]:
    """The lazy region, nearly all of it the bootstrap of the critical value."""
    lines = ["| space | dimension | region ms |", "|---|---|---|"]
    for p in (2, 3, 4, 5, 8, 10):
        X = covariances(1, 500, p)[0]
        fit = DPFrechetMean("spd", radius=2.5 * p**0.5, center=5 * np.eye(p)).fit(X)
        inference = fit._inference
        with threadpool_limits(1):
            s = medians({"region": clock(lambda i=inference: type(i).region.func(i))}, budget)
        lines.append(f"| SPD({p}) | {p * (p + 1) // 2} | {_milliseconds(s['region'])} |")
        print(lines[-1], flush=True)
    return lines


def start_up_table(rounds: int = 7) -> list[str]:
    """Import time, first use of a kernel with an empty cache and with a full one, peak memory."""
    imports = {
        "import scikit-learn and pyriemann's means": (
            "import sklearn.base, sklearn.utils.validation, pyriemann.geometry.mean"
        ),
        "import skdpfrechet": "import skdpfrechet",
    }
    seconds: dict[str, list[float]] = {name: [] for name in imports}
    for _ in range(rounds):
        for name, code in imports.items():
            seconds[name].append(_python(_TIMED.format(code)))
    base, own = (float(np.median(times)) for times in seconds.values())
    lines = ["| what | figure |", "|---|---|"]
    lines.append(f"| import skdpfrechet / import scikit-learn and pyriemann | × {own / base:.2f} |")
    with tempfile.TemporaryDirectory() as folder:
        for name in ("spd", "sphere"):
            code = _FIRST_FIT[name]
            cold = _python(code, NUMBA_CACHE_DIR=str(Path(folder) / name))
            warm = _python(code, NUMBA_CACHE_DIR=str(Path(folder) / name))
            numpy = _python(code, SKDPFRECHET_KERNELS="numpy")
            lines.append(
                f"| first fit, {name}: empty cache / full cache / numpy alone "
                f"| {cold:.1f} / {warm:.2f} / {numpy:.2f} s |"
            )
    grown = _python(_PEAK)
    lines.append(f"| peak memory of a fit beyond the input (10⁶ matrices 5 × 5) | × {grown:.2f} |")
    for line in lines[2:]:
        print(line, flush=True)
    return lines


_TIMED = "import time; t = time.perf_counter(); {}; print(time.perf_counter() - t)"
_FIRST_FIT = {
    "spd": (
        "import time, numpy as np; from skdpfrechet import DPFrechetMean\n"
        "X = np.exp(np.random.default_rng(0).normal(size=(200, 3)))[:, :, None] * np.eye(3)\n"
        "t = time.perf_counter(); DPFrechetMean('spd', radius=3.0).fit(X)\n"
        "print(time.perf_counter() - t)"
    ),
    "sphere": (
        "import time, numpy as np; from skdpfrechet import DPFrechetMean\n"
        "X = np.random.default_rng(0).normal(size=(200, 3)) * 0.2 + [0, 0, 1]\n"
        "X /= np.linalg.norm(X, axis=1, keepdims=True)\n"
        "t = time.perf_counter(); DPFrechetMean('sphere', radius=1.0, center=[0, 0, 1.0]).fit(X)\n"
        "print(time.perf_counter() - t)"
    ),
}
_PEAK = """
import numpy as np
from skdpfrechet import DPFrechetMean
from tests.benchmarks.workloads import covariances
def memory(field):
    with open("/proc/self/status") as status:
        return next(1024 * int(line.split()[1]) for line in status if line.startswith(field))
public = {"radius": 6.0, "center": 5 * np.eye(5)}
DPFrechetMean("spd", **public).fit(covariances(1, 1000, 5)[0])
X = covariances(1, 1_000_000, 5)[0]
before = memory("VmRSS")
DPFrechetMean("spd", **public).fit(X)
print((memory("VmHWM") - before) / X.nbytes)
"""


def _python(code: str, **environment: str) -> float:
    """Return the number that a fresh interpreter prints."""
    run = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | environment,
        check=True,
        capture_output=True,
        text=True,
    )
    return float(run.stdout)


def _milliseconds(seconds: float | None) -> str:
    if seconds is None:
        return "–"
    return f"{1e3 * seconds:,.3g}" if seconds < 1 else f"{1e3 * seconds:,.0f}"


def _ratios(seconds: dict[str, float], peer: str) -> str:
    if peer not in seconds:
        return "–"
    return " / ".join(f"{seconds[peer] / seconds[name]:.0f}" for name in ("1 thread", "2 threads"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget", type=float, default=5.0, help="seconds per line")
    parser.add_argument("--without-geomstats", action="store_true")
    parser.add_argument("--output", type=Path, default=None)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        geomstats = None if options.without_geomstats else Geomstats(folder)
        page = [
            "# Benchmarks",
            "",
            "Medians of contestants that take turns in one run; only the ratios carry over to "
            "other machines. BLAS is held to one thread. Written by",
            "",
            "```",
            f"python -m tests.benchmarks.run --budget {options.budget:g} "
            "--output docs/benchmarks.md",
            "```",
            "",
            "## Fréchet means",
            "",
            "Every contestant goes on until its whitened gradient is below 1e-8, and starts from "
            "the records as they are: packing is counted. *numpy* is this library without numba.",
            "",
            *mean_table(geomstats, options.budget),
            "",
            "A mean takes 4 to 7 passes and the packing. What a pass costs, and how much faster two"
            " threads do it here, bounds every row; where a goal is missed this is the limit.",
            "",
            *pass_table(options.budget),
            "",
            *sphere_pass_table(options.budget),
            "",
            "## Flat metrics",
            "",
            *flat_table(options.budget),
            "",
            "## A private fit",
            "",
            "Validation, projection to the ball, the mean with its certificate, the second moment "
            "(or the squared distances), noise. The region is computed when it is first asked for. "
            "In brackets: over the bare mean to 1e-8; a fit is content with 1e-4 of what one "
            "record can move. The goal is 1.5 from 10⁴ records on.",
            "",
            *fit_table(options.budget),
            "",
            "Where the goal is missed, the parts of a fit say why, one thread, over the bare mean. "
            "The second moment is taken at the released mean, a pass of its own. *rest* is a fit "
            "of 16 records with as much noise: what does not depend on their number. "
            "`python -m tests.benchmarks.fit_timing` prints these two tables alone.",
            "",
            *parts_table(options.budget),
            "",
            *region_table(options.budget / 5),
            "",
            "## Float-safe noise",
            "",
            "What exact noise on a grid adds to a fit, in processor time on one thread; on spheres "
            "with the projected Gaussian.",
            "",
            *secure_table(options.budget),
            "",
            "## Start and memory",
            "",
            *start_up_table(),
            "",
        ]
    if options.output is not None:
        options.output.write_text("\n".join(page), encoding="utf-8")


if __name__ == "__main__":
    main()
