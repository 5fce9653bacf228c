"""Print the time per matrix of the compiled SPD passes next to numpy's eigh.

    OPENBLAS_NUM_THREADS=1 python tests/benchmarks/kernel_timing.py [p ...]

Contestants take turns and each shows its least CPU time, so that other work on the machine
"""

import sys
import time

import numpy as np

from skdpfrechet._kernels import _spd as kernels

SIZES = (2, 3, 5, 8, 16, 32, 64)
REPEATS = 9


def records(n, p, rng):
    """SPD matrices with eigenvalue logs of standard deviation .7 about a common centre."""
    noise = rng.standard_normal((n, p, p))
    w, q = np.linalg.eigh((noise + noise.swapaxes(1, 2)) * (0.7 / np.sqrt(2 * p + 2)))
    center = np.linalg.qr(rng.standard_normal((p, p)))[0] * np.exp(np.linspace(0, 1.7, p))
    points = center @ ((q * np.exp(w)[:, None, :]) @ q.swapaxes(1, 2)) @ center.T
    return (points + points.swapaxes(1, 2)) / 2


def numpy_pass(points, whitener):
    w, q = np.linalg.eigh(whitener @ points @ whitener.T)
    logs = np.log(w)
    return ((q * logs[:, None, :]) @ q.swapaxes(1, 2)).sum(axis=0), (logs**2).sum(axis=1)


def least_times(contestants):
    times = {name: [] for name in contestants}
    for _ in range(REPEATS):
        for name, run in contestants.items():
            run()  # warms the caches: what ran before must not matter
            start = time.process_time()
            run()
            times[name].append(time.process_time() - start)
    return {name: min(values[1:]) for name, values in times.items()}


def contestants(points, whitener):
    p = points.shape[-1]
    packed, w = kernels.pack(points[None]), whitener[None]
    eye, middle = np.eye(p)[None], np.zeros((1, p * (p + 1) // 2))
    return {
        "pack": lambda: kernels.pack(points[None]),
        "fast": lambda: kernels.log_sums(packed, w, "fast", 1),
        "full": lambda: kernels.log_sums(packed, w, "full", 1),
        "distances": lambda: kernels.squared_distances(packed, w, 1),
        "moment": lambda: kernels.clipped_moment(packed, w, eye, middle, 3.0, 1),
        "eigh": lambda: numpy_pass(points, whitener),
    }


def main():
    print("  p      n  ns per matrix")
    for p in map(int, sys.argv[1:] or SIZES):
        n = max(128, min(16384, 8_000_000 // p**3))
        points = records(n, p, np.random.default_rng(p))
        whitener = np.linalg.inv(np.linalg.cholesky(points.mean(axis=0)))
        times = least_times(contestants(points, whitener))
        shown = "  ".join(f"{name} {value / n * 1e9:.0f}" for name, value in times.items())
        print(f"{p:>3} {n:>6}  {shown}  eigh/full {times['eigh'] / times['full']:.1f}", flush=True)


if __name__ == "__main__":
    main()
