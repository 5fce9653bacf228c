"""The tests on releases keep their level.

Rejections are counted over pairs and triples of fits without a common fit, and over designs and
budgets with seeds of their own: independent events, each of probability .03 to .07. So a count
exceeds every value no more often than the binomial law of probability .07, and falls below it no
more often than that of .03. It fails beyond their 1e-8 and 1 - 1e-8 quantiles; for four tests a
false alarm has probability below 1e-7.
"""

from collections import defaultdict

import numpy as np
import pytest
from scipy.stats import binom

from tests.statistical.coverage_study import CENTRED
from tests.statistical.level_study import level_rejections

FALSE_ALARM = 1e-8
DESIGNS = (("S²", 0.1), ("S²", 0.3), ("S²", 1.0), ("SPD(2)", 0.1), ("SPD(2)", 1.0))


@pytest.mark.slow
def test_level_in_the_designs_of_the_paper():
    counts = defaultdict(list)
    for space, mu in DESIGNS:
        for name, rejected in level_rejections(CENTRED[space], mu, 300, disjoint=True).items():
            counts[name] += list(rejected)
    for name, rejected in counts.items():
        total, number = int(np.sum(rejected)), len(rejected)
        low, high = binom.ppf(FALSE_ALARM, number, 0.03), binom.ppf(1 - FALSE_ALARM, number, 0.07)
        assert low <= total <= high, f"{name}: {total} of {number}"
