"""The shares of a budget: what the pages say, and never more than the whole."""

from fractions import Fraction
from math import inf, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skdpfrechet.estimators._budget import SMALLEST_MU, mean_shares, part, variance_shares

AUDITED = {"mean": 0.88, "second_moment": 0.12}
SMALL = {"mean": 0.65, "second_moment": 0.35}


@pytest.mark.parametrize(
    ("mu", "n", "shares"),
    [
        (1.0, 149, SMALL),
        (1.0, 150, AUDITED),
        (2.0, 74, SMALL),
        (2.0, 75, AUDITED),
        (0.999, 10, AUDITED),
        (0.5, 299, AUDITED),
        (150.0, 1, AUDITED),
        (149.0, 1, SMALL),
        (1.0, 10**6, AUDITED),
        (inf, 5, AUDITED),
    ],
)
def test_shares_of_a_mean_with_a_region(mu, n, shares):
    assert mean_shares(mu, n, "sharp", None, region=True) == pytest.approx(shares, rel=1e-15)


def test_shares_of_a_mean_without_a_region_or_as_printed():
    for calibration in ("sharp", "paper"):
        assert mean_shares(1.0, 10, calibration, None, region=False) == {"mean": 1.0}
    printed = mean_shares(1.0, 10, "paper", None, region=True)
    assert printed == pytest.approx(dict.fromkeys(("mean", "second_moment", "hessian"), 1 / 3))


@pytest.mark.parametrize(
    ("calibration", "region", "reused", "shares"),
    [
        ("sharp", True, False, {"mean": 0.25, "variance": 0.75}),
        ("sharp", False, False, {"mean": 0.25, "variance": 0.75}),
        ("sharp", True, True, {"variance": 1.0}),
        ("paper", False, False, {"mean": 0.5, "variance": 0.5}),
        ("paper", True, False, {"mean": 1 / 3, "variance": 1 / 3, "spread": 1 / 3}),
        ("paper", True, True, {"variance": 0.5, "spread": 0.5}),
        ("paper", False, True, {"variance": 1.0}),
    ],
)
def test_shares_of_a_variance(calibration, region, reused, shares):
    assert variance_shares(calibration, None, region, reused) == pytest.approx(shares, rel=1e-15)


@given(st.floats(0.01, 0.99), st.floats(-0.9e-9, 0.9e-9))
def test_a_split_that_sums_to_one_but_for_rounding_is_scaled_to_it(first, off):
    split = {"mean": first, "variance": (1 - first) * (1 + off)}
    shares = variance_shares("sharp", split, False, False)
    assert float(sum(map(Fraction, shares.values()))) == pytest.approx(1.0, abs=4e-16)
    ratio = shares["mean"] / shares["variance"]
    assert ratio == pytest.approx(split["mean"] / split["variance"], rel=1e-14)


def test_one_release_leaves_nothing_to_split():
    with pytest.raises(ValueError, match="None when the whole budget goes to the mean"):
        mean_shares(1.0, 10, "sharp", {"mean": 1.0}, region=False)


@pytest.mark.parametrize("off", [-1.5e-9, 1.5e-9])
def test_a_split_that_sums_to_something_else_is_refused(off):
    with pytest.raises(ValueError, match="budget_split must sum to 1"):
        variance_shares("sharp", {"mean": 0.5, "variance": 0.5 + off}, False, False)


@given(st.floats(1e-3, 1e3), st.floats(1e-6, 1.0))
def test_squares_of_parts_have_the_shares(mu, share):
    assert part(mu, share) ** 2 == pytest.approx(share * mu**2, rel=4e-14)
    assert Fraction(part(mu, share)) ** 2 <= Fraction(share) * Fraction(mu) ** 2
    assert part(inf, share) == inf


def test_a_part_is_large_enough_or_refused():
    assert SMALLEST_MU == 1e-10
    assert part(SMALLEST_MU, 1.0) == SMALLEST_MU
    assert part(1.0, 1e-20 * (1 + 1e-9)) >= SMALLEST_MU
    for mu, share in ((0.999e-10, 1.0), (1.0, 0.999e-20)):
        with pytest.raises(ValueError, match="every release at least 1e-10"):
            part(mu, share)
    assert part(1.0, 0.25) == pytest.approx(sqrt(0.25), rel=2e-14)
