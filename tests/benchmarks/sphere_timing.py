"""Time of the compiled sphere kernels next to numpy: run as a script.

Nanoseconds per point of one pass, then whole means: a thousand replications on S² by Newton's
method and one large sample on S⁹⁹ by scaled gradient steps. Other load moves all numbers of a run
together: compare the columns, not two runs.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

import numpy as np

from skdpfrechet._kernels import _sphere as kernels
from skdpfrechet.manifolds import Sphere

TOLERANCE = 1e-8
REPEATS = 7


def fastest(function: Callable[..., object], *args: object) -> float:
    function(*args)
    times = []
    for _ in range(REPEATS):
        start = perf_counter()
        function(*args)
        times.append(perf_counter() - start)
    return min(times)


def sample(replications: int, count: int, size: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    sphere = Sphere(size - 1)
    middle = rng.standard_normal((replications, 1, size))
    middle /= np.linalg.norm(middle, axis=-1, keepdims=True)
    # Unequal spreads and a long tail: the arithmetic mean is not the mean, steps are needed.
    c = rng.standard_normal((replications, count, size - 1)) * np.linspace(0.3, 0.9, size - 1)
    c += 0.3 * (rng.exponential(size=(replications, count, 1)) - 1)
    c /= np.sqrt(size - 1)
    return sphere.exp_coords(middle, c)


def arithmetic_mean(points: np.ndarray) -> np.ndarray:
    # A product with ones: several times faster than np.mean over an axis in the middle.
    total = (np.ones((1, points.shape[1])) @ points)[:, 0]
    return total / np.linalg.norm(total, axis=-1, keepdims=True)


def follow(base: np.ndarray, step: np.ndarray) -> np.ndarray:
    length = np.linalg.norm(step, axis=-1, keepdims=True)
    moved = np.cos(length) * base + np.sinc(length / np.pi) * step
    return moved / np.linalg.norm(moved, axis=-1, keepdims=True)


def newton_means(points: np.ndarray, n_jobs: int) -> tuple[np.ndarray, int]:
    """Return means of the replications and the number of passes, the last of which verifies."""
    packed = kernels.pack(points, n_jobs)
    base, passes = arithmetic_mean(points), 0
    while True:
        sums = kernels.log_sums(packed, base, True, n_jobs)
        gradient, passes = sums.log / packed.count, passes + 1
        if (gradient * gradient).sum(axis=-1).max() <= TOLERANCE**2:
            return base, passes
        matrix = sums.hessian + base[:, :, None] * base[:, None, :]
        base = follow(base, np.linalg.solve(matrix, gradient[..., None])[..., 0])


def gradient_means(points: np.ndarray, n_jobs: int) -> tuple[np.ndarray, int]:
    """Return the same by steps along the gradient, over the average curvature of the objective."""
    packed = kernels.pack(points, n_jobs)
    base, passes = arithmetic_mean(points), 0
    dim = packed.size - 1
    while True:
        sums = kernels.log_sums(packed, base, False, n_jobs)
        gradient, passes = sums.log / packed.count, passes + 1
        if (gradient * gradient).sum(axis=-1).max() <= TOLERANCE**2:
            return base, passes
        curvature = (1 + (dim - 1) * sums.cotangent / packed.count) / dim
        base = follow(base, gradient / curvature[:, None])


def numpy_pass(points: np.ndarray, base: np.ndarray, hessian: bool) -> tuple[np.ndarray, ...]:
    sphere = Sphere(points.shape[-1] - 1)
    c = sphere.log_coords(base[:, None], points)
    values = c.sum(axis=1), (c * c).sum(axis=(1, 2))
    return (*values, sphere.mean_squared_distance_hessian(base, c)) if hessian else values


def main() -> None:
    print("ns per point        pack   pass  distances  moment   numpy pass")
    for size, count in ((3, 600), (3, 100_000), (11, 20_000), (100, 10_000)):
        points = sample(1, count, size)
        base = arithmetic_mean(points)
        packed = kernels.pack(points)
        sphere = Sphere(size - 1)
        frame = np.swapaxes(sphere.from_coords(base[:, None], np.eye(size - 1)), -1, -2)
        hessian = size < 20
        cells = (
            fastest(kernels.pack, points),
            fastest(kernels.log_sums, packed, base, hessian),
            fastest(kernels.squared_distances, packed, base),
            fastest(kernels.clipped_moment, packed, base, frame, 1.0),
            fastest(numpy_pass, points, base, hessian),
        )
        shown = "  ".join(f"{1e9 * cell / count:7.1f}" for cell in cells)
        print(f"D = {size:3}, n = {count:6}  {shown}")

    print("whole means: ms on one thread, on two, passes")
    for name, points, solve in (
        ("1,000 of n = 600 on S²", sample(1000, 600, 3), newton_means),
        ("n = 600 on S²", sample(1, 600, 3), newton_means),
        ("n = 10,000 on S⁹⁹", sample(1, 10_000, 100), gradient_means),
    ):
        one, two = fastest(solve, points, 1), fastest(solve, points, 2)
        print(f"{name:24} {1e3 * one:7.2f}  {1e3 * two:7.2f}  {solve(points, 1)[1]}")


if __name__ == "__main__":
    main()
