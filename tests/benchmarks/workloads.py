"""Data sets of the benchmarks. numpy alone, so that rivals in other environments make the same."""

import numpy as np

_AT_ONCE = 1_000_000  # numbers per array while data are made: little next to the data


def covariances(replications, n, p, seed=0):
    """Matrices ``A exp(G) Aᵀ``, shape (replications, n, p, p).

    G is symmetric Gaussian with eigenvalues of standard deviation .7 (for large p) and a skewed
    trace, so that no mean is known in advance; A Aᵀ has condition number 30.
    """
    rng = np.random.default_rng(seed)
    left, right = (np.linalg.qr(rng.standard_normal((p, p)))[0] for _ in range(2))
    a = left * 30 ** np.linspace(0, 0.5, p) @ right
    out = np.empty((replications, n, p, p))
    step = max(1, _AT_ONCE // (p * p))
    for sample in out:
        for first in range(0, n, step):
            count = min(step, n - first)
            g = rng.standard_normal((count, p, p)) * 0.7 / np.sqrt(2 * (p + 1))
            w, q = np.linalg.eigh(g + g.swapaxes(1, 2))
            w += 0.3 * (rng.lognormal(sigma=0.5, size=(count, 1)) - np.exp(0.125))
            x = a @ (q * np.exp(w)[:, None, :]) @ q.swapaxes(1, 2) @ a.T
            sample[first : first + count] = (x + x.swapaxes(1, 2)) / 2
    return out


def directions(replications, n, d, seed=0):
    """Unit vectors in R^{d+1}, shape (replications, n, d + 1), unevenly around the last axis.

    Tangent vectors there are Gaussian with standard deviations from .5 to 1.5 times .6/√d, shifted
    along the diagonal by exponential variables, and at most 1.4 long.
    """
    rng = np.random.default_rng(seed)
    shape = (replications, n, d)
    v = 0.6 / np.sqrt(d) * rng.standard_normal(shape) * np.linspace(0.5, 1.5, d)
    v += 0.12 * (rng.exponential(size=(replications, n, 1)) - 1)
    length = np.linalg.norm(v, axis=-1, keepdims=True)
    angle = np.minimum(length, 1.4)
    x = np.concatenate([np.sin(angle) * v / length, np.cos(angle)], axis=-1)
    return x / np.linalg.norm(x, axis=-1, keepdims=True)
