"""The stored rational logarithms keep their promised error, certified in multiple precision."""

import mpmath
import numpy as np
import pytest

from skdpfrechet._kernels._log_nodes import ACCURACIES, LARGEST_REACH, allowed_error, log_nodes


@pytest.mark.parametrize("accuracy", ACCURACIES)
def test_uniform_error(accuracy):
    nodes = log_nodes(accuracy)
    for i, reach in enumerate(nodes.reaches):
        error = largest_error(nodes, i, grid(reach, 12 * int(nodes.counts[i])))
        assert error <= allowed_error(accuracy, reach)


def largest_error(nodes, i, thetas):
    count = nodes.counts[i]
    with mpmath.workdps(30):
        terms = [
            (mpmath.mpf(float(w)), mpmath.mpf(float(s)))
            for w, s in zip(nodes.weights[i, :count], nodes.shifts[i, :count], strict=True)
        ]
        constant = mpmath.mpf(float(nodes.constants[i]))

        def error(theta):
            y = mpmath.exp(mpmath.mpf(theta))
            return abs(constant + mpmath.fsum(w / (y + s) for w, s in terms) - theta)

        return float(max(error(theta) for theta in thetas))


def grid(reach, size):
    """Points denser near the ends, as the extrema of the error are."""
    return [float(x) for x in reach * np.sin(np.linspace(-np.pi / 2, np.pi / 2, 2 * size + 1))]


@pytest.mark.parametrize("accuracy", ACCURACIES)
def test_tables_are_ordered_and_reach_the_end(accuracy):
    nodes = log_nodes(accuracy)
    assert np.all(np.diff(nodes.reaches) > 0)
    assert np.all(np.diff(nodes.counts) == 1)
    assert nodes.reaches[-1] == LARGEST_REACH


@pytest.mark.parametrize("accuracy", ACCURACIES)
def test_weights_and_padding(accuracy):
    nodes = log_nodes(accuracy)
    used = np.arange(nodes.weights.shape[1]) < nodes.counts[:, None]
    assert np.all(nodes.weights[used] < 0)
    assert np.all(nodes.weights[~used] == 0)
    assert np.all(nodes.shifts > 0)


@pytest.mark.parametrize("accuracy", ACCURACIES)
def test_logarithm_of_an_inverse(accuracy):
    nodes = log_nodes(accuracy)
    y = np.exp(np.linspace(-1, 1, 7))[:, None]
    for constant, w, s in zip(nodes.constants, nodes.weights, nodes.shifts, strict=True):
        log, log_inverse = (constant + (w / (z + s)).sum(axis=1) for z in (y, 1 / y))
        np.testing.assert_allclose(log, -log_inverse, rtol=0, atol=1e-14)
