"""Coverage of the released regions and intervals, and their size against the printed recipe.

Every test allows for Monte Carlo error: a count of covering data sets fails only outside the
1e-8 to 1 - 1e-8 quantiles of the binomial laws at the ends of the range that the audit found, so
all of this file raises a false alarm with probability below 1e-6.
"""

import numpy as np
import pytest
from scipy.stats import binom

from skdpfrechet import DPFrechetMean
from skdpfrechet._numerics import clip_norm
from tests.statistical.coverage_study import CENTRED, OFF_CENTRE, study
from tests.statistical.private_ball_study import lognormal

REPLICATIONS = 250
FALSE_ALARM = 1e-8

# Average size of calibration="sharp" over "paper" at the same μ, found by the audit of the paper.
RATIOS = {
    ("S²", 0.1): (0.21, 0.24),
    ("S²", 0.3): (0.44, 0.34),
    ("S²", 1.0): (0.87, 0.73),
    ("S²", 2.5): (0.97, 0.94),
    ("SPD(2)", 0.1): (0.27, 0.24),
    ("SPD(2)", 0.3): (0.54, 0.32),
    ("SPD(2)", 1.0): (0.91, 0.70),
    ("SPD(2)", 2.5): (0.99, 0.93),
}


def assert_coverage(share: float, low: float, high: float) -> None:
    count = round(share * REPLICATIONS)
    assert binom.ppf(FALSE_ALARM, REPLICATIONS, low) <= count
    assert count <= binom.ppf(1 - FALSE_ALARM, REPLICATIONS, high)


@pytest.mark.slow
@pytest.mark.parametrize(("space", "mu"), RATIOS)
def test_coverage_and_size_of_centred_data(space, mu):
    sharp = study(CENTRED[space], 600, mu, "sharp", REPLICATIONS)
    paper = study(CENTRED[space], 600, mu, "paper", REPLICATIONS // 5)
    assert_coverage(sharp.mean_coverage, 0.935, 0.965)
    assert_coverage(sharp.variance_coverage, 0.935, 0.970)
    volume, length = RATIOS[space, mu]
    # Sizes vary by less than a tenth from data set to data set: the averages by less than 2%.
    assert sharp.volume / paper.volume == pytest.approx(volume, rel=0.10)
    assert sharp.length / paper.length == pytest.approx(length, rel=0.10)


@pytest.mark.slow
@pytest.mark.parametrize("mu", [0.2, 1.0])
@pytest.mark.parametrize("n", [100, 600])
@pytest.mark.parametrize("design", OFF_CENTRE)
def test_coverage_of_concentrated_data_off_the_centre(design, n, mu):
    result = study(OFF_CENTRE[design], n, mu, "sharp", REPLICATIONS)
    assert_coverage(result.mean_coverage, 0.926, 1.0)
    assert_coverage(result.variance_coverage, 0.926, 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("mu", [1.0, 4.0])
def test_coverage_in_a_ball_found_with_the_same_records(mu):
    """Of the mean of the law clipped to that ball; docs/theory.md has the figures of 1,500 fits."""
    rng = np.random.default_rng(11)
    population = lognormal(200_000, 0.4, rng)[0].records
    covered = 0
    for seed in range(REPLICATIONS):
        fit = DPFrechetMean(
            center="private", radius="private", outer_radius=12.0, mu=mu, random_state=seed
        ).fit(lognormal(500, 0.4, rng)[0].records)
        moved = fit.center_ + clip_norm(population - fit.center_, fit.radius_)
        covered += bool(fit.confidence_region_.contains(moved.mean(axis=0)))
    assert_coverage(covered / REPLICATIONS, 0.94, 0.97)
