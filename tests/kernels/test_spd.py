"""The compiled SPD passes against LAPACK's eigendecompositions, record by record."""

import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

pytest.importorskip("numba")

from skdpfrechet._kernels import _spd as kernels
from skdpfrechet._numerics import clip_norm, eigh, from_eigen, vecd

SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 32, 64)
TINY = np.finfo(float).tiny


def rotations(rng, *shape):
    return np.linalg.qr(rng.standard_normal((*shape, shape[-1])))[0]


def records(samples, n, p, rng, spread=0.7):
    """Records W⁻¹ Y W⁻ᵀ with log Y of about `spread`, and W."""
    noise = rng.standard_normal((samples, n, p, p))
    w, q = np.linalg.eigh((noise + noise.swapaxes(-1, -2)) * spread / np.sqrt(2 * p + 2))
    return from_white(np.exp(w), q, rng)


def from_white(w, q, rng):
    samples, p = w.shape[0], w.shape[-1]
    root = np.linalg.cholesky(
        from_eigen(np.exp(rng.uniform(-1, 1, (samples, p))), rotations(rng, samples, p))
    )
    points = root[:, None] @ from_eigen(w, q) @ root[:, None].swapaxes(-1, -2)
    return (points + points.swapaxes(-1, -2)) / 2, np.tril(np.linalg.inv(root))


def reference_logs(points, whitener):
    w = whitener[:, None]
    with np.errstate(invalid="ignore", over="ignore"):
        white = w @ points @ w.swapaxes(-1, -2)
    values, vectors = eigh((white + white.swapaxes(-1, -2)) / 2)
    return from_eigen(np.log(np.maximum(values, TINY)), vectors)


def reference_sums(logs):
    p = logs.shape[-1]
    squares = (logs**2).sum(axis=(-1, -2))
    traces = np.trace(logs, axis1=-2, axis2=-1)
    return logs.sum(axis=1), squares.sum(axis=1), (p * squares - traces**2).sum(axis=1)


def assert_sums(found, logs, accuracy):
    total, squares, spreads = reference_sums(logs)
    scale = np.sqrt(squares * logs.shape[1])[:, None, None]  # bounds Σ ‖log Y‖
    assert np.all(np.abs(found.logs - total) <= accuracy * scale)
    assert_allclose(found.squares, squares, rtol=10 * accuracy)
    slack = 10 * accuracy * logs.shape[-1] * squares.max()
    assert_allclose(found.spreads, spreads, rtol=10 * accuracy, atol=slack)


@pytest.mark.parametrize("p", SIZES)
@pytest.mark.parametrize(("samples", "n"), [(1, 1), (1, 8), (1, 53), (3, 21)])
def test_sums_and_distances(p, samples, n):
    rng = np.random.default_rng([p, samples, n])
    points, whitener = records(samples, n, p, rng)
    logs = reference_logs(points, whitener)
    packed = kernels.pack(points)
    sums, distances = kernels.log_sums_and_distances(packed, whitener, 1)
    assert_sums(sums, logs, 1e-12)
    assert distances.shape == (samples, n)
    assert_allclose(distances, (logs**2).sum(axis=(-1, -2)), rtol=1e-11)
    assert_array_equal(distances, kernels.squared_distances(packed, whitener, 1))
    for found, again in zip(sums, kernels.log_sums(packed, whitener, "full", 1), strict=True):
        assert_array_equal(found, again)
    assert_array_equal(sums.logs, sums.logs.swapaxes(-1, -2))
    assert_sums(kernels.log_sums(packed, whitener, "fast", 1), logs, 2e-10)
    assert_allclose(kernels.logs(packed, whitener, 1), vecd(logs), rtol=0, atol=2e-12)


@pytest.mark.parametrize("p", SIZES)
@pytest.mark.parametrize("reach", [1e-9, 1e-3, 0.3, 3.0, 6.9])
def test_spectra_of_every_width(p, reach):
    """Rounding of Y alone moves its smallest eigenvalue by about 1e-16 exp(2 reach)."""
    rng = np.random.default_rng([p, int(reach * 1e9)])
    theta = rng.uniform(-reach, reach, (1, 40, p))
    theta[..., 0], theta[..., -1] = reach, -reach if p > 1 else reach
    points, whitener = from_white(np.exp(theta), rotations(rng, 1, 40, p), rng)
    logs = reference_logs(points, whitener)
    rounding = 3e-15 * p * np.exp(2 * reach)
    found = kernels.logs(kernels.pack(points), whitener, 1)
    assert_allclose(found, vecd(logs), rtol=0, atol=2e-13 * min(reach, 1) + rounding)


@pytest.mark.parametrize("p", [2, 3, 5, 8, 9, 16])
def test_wide_spectra_are_left_to_lapack(p):
    rng = np.random.default_rng(p)
    points, whitener = records(2, 40, p, rng)
    diagonal = np.exp(rng.uniform(-30, 30, (2, 4, p)))  # |log λ| up to 30
    points[:, 3:7] = diagonal[..., None] * np.eye(p)
    conditioned = np.exp(np.linspace(0, np.log(1e12), p))
    points[:, 20] = from_eigen(conditioned, rotations(rng, p))
    logs = reference_logs(points, whitener)
    sums, distances = kernels.log_sums_and_distances(kernels.pack(points), whitener, 1)
    assert_sums(sums, logs, 1e-12)
    assert_allclose(distances, (logs**2).sum(axis=(-1, -2)), rtol=1e-11)


@pytest.mark.parametrize("p", SIZES)
def test_bad_records_harm_nobody_else(p):
    rng = np.random.default_rng(p)
    points, whitener = records(3, 43, p, rng)
    good = points.copy()
    points[0, 0] = np.nan  # record 0 also fills up the last block
    points[0, 9, -1, -1] = np.inf
    points[1, 17] = -points[1, 17]
    points[1, 30] = 0.0
    points[1, 40] = 1e200 * points[1, 40]
    packed = kernels.pack(points)
    sums, distances = kernels.log_sums_and_distances(packed, whitener, 1)
    logs = reference_logs(points, whitener)
    expected = (logs**2).sum(axis=(-1, -2))
    assert np.isnan(distances[0, [0, 9]]).all()
    finite = np.isfinite(expected)
    assert_allclose(distances[finite], expected[finite], rtol=1e-11)
    assert np.isnan(sums.squares[0])
    for r in (1, 2):
        kept = kernels.LogSums(*(part[r : r + 1] for part in sums))
        assert_sums(kept, logs[r : r + 1], 1e-12)
    # A sample's sums do not change, not even in the last bit, with what the others hold.
    alone = kernels.log_sums(kernels.pack(good[2:]), whitener[2:], "full", 1)
    assert_array_equal(alone.logs[0], sums.logs[2])


@pytest.mark.parametrize("p", [2, 3, 5, 8, 9, 16])
def test_indefinite_matrices_with_unit_spectrum_are_noticed(p):
    """|λ| = 1 passes every bound on norms; only the signs tell."""
    signs = np.where(np.arange(p) % 2, -1.0, 1.0)
    rng = np.random.default_rng(p)
    points = np.stack([from_eigen(signs, rotations(rng, p)), np.eye(p)])[None]
    distances = kernels.squared_distances(kernels.pack(points), np.eye(p)[None], 1)
    assert distances[0, 0] > 1e5
    assert distances[0, 1] == pytest.approx(0, abs=1e-24)


@pytest.mark.parametrize("p", [1, 2, 3, 5, 8, 9, 16, 32])
@pytest.mark.parametrize(("samples", "n"), [(1, 1), (1, 53), (3, 21)])
@pytest.mark.parametrize("radius", [0.5, 1.2, 100.0])
def test_clipped_moment(p, samples, n, radius):
    rng = np.random.default_rng([p, samples, n])
    points, whitener = records(samples, n, p, rng)
    if n > 1:
        points[0, n // 2] = np.nan
    rotation = rotations(rng, samples, p)
    middle = rng.standard_normal((samples, p * (p + 1) // 2)) * 0.1
    logs = reference_logs(points, whitener)
    turned = rotation[:, None].swapaxes(-1, -2) @ logs @ rotation[:, None]
    clipped = middle[:, None] + clip_norm(vecd(turned) - middle[:, None], radius)
    expected = clipped.swapaxes(-1, -2) @ clipped / n
    packed = kernels.pack(points)
    found = kernels.clipped_moment(packed, whitener, rotation, middle, radius, 1)
    assert_allclose(found, expected, rtol=0, atol=1e-11 * np.abs(expected).max())
    assert_array_equal(found, found.swapaxes(-1, -2))


@pytest.mark.parametrize(("p", "n"), [(2, 40_001), (5, 60_003), (8, 20_001), (9, 9001), (32, 1001)])
def test_threads_change_no_bit(p, n):
    rng = np.random.default_rng(p)
    points, whitener = records(1, n, p, rng)
    points[0, 5] = 1e9 * np.eye(p)
    packed = kernels.pack(points)
    middle = np.zeros((1, p * (p + 1) // 2))

    def everything(n_jobs):
        sums, distances = kernels.log_sums_and_distances(packed, whitener, n_jobs)
        eye = np.eye(p)[None]
        moment = kernels.clipped_moment(packed, whitener, eye, middle, 1.0, n_jobs)
        return (*sums, distances, moment, kernels.logs(packed, whitener, n_jobs))

    for one, two, three in zip(*(everything(k) for k in (1, 2, 3)), strict=True):
        assert_array_equal(one, two)
        assert_array_equal(one, three)


@pytest.mark.parametrize("p", [2, 5, 9])
def test_pack_reads_lower_triangles(p):
    rng = np.random.default_rng(p)
    points, _ = records(2, 11, p, rng)
    packed = kernels.pack(points + np.triu(np.ones((p, p)), 1))
    rows, columns = np.tril_indices(p)
    lanes = packed.blocks.transpose(0, 1, 3, 2).reshape(2, 16, -1)
    assert_array_equal(lanes[:, :11], points[..., rows, columns])
    assert_array_equal(lanes[:, 11:], np.repeat(lanes[:, :1], 5, axis=1))
    assert packed.blocks.nbytes == points.nbytes * 16 * (p + 1) // (11 * 2 * p)


def test_another_process_finds_the_machine_code_on_disk():
    program = (
        "import numpy as np;"
        "from skdpfrechet._kernels import _spd, _spd_small;"
        "p = _spd.pack(np.eye(2)[None, None]);"
        "_spd.log_sums(p, np.eye(2)[None], 'full', 1);"
        "print(sum(_spd_small.small_pass.stats.cache_misses.values()))"
    )
    for _ in range(2):
        run = [sys.executable, "-c", program]
        last = subprocess.run(run, capture_output=True, text=True, check=True)
    assert last.stdout.strip() == "0"
