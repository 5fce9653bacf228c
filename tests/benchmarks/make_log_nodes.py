"""Make the constants of ``skdpfrechet/_kernels/log_nodes.txt``: minimax rational logarithms.

    python tests/benchmarks/make_log_nodes.py > skdpfrechet/_kernels/log_nodes.txt

For each number of poles m the reach ℓ is the largest for which

    θ ≈ Σ_j a_j tanh((θ - t_j) / 2),   |θ| ≤ ℓ,   poles and weights symmetric under t -> -t

meets the accuracy. Zolotarev's elliptic functions give the first poles (AAA finds the same ones
until rounding stops it), Remez exchange makes the error equioscillate, with residuals in extended
precision. Needs a long double of 64 bits or more.
"""

import itertools
from math import floor

import numpy as np
from scipy.special import ellipj, ellipkm1

from skdpfrechet._kernels._log_nodes import allowed_error

LARGEST_REACH = 7.0
SMALLEST_REACH = 0.02  # below, rounding of the constants shows


def tanh_sum(theta, a, t):
    """Sum over symmetric pairs; a pole at t = 0 is its own mirror image and counts once."""
    weights = np.where(t > 0, a, a / 2)
    return (np.tanh((theta[:, None] - t) / 2) + np.tanh((theta[:, None] + t) / 2)) @ weights


def jacobian(theta, a, t):
    weights = np.where(t > 0, a, a / 2)
    left, right = np.tanh((theta[:, None] - t) / 2), np.tanh((theta[:, None] + t) / 2)
    by_weight = (left + right) * np.where(t > 0, 1.0, 0.5)
    by_pole = weights * (left**2 - right**2) / 2
    return np.concatenate([by_weight, by_pole[:, t > 0]], axis=1)


def first_guess(m, reach):
    """Zolotarev's poles for [exp(-reach), exp(reach)]; Gauss-Newton moves them to least squares."""
    complement = -np.expm1(-2 * reach)
    u = (2 * np.arange(m) + 1) / (2 * m) * ellipkm1(np.exp(-2 * reach))
    sn, cn, _, _ = ellipj(u, complement)
    logs = 2 * np.log(sn / cn) - reach
    t = ((logs - logs[::-1]) / 2)[m // 2 :].astype(np.longdouble)
    if m % 2:
        t[0] = 0
    theta = np.longdouble(reach) * np.sin(np.linspace(0, np.pi / 2, 20 * m).astype(np.longdouble))
    basis = jacobian(theta, np.ones(t.size), t)[:, : t.size].astype(float)
    a = np.linalg.lstsq(basis, theta.astype(float), rcond=1e-17)[0].astype(np.longdouble)
    for _ in range(8):
        a, t = moved(a, t, solve(jacobian(theta, a, t), theta - tanh_sum(theta, a, t)))
    return a, t


def solve(system, residual):
    """Least squares in float64 with iterative refinement in extended precision."""
    scale = np.abs(system).max(axis=0)
    scaled = (system / scale).astype(float)
    change = np.zeros(system.shape[1], dtype=np.longdouble)
    for _ in range(4):
        left = (residual - system @ (change / scale)).astype(float)
        change += np.linalg.lstsq(scaled, left, rcond=1e-17)[0]
    return change / scale


def moved(a, t, change):
    """Take the step, shortened so that no pole moves by more than a tenth of its distance to 0."""
    new_t = t.copy()
    free = t > 0
    step = change[a.size :]
    shorten = min(1.0, float((0.1 / np.maximum(np.abs(step) / t[free], 1e-9)).min(initial=1.0)))
    new_t[free] += shorten * step
    return a + shorten * change[: a.size], new_t


def remez(m, reach):
    """Equioscillate on m + 1 points of [0, reach]; return the largest error and the parameters."""
    a, t = first_guess(m, reach)
    angles = np.linspace(0, np.pi / 2, 60 * m + 1).astype(np.longdouble)
    grid = np.longdouble(reach) * np.sin(angles)
    best = (np.inf, a, t)
    for _ in range(30):
        error = grid - tanh_sum(grid, a, t)
        best = min(best, (np.abs(error).max(), a, t), key=lambda found: found[0])
        extrema = alternating_extrema(error, m + 1)
        if extrema is None:
            break
        heights = np.abs(error[extrema])
        if heights.max() < 1.01 * heights.min():
            break
        # Linearised: error(new) = sign * level at the extrema.
        system = jacobian(grid[extrema], a, t)
        level = np.sign(error[extrema])[:, None] * heights.mean()
        a, t = moved(a, t, solve(np.hstack([system, level]), error[extrema])[:m])
    return best


def alternating_extrema(error, count):
    """Index of the largest error in each run of one sign; None unless there are `count` runs."""
    runs = np.flatnonzero(np.diff(np.sign(error[1:]))) + 2
    pieces = np.split(np.arange(1, error.size), runs - 1)
    if len(pieces) != count:
        return None
    return np.array([piece[np.abs(error[piece]).argmax()] for piece in pieces])


def largest_reach(m, accuracy, previous):
    """Bisect between the reach of m - 1 poles and half a unit more: a pole adds less than that."""
    low, high, best = previous, min(previous + 0.5, LARGEST_REACH), None
    reach = high
    while high - low > 2e-3:
        error, a, t = remez(m, reach)
        if error <= 0.97 * allowed_error(accuracy, reach):
            low, best = reach, (a, t)
        else:
            high = reach
        reach = (low + high) / 2
    return low, best


def main():
    print("# accuracy, reach, then pairs: weight a and pole t >= 0; made by make_log_nodes.py")
    for accuracy in ("fast", "full"):
        reach = 0.0
        for m in itertools.count(2):
            reach, best = largest_reach(m, accuracy, reach)
            if best is not None and reach >= SMALLEST_REACH:
                rounded = floor(reach * 1e4) / 1e4
                print(
                    accuracy,
                    rounded,
                    *(repr(float(x)) for pair in zip(*best, strict=True) for x in pair),
                )
            if reach >= LARGEST_REACH:
                break


if __name__ == "__main__":
    main()
