"""The law of ``round(s Z)``, its decisions against ball arithmetic, and `Grid`."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from math import inf, sqrt

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.stats import chi2, norm

from skdpfrechet import sensitivity
from skdpfrechet.manifolds import Euclidean, SPDAffineInvariant, Sphere
from skdpfrechet.mechanisms import (
    Gaussian,
    Grid,
    ProjectedGaussian,
    SymmetricGaussian,
    SystemGenerator,
    WrappedGaussian,
)
from skdpfrechet.mechanisms import _rounded_gaussian as rounded
from skdpfrechet.mechanisms._rounded_gaussian import rounded_gaussian
from skdpfrechet.privacy import GDP, ApproxDP

flint = pytest.importorskip("flint")


class FixedBits:
    """A source whose words are given; every bit after them is drawn from a seeded generator."""

    def __init__(self, words):
        self._words = np.array(words, dtype="<u8").tobytes()
        self._rest = np.random.default_rng(0)

    def bytes(self, length):
        if not self._words:
            return self._rest.bytes(length)
        first, self._words = self._words[:length], self._words[length:]
        return first


def tail_quantile(p):
    return (2 * p).erfcinv() * flint.arb(2).sqrt()


# --- the float64 part and its proof --------------------------------------------------------------


def test_remainder_of_every_taylor_polynomial():
    """The first omitted coefficient over the whole piece, as a ball: a proof, not a sample."""
    order = rounded._DEGREE + 1
    with flint.ctx.workprec(128):
        reach = flint.arb(2) ** (-7 * order)  # half the width of a piece of the mantissa is 2^-7
        for exponent in range(-rounded._OCTAVES, 0):
            for piece in range(rounded._PIECES):
                ball = flint.arb(rounded._midpoint(piece), 2.0**-7) * flint.arb(2) ** exponent
                coefficient = rounded.taylor_coefficients(ball, exponent, order)[order]
                assert abs(coefficient) * reach < 2.0**-50


def test_quantile_is_within_a_64th_of_its_stated_error():
    octaves = 2.0 ** -np.arange(2, 41)
    rng = np.random.default_rng(0)
    p = np.concatenate([octaves, np.nextafter(octaves, 1), np.nextafter(2 * octaves, 0)])
    p = np.concatenate([p, 2.0 ** -rng.uniform(1, 40, 5000)])
    with flint.ctx.workprec(128):
        for x, z in zip(p.tolist(), rounded._tail_quantile(p).tolist(), strict=True):
            assert abs(flint.arb(z) - tail_quantile(flint.arb(x))) < rounded._ERROR / 64


@pytest.mark.parametrize("s", [0.3, 1.0, 1234.5, 2.0**21 / 3, 2.0**30, 2.0**39])
def test_both_ways_to_decide_agree(s):
    """The same bits give the same integer in float64 and in ball arithmetic alone."""
    rng = np.random.default_rng(1)
    words = rng.integers(0, 2**64, 1000, dtype=np.uint64)
    words[:200] >>= rng.integers(0, 64, 200, dtype=np.uint64)  # far tails too
    for word in words.tolist():
        (integer,) = rounded_gaussian(s, (1,), FixedBits([word]))
        size = rounded._by_ball_arithmetic(s, word & (2**63 - 1), FixedBits([]))
        assert integer == (-size if word >> 63 else size)


def test_float64_leaves_little_undecided(monkeypatch):
    calls = []
    real = rounded._by_ball_arithmetic
    monkeypatch.setattr(
        rounded, "_by_ball_arithmetic", lambda *args: calls.append(args) or real(*args)
    )
    rounded_gaussian(2.0**26, (100_000,), np.random.default_rng(0))
    assert len(calls) < 20


def test_more_bits_are_drawn_until_the_integer_is_decided():
    # P < 2^-64 with 64 further zero bits: the answer lies beyond Q⁻¹(2^-128) = 13.
    source = FixedBits([0, 0, 2**63])
    (integer,) = rounded_gaussian(1000.0, (1,), source)
    with flint.ctx.workprec(256):
        expected = 1000 * tail_quantile(flint.arb(2) ** -129)
    assert abs(integer - expected) < 0.51


def test_huge_scales_are_exact_integers():
    drawn = rounded_gaussian(2.0**70, (50,), np.random.default_rng(0))
    assert drawn.dtype == object
    assert all(isinstance(integer, int) for integer in drawn)
    assert len({integer % 2**20 for integer in drawn}) == 50  # all bits are there


# --- the law --------------------------------------------------------------------------------------


@pytest.mark.parametrize("s", [0.4, 1.0, 3.7, 20.0])
def test_integers_have_the_law_of_a_rounded_gaussian(s):
    """Chi-squared against differences of the normal distribution function.

    The seed is fixed; over all seeds the false-alarm rate is 1e-6 for each s.
    """
    count = 400_000
    drawn = rounded_gaussian(s, (count,), np.random.default_rng(7))
    edge = int(3 * s)
    inner = np.arange(-edge, edge + 1)
    probability = norm.cdf((inner + 0.5) / s) - norm.cdf((inner - 0.5) / s)
    tail = norm.sf((edge + 0.5) / s)
    expected = count * np.concatenate([[tail], probability, [tail]])
    observed = np.bincount(np.clip(drawn, -edge - 1, edge + 1) + edge + 1, minlength=len(expected))
    assert expected.min() > 20
    statistic = ((observed - expected) ** 2 / expected).sum()
    assert statistic < chi2.isf(1e-6, len(expected) - 1)


def test_fine_integers_have_the_law_too():
    """The last bit of round(s Z) for large s is a fair coin, and its tail right; 1e-6 as above."""
    count = 200_000
    drawn = rounded_gaussian(2.0**21, (count,), np.random.default_rng(8))
    for share, expected in [
        ((drawn % 2 == 0).mean(), 0.5),
        ((drawn < 0).mean(), 0.5),
        ((np.abs(drawn) > 3 * 2**21).mean(), 2 * norm.sf(3)),
    ]:
        error = sqrt(expected * (1 - expected) / count)
        assert abs(share - expected) < norm.isf(5e-7) * error


def test_system_entropy_gives_the_law():
    """Unseeded: false-alarm rate 1e-9."""
    drawn = rounded_gaussian(1.0, (50_000,), SystemGenerator())
    expected = 50_000 * (norm.cdf(np.arange(-2, 3) + 0.5) - norm.cdf(np.arange(-2, 3) - 0.5))
    observed = np.array([(drawn == k).sum() for k in range(-2, 3)])
    assert (np.abs(observed - expected) < norm.isf(1e-10) * np.sqrt(expected)).all()


def test_threads_get_the_same_as_one():
    words = np.random.default_rng(2).integers(0, 2**64, (16, 200), dtype=np.uint64)
    draw = [lambda row=row: rounded_gaussian(2.0**45, (200,), FixedBits(row)) for row in words]
    alone = [job() for job in draw]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda job: job(), draw))
    for a, b in zip(alone, together, strict=True):
        assert_array_equal(a, b)


# --- mechanisms on a grid -------------------------------------------------------------------------

SPD = SPDAffineInvariant(2)
SECURE = [
    (lambda s, g: Gaussian.calibrate_secure(s, g, 3), np.array([0.1, -2.0, 1e5])),
    (lambda s, g: SymmetricGaussian.calibrate_secure(s, g, 2), np.array([[1.0, 0.3], [0.3, 2.0]])),
    (lambda s, g: WrappedGaussian.calibrate_secure(Euclidean(3), s, g), np.array([0.1, 1e3, -2])),
    (lambda s, g: WrappedGaussian.calibrate_secure(SPD, s, g), np.array([[1.0, 0.3], [0.3, 2.0]])),
    (lambda s, g: ProjectedGaussian.calibrate_secure(Sphere(2), s, g), np.array([0.6, 0.0, 0.8])),
]
LEVELS = [1e-10, 1e-3, 0.3, 1.0, 50.0, 1e6]


@pytest.mark.parametrize(("make", "value"), SECURE)
@pytest.mark.parametrize("mu", LEVELS)
def test_calibration_keeps_its_promise_and_wastes_little(make, value, mu):
    mechanism = make(0.1, GDP(mu))
    assert 0.99999 * mu < mechanism.guarantee(0.1).mu <= mu
    assert mechanism.grid.step <= 2.0**-20 * mechanism.sigma
    released = mechanism.release(value, SystemGenerator())
    assert released.shape == value.shape
    assert np.isfinite(released).all()


@pytest.mark.parametrize(("make", "value"), SECURE)
def test_calibrates_to_a_point(make, value):
    mechanism = make(0.1, ApproxDP(1.0, 1e-5))
    assert mechanism.guarantee(0.1).delta(1.0) <= 1e-5


@pytest.mark.parametrize(("make", "value"), SECURE)
def test_no_noise_needs_no_grid(make, value):
    assert make(0.1, GDP(inf)).grid is None


@pytest.mark.parametrize("mu", LEVELS)
def test_outputs_are_on_the_grid(mu):
    vector = Gaussian.calibrate_secure(0.1, GDP(mu), 3)
    matrix = SymmetricGaussian.calibrate_secure(0.1, GDP(mu), 4)
    flat = WrappedGaussian.calibrate_secure(Euclidean(3), 0.1, GDP(mu))
    rng = np.random.default_rng(3)
    for mechanism, shape in [(vector, (100, 3)), (matrix, (100, 4, 4)), (flat, (100, 3))]:
        value = rng.standard_normal(shape)
        value = value + np.swapaxes(value, -1, -2) if mechanism is matrix else value
        steps = mechanism.release(value, rng) / mechanism.grid.step  # exact: a power of two
        assert_array_equal(steps, np.rint(steps))


def test_release_depends_on_the_rounded_value_only():
    mechanism = Gaussian.calibrate_secure(0.1, GDP(1.0), 2)
    step = mechanism.grid.step
    for shift in (0.0, 0.49, -0.49):
        value = np.array([1000.0, -7.0]) * step + shift * step
        released = mechanism.release(value, np.random.default_rng(4))
        assert_array_equal(released, mechanism.release(value - shift * step, _seeded(4)))


def _seeded(seed):
    return np.random.default_rng(seed)


def test_the_scale_of_the_noise():
    """Variances of 40,000 seeded draws: relative error 1/√20,000, false alarm 1e-6 for 5 sigma."""
    matrix = SymmetricGaussian.calibrate_secure(1.0, GDP(0.5), 2)
    noise = matrix.release(np.zeros((40_000, 2, 2)), np.random.default_rng(5))
    assert_array_equal(noise, np.swapaxes(noise, -1, -2))
    for entry, scale in [((0, 0), 1.0), ((1, 1), 1.0), ((0, 1), sqrt(0.5))]:
        variance = noise[:, entry[0], entry[1]].var() / (scale * matrix.sigma) ** 2
        assert abs(variance - 1) < 5 / sqrt(20_000)


def test_a_projected_release_of_the_origin_has_a_direction():
    mechanism = ProjectedGaussian(Sphere(2), 1e-9, Grid(0.5, 3))
    released = mechanism.release(np.array([[0.2, 0.1, 0.1], [0.0, 0.0, 1.0]]), _seeded(6))
    assert_array_equal(released, [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])


def test_values_that_are_not_numbers_stop_nothing():
    mechanism = Gaussian.calibrate_secure(0.1, GDP(1.0), 3)
    released = mechanism.release(np.array([np.nan, np.inf, -np.inf]), SystemGenerator())
    assert np.isfinite(released).all()


@pytest.mark.parametrize("scale", [5e-324, 1e-300, 1e300])
def test_extreme_sensitivities(scale):
    mechanism = Gaussian.calibrate_secure(scale, GDP(1.0), 2)
    assert mechanism.guarantee(scale).mu <= 1.0
    assert np.isfinite(mechanism.release(np.zeros(2), SystemGenerator())).all()


def test_sensitivity_on_a_grid_is_attained_up_to_rounding():
    """Values on either side of the half of a step are moved apart by one step each."""
    step, gap = 2.0**-10, 1e-9
    value = np.full(9, step / 2)
    a, b = np.rint((value - gap) / step) * step, np.rint((value + gap) / step) * step
    moved, limit = np.linalg.norm(a - b), sensitivity.on_grid(2 * 3 * gap, 9, step)
    assert 0.998 * limit < moved <= limit


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Grid(0.3, 1), r"step must be a power of two from 2\^-960 on, got 0.3\."),
        (lambda: Grid(2.0**-1000, 1), "step must be a power of two"),
        (lambda: Grid(0.5, 0), "entries must be at least 1, got 0."),
        (
            lambda: Gaussian(1.0, Grid(0.5, 3)).release(np.zeros(4), SystemGenerator()),
            r"center must have 3 entries, .* got shape \(4,\)\.",
        ),
        (
            lambda: SymmetricGaussian(1.0, Grid(0.5, 4)).release(np.eye(3), SystemGenerator()),
            r"center must have 4 entries, .* got shape \(3, 3\)\.",
        ),
    ],
)
def test_errors(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_without_the_extra_calibration_names_it(monkeypatch):
    monkeypatch.setattr(rounded, "has_flint", lambda: False)
    with pytest.raises(ImportError, match="extra 'secure'"):
        Gaussian.calibrate_secure(0.1, GDP(1.0), 1)
