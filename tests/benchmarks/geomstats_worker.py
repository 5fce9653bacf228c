"""Fréchet means by geomstats, in an environment of its own: reads requests, writes seconds.

A request is a line of JSON with the space, the size of the data and the number of runs; the answer
holds the seconds of each run, data made beforehand, and the largest norm of the gradient.
"""

import json
import sys
from pathlib import Path
from time import perf_counter

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from workloads import covariances, directions

TOLERANCE = 1e-8
TURN = 5e-3


def spd_residual(mean, X):
    w, q = np.linalg.eigh(mean)
    whitener = (q / np.sqrt(w)) @ q.T
    w, q = np.linalg.eigh(whitener @ X @ whitener)
    return np.linalg.norm(((q * np.log(w)[:, None, :]) @ q.swapaxes(1, 2)).mean(axis=0))


def sphere_residual(mean, X):
    cosine = np.clip(X @ mean, -1, 1)
    angle = np.arccos(cosine)
    factor = angle / np.maximum(np.sin(angle), 1e-300)
    return np.linalg.norm((factor[:, None] * (X - cosine[:, None] * mean)).mean(axis=0))


def prepare(request):
    from geomstats.geometry.hypersphere import Hypersphere
    from geomstats.geometry.spd_matrices import SPDMatrices
    from geomstats.learning.frechet_mean import FrechetMean

    sphere = request["space"] == "sphere"
    make, residual = (directions, sphere_residual) if sphere else (covariances, spd_residual)
    data = make(request["replications"], request["n"], request["size"])
    space = Hypersphere(request["size"]) if sphere else SPDMatrices(request["size"])
    estimator = FrechetMean(space)
    # Its `epsilon` is compared to its own norm of the step: tightened until ours is small enough.
    for epsilon in (1e-8, 1e-9, 1e-10, 1e-12, 1e-14, 1e-16, 1e-18):
        estimator.set(epsilon=epsilon, max_iter=200)
        worst = residual(estimator.fit(data[0]).estimate_, data[0])
        if worst <= TOLERANCE:
            break
    return estimator, data, worst


def main():
    prepared = {}
    for line in sys.stdin:
        request = json.loads(line)
        key = json.dumps(request, sort_keys=True)
        if key not in prepared:
            prepared.clear()
            prepared[key] = prepare(request)
        estimator, data, worst = prepared[key]
        runs = 0
        start = perf_counter()
        while runs == 0 or perf_counter() - start < TURN:
            for X in data:
                estimator.fit(X)
            runs += 1
        seconds = (perf_counter() - start) / runs
        print(json.dumps({"seconds": seconds, "residual": float(worst)}), flush=True)


if __name__ == "__main__":
    main()
