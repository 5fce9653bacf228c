"""Mironov's attack: which outputs can float64 noise around a value not produce at all?

Two neighbouring values, 0 and 1, get noise of scale 100, so that the promise is μ = .01: whoever
sees one output may tell the values apart with an advantage of .004. The attacker knows the code.
For an output y and a suspected value v the search below looks for random bits that lead from v to
y; if there are none, v is ruled out with certainty.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.special import ndtr, ndtri
from scipy.stats import chi2, norm

from skdpfrechet.mechanisms import Gaussian, SystemGenerator
from skdpfrechet.privacy import GDP

SIGMA, COUNT = 100.0, 4000
ADVANTAGE = 2 * norm.cdf(0.01 / 2) - 1
_NEAR = np.arange(-80, 81)  # units of the last place; ndtr loses about z² of them


def can_be_plain(y, value, sigma=SIGMA):
    """Whether some tail probability that float64 holds leads from `value` to each of y."""
    z = (y - value) / sigma
    tail = ndtr(-np.abs(z))
    candidates = tail[:, None] + _NEAR * np.spacing(tail)[:, None]
    noise = np.where(z[:, None] < 0, ndtri(candidates), -ndtri(candidates))
    return (value + sigma * noise == y[:, None]).any(axis=1)


def can_be_secure(y, value, step):
    """Whether some integer leads from `value` to each of y."""
    steps = (y - np.rint(value / step) * step) / step  # exact
    return steps == np.rint(steps)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_attack_succeeds_on_plain_noise(value):
    y = Gaussian(SIGMA).release(np.full(COUNT, value), SystemGenerator())
    # The search misses nothing: the true value is never ruled out.
    assert can_be_plain(y, value).all()
    ruled_out = 1 - can_be_plain(y, 1 - value).mean()
    # .56 ± .008 is what is seen
    assert ruled_out > 0.5 > 100 * ADVANTAGE


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_attack_fails_on_secure_noise(value):
    pytest.importorskip("flint")
    mechanism = Gaussian.calibrate_secure(1.0, GDP(0.01), 1)
    step = mechanism.grid.step
    y = mechanism.release(np.full((COUNT, 1), value), SystemGenerator()).ravel()
    assert can_be_secure(y, value, step).all()
    assert can_be_secure(y, 1 - value, step).all()


def test_last_bits_of_secure_noise_say_nothing():
    """The last three bits of the steps are uniform whatever the value; false-alarm rate 1e-9 each.

    On a Gaussian of more than a million steps they are, to within exp(-10^12).
    """
    pytest.importorskip("flint")
    mechanism = Gaussian.calibrate_secure(1.0, GDP(0.01), 1)
    step = mechanism.grid.step
    for value in (0.0, 1.0, 3 * step, 1 / 3):
        y = mechanism.release(np.full((COUNT, 1), value), SystemGenerator()).ravel()
        observed = np.bincount((y / step).astype(np.int64) % 8, minlength=8)
        statistic = ((observed - COUNT / 8) ** 2 / (COUNT / 8)).sum()
        assert statistic < chi2.isf(1e-9, 7)


def test_values_that_round_alike_give_the_same_outputs_bit_by_bit():
    pytest.importorskip("flint")
    mechanism = Gaussian.calibrate_secure(1.0, GDP(0.01), 1)
    for value in (0.0, 1.0, 1e6):
        moved = value + 0.4 * mechanism.grid.step
        draws = [mechanism.release(np.array([v]), np.random.default_rng(0)) for v in (value, moved)]
        assert_array_equal(*draws)
