"""What a private fit costs beyond the bare Fréchet mean of the same records.

``python -m tests.benchmarks.fit_overhead`` interleaves the contestants in one process and prints
medians in milliseconds and, for each, the ratio to the bare mean.
"""

from time import perf_counter

import numpy as np

from skdpfrechet import DPFrechetMean, DPFrechetVariance
from skdpfrechet._solvers import frechet_mean
from skdpfrechet.manifolds import SPDAffineInvariant

RADIUS = 3.0


def contestants(X):
    """Return what is timed on the same records, by name."""
    n, p = X.shape[:2]
    tolerance = max(1e-4 * 2 * RADIUS / n, 1e-9 * RADIUS)  # as the fit asks for
    fitted = DPFrechetMean("spd", radius=RADIUS).fit(X)
    return {
        "bare mean": lambda: frechet_mean(SPDAffineInvariant(p), X, np.eye(p), tolerance=tolerance),
        "fit of the mean": lambda: DPFrechetMean("spd", radius=RADIUS).fit(X),
        "its region": lambda: type(fitted._inference).region.func(fitted._inference),
        "fit of the variance": lambda: DPFrechetVariance("spd", radius=RADIUS).fit(X),
    }


def main(rounds: int = 9) -> None:
    rng = np.random.default_rng(0)
    for n, p in ((600, 2), (10_000, 5)):
        factor = rng.standard_normal((n, p, 4 * p))
        runs = contestants(factor @ factor.swapaxes(1, 2) / (4 * p))
        seconds = {name: [] for name in runs}
        for _ in range(rounds):
            for name, run in runs.items():
                start = perf_counter()
                run()
                seconds[name].append(perf_counter() - start)
        bare = np.median(seconds["bare mean"])
        print(f"{n:,} matrices {p} x {p}")
        for name, times in seconds.items():
            median = np.median(times)
            print(f"  {name:<20} {1e3 * median:8.1f} ms   x {median / bare:.2f}")


if __name__ == "__main__":
    main()
