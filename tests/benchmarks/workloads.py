"""Data sets of the benchmarks. numpy alone, so that rivals in other environments make the same."""

import numpy as np


def covariances(replications, n, p, seed=0):
    """Wishart matrices with 4 p degrees of freedom, shape (replications, n, p, p)."""
    rng = np.random.default_rng(seed)
    scales = np.exp(np.linspace(0, 1, p))
    out = np.empty((replications, n, p, p))
    step = max(1, 2_000_000 // (4 * p * p))
    for r in range(replications):
        for first in range(0, n, step):
            factor = rng.standard_normal((min(step, n - first), p, 4 * p)) * scales[:, None]
            out[r, first : first + step] = factor @ factor.swapaxes(1, 2) / (4 * p)
    return out


def directions(replications, n, d, seed=0):
    """Unit vectors in R^{d+1} scattered about the last axis, shape (replications, n, d + 1)."""
    rng = np.random.default_rng(seed)
    x = 0.5 / np.sqrt(d) * rng.standard_normal((replications, n, d + 1))
    x[..., -1] += 1
    return x / np.linalg.norm(x, axis=-1, keepdims=True)
