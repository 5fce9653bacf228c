"""scikit-learn's own checks, every one of them, on the Euclidean estimators.

scikit-learn feeds rows that are not unit vectors and matrices that are not positive definite, so
only the Euclidean configuration can run its whole suite; test_conformance mirrors it elsewhere. No
check is excused. `parametrize_with_checks` is these generators, but before 1.9 it hands them to
pytest unread, which pytest deprecates.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial

import numpy as np
import pytest

from skdpfrechet import DPFrechetMean, DPFrechetVariance
from skdpfrechet.manifolds import Euclidean

with pytest.MonkeyPatch.context() as patch:
    # Where array-api-compat is installed, scikit-learn 1.6 wants this to import its test tools.
    patch.setenv("SCIPY_ARRAY_API", "1")
    from sklearn.utils.estimator_checks import estimator_checks_generator

RADIUS = 100.0  # the checks draw numbers of a few units

# A seed, or no noise: scikit-learn leaves out the checks that compare two fits otherwise.
CONFIGURATIONS = [
    {"random_state": 0},
    {"random_state": 0, "mu": 0.01},
    {"random_state": 0, "confidence_level": None},
    {"random_state": 0, "calibration": "paper"},
    {"random_state": 0, "calibration": "paper", "confidence_level": None},
    {"random_state": 0, "mechanism": "riemannian-gaussian"},
    {"random_state": 0, "mechanism": "wrapped-gaussian"},
    {"mu": np.inf},
    {"mu": np.inf, "calibration": "paper"},
]

# It needs a variable that scipy reads when it is first imported; see the last test.
ELSEWHERE = "check_array_api_input"


def name_of(check):
    while isinstance(check, partial):
        check = check.func
    return check.__name__


def all_checks():
    for estimator_class in (DPFrechetMean, DPFrechetVariance):
        for configuration in CONFIGURATIONS:
            estimator = estimator_class(radius=RADIUS, **configuration)
            for instance, check in estimator_checks_generator(estimator):
                if name_of(check) != ELSEWHERE:
                    yield pytest.param(instance, check, id=f"{instance}-{name_of(check)}")


@pytest.mark.parametrize(("estimator", "check"), list(all_checks()))
def test_sklearn_check(estimator, check):
    check(estimator)


@pytest.mark.parametrize("estimator_class", [DPFrechetMean, DPFrechetVariance])
def test_fresh_noise_is_declared(estimator_class):
    """What scikit-learn leaves out without a seed is what needs two equal fits, and no more."""
    seeded = estimator_class(radius=RADIUS, random_state=0)
    fresh = estimator_class(radius=RADIUS)
    left_out = {name_of(check) for _, check in estimator_checks_generator(seeded)} - {
        name_of(check) for _, check in estimator_checks_generator(fresh)
    }
    assert left_out == {
        "check_methods_sample_order_invariance",
        "check_methods_subset_invariance",
    }


@pytest.mark.parametrize("manifold", ["spd", "logeuclid", "logchol"])
@pytest.mark.parametrize("estimator_class", [DPFrechetMean, DPFrechetVariance])
@pytest.mark.filterwarnings("ignore:Can't test estimator:sklearn.exceptions.SkipTestWarning")
def test_matrix_estimators_get_one_check(estimator_class, manifold):
    """The reason for our own suite, and a reminder should scikit-learn learn more."""
    checks = list(estimator_checks_generator(estimator_class(manifold, radius=1.0)))
    assert [name_of(check) for _, check in checks] == ["check_estimator_cloneable"]
    for estimator, check in checks:
        check(estimator)


def test_a_manifold_instance_fixes_the_number_of_columns():
    """Checks of other widths must fail, so these configurations are not among those above."""
    estimator = DPFrechetMean(Euclidean(3), radius=RADIUS)
    with pytest.raises(ValueError, match=r"X must have shape \(n_samples, 3\)"):
        estimator.fit(np.zeros((5, 2)))


FRESH = """
from sklearn.utils.estimator_checks import check_estimator
from skdpfrechet import DPFrechetMean, DPFrechetVariance
for estimator_class in (DPFrechetMean, DPFrechetVariance):
    estimator = estimator_class(radius=100.0, random_state=0)
    for result in check_estimator(estimator, on_skip=None, on_fail=None):
        if result["status"] != "passed":
            print(estimator, result["check_name"], result["status"], result["exception"])
"""


def test_whole_suite_with_array_api():
    """In a fresh interpreter and with `SCIPY_ARRAY_API`, nothing is skipped."""
    result = subprocess.run(
        [sys.executable, "-c", FRESH],
        env={**os.environ, "SCIPY_ARRAY_API": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout == ""
