"""``invalid="replace"``: no value makes a fit raise or warn, in whatever container it comes.

And it changes no other record: what a fit reads of them is bit for bit the same.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from math import inf, nan

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from skdpfrechet import DPMDM, DPFrechetMean, DPFrechetVariance, DPPrincipalGeodesics
from skdpfrechet.estimators._records import look
from skdpfrechet.manifolds import (
    Euclidean,
    Hyperbolic,
    SPDAffineInvariant,
    SPDLogCholesky,
    SPDLogEuclidean,
    Sphere,
)

N, ROW = 8, 3
SPACES = {
    "euclidean": Euclidean(2),
    "sphere": Sphere(2),
    "hyperbolic": Hyperbolic(2),
    "spd": SPDAffineInvariant(2),
    "logeuclid": SPDLogEuclidean(2),
    "logchol": SPDLogCholesky(2),
}
NORTH = np.array([0.0, 0.0, 1.0])
GROUPS = [None, np.repeat(["a", "b", "c", "d"], 2)]


class Hostile:
    """A number whose conversion fails as it likes."""

    def __float__(self):
        raise RuntimeError("0.7345")

    def __repr__(self):
        raise RuntimeError("0.7345")


CELLS = st.one_of(
    st.floats(width=64),
    st.floats(width=32).map(np.float32),
    st.integers(-(10**400), 10**400),
    st.booleans(),
    st.complex_numbers(),
    st.text(max_size=4),
    st.binary(max_size=4),
    st.sampled_from(
        [
            *(None, pd.NA, pd.NaT, np.ma.masked, nan, inf, -inf, "NA", "", "inf", "1e999", b"1"),
            *(Hostile(), object(), float, {}, set(), np.datetime64("2020"), np.timedelta64(1, "s")),
            *(datetime(2020, 1, 1), Decimal("sNaN"), Decimal("1e999"), Fraction(10**400, 3)),
            *(np.longdouble("1e4000"), 5e-324, 1e308, -1e308, 1e154, np.complex64(1 + 1j)),
        ]
    ),
)


def records(name):
    """Points near the public centre."""
    space = SPACES[name]
    center = NORTH if name == "sphere" else space.origin
    c = np.random.default_rng(1).normal(scale=0.2, size=(N, space.dim))
    return space.exp_coords(center, c)


def build(kind, name, **more):
    center = NORTH if name == "sphere" else None
    return kind(name, **{"radius": 1.0, "center": center, "invalid": "replace", **more})


def spoil(name, cells, place):
    """Records as objects, the first entries of one of them replaced by arbitrary cells."""
    X = records(name).astype(object)
    row = X[ROW].reshape(-1)
    for cell, i in zip(cells, place, strict=True):
        row[i % row.size] = cell
    return X


def containers(X):
    yield "objects", X
    yield "lists", X.tolist()
    yield "tuples", tuple(tuple(record) for record in X.tolist())
    yield "list of arrays", list(X)
    if X.ndim == 2:
        yield "frame", pd.DataFrame(X)
        yield "frame that guesses", pd.DataFrame(X.tolist())


ANY = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None
)
SPOILT = {
    "cells": st.lists(CELLS, min_size=1, max_size=2),
    "place": st.permutations(range(2)),
}


@ANY
@given(**SPOILT)
@pytest.mark.parametrize("name", SPACES)
def test_no_value_changes_what_is_read_of_the_others(name, cells, place):
    """Nor does the container, for all that hold cells one by one."""
    X, others = spoil(name, cells, place[: len(cells)]), np.arange(N) != ROW
    for what, container in containers(X):
        numbers, epsilon = look(build(DPFrechetMean, name), container, reset=True).numbers(
            replace=True
        )
        assert numbers.shape == X.shape
        assert epsilon == 2.0**-52
        assert_array_equal(numbers[others], records(name)[others], err_msg=what)


@pytest.mark.parametrize("groups", GROUPS, ids=["records", "groups"])
@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize("kind", [DPFrechetMean, DPFrechetVariance, DPMDM, DPPrincipalGeodesics])
def test_no_value_makes_a_fit_raise_or_warn(kind, name, groups):
    """At finite μ; pytest turns every warning into an error."""
    y = np.repeat([0, 1], N // 2)

    @settings(ANY, max_examples=8)
    @given(**SPOILT, where=st.integers(0, 5))
    def check(cells, place, where):
        X = spoil(name, cells, place[: len(cells)])
        found = list(containers(X))
        _, container = found[where % len(found)]
        fitted = build(kind, name).fit(container, y, groups=groups)
        means = fitted.means_ if kind is DPMDM else fitted.mean_
        assert np.isfinite(means).all()

    check()


# --- what only some containers hold ---------------------------------------------------------------


def frames():
    yield pd.DataFrame({"a": [1, 2, None], "b": [0.5, 1, 2]})
    yield pd.DataFrame({"a": pd.array([1, 2, None], dtype="Int64"), "b": [0.5, 1, 2]})
    yield pd.DataFrame({"a": pd.array([1, 2, None], dtype="Float32"), "b": [0.5, 1, 2]})
    yield pd.DataFrame({"a": ["1", "2", "NA"], "b": [0.5, 1, 2]})
    yield pd.DataFrame({"a": pd.array(["1", "2", None], dtype="string"), "b": ["0.5", "1", "x"]})
    yield pd.DataFrame({"a": pd.Categorical([1, 2, None]), "b": [0.5, 1, 2]})
    yield pd.DataFrame({"a": [1, 2, 1j], "b": [0.5, 1, 2]})
    yield pd.DataFrame({"a": [1, 2, datetime(2020, 1, 1)], "b": [0.5, 1, 2]})


@pytest.mark.parametrize("frame", list(frames()), ids=lambda frame: str(frame.dtypes.iloc[0]))
def test_frames(frame):
    numbers, _ = look(build(DPFrechetMean, "euclidean"), frame, reset=True).numbers(replace=True)
    assert_array_equal(numbers[:2], [[1, 0.5], [2, 1]])
    assert np.isnan(numbers[2, 0])
    build(DPFrechetMean, "euclidean").fit(frame)
    with pytest.raises((ValueError, TypeError), match=r"X must contain|Complex"):
        build(DPFrechetMean, "euclidean", invalid="raise").fit(frame)


def test_frames_of_dates_hold_no_numbers():
    frame = pd.DataFrame({"a": pd.to_datetime(["2020-01-01"] * 3)})
    numbers, _ = look(build(DPFrechetMean, "euclidean"), frame, reset=True).numbers(replace=True)
    assert np.isnan(numbers).all()
    with pytest.raises(TypeError, match="X must contain real numbers only"):
        build(DPFrechetMean, "euclidean", invalid="raise").fit(frame)


@pytest.mark.parametrize("kind", [float, np.float32, int, bool, object, "U8", "S8"])
@pytest.mark.parametrize("rows", [False, True])
def test_what_is_masked_is_missing(kind, rows):
    X = np.arange(6.0).reshape(3, 2) % 2
    mask = np.zeros((3, 2), bool)
    mask[1, 0] = True
    masked = np.ma.masked_array(X.astype(int).astype(kind), mask)
    container = list(masked) if rows else masked
    unread = look(build(DPFrechetMean, "euclidean"), container, reset=True)
    numbers, _ = unread.numbers(replace=True)
    assert_array_equal(numbers, np.where(mask, nan, X.astype(int)))
    build(DPFrechetMean, "euclidean").fit(container)
    with pytest.raises((ValueError, TypeError), match="X must contain"):
        build(DPFrechetMean, "euclidean", invalid="raise").fit(container)
    whole = np.ma.masked_array(masked.data, False)
    build(DPFrechetMean, "euclidean", invalid="raise").fit(list(whole) if rows else whole)


@pytest.mark.parametrize("invalid", ["raise", "replace"])
@pytest.mark.parametrize("kind", [complex, "M8[s]", "m8[s]", [("x", float)]])
def test_types_that_hold_no_numbers_are_refused_as_types(kind, invalid):
    """The type of an array is public, and comes before the ledger."""
    X = np.zeros((4, 2), dtype=kind)
    for container in (X, np.ma.masked_array(X)):
        with pytest.raises((TypeError, ValueError), match=r"X must hold real numbers|Complex"):
            look(build(DPFrechetMean, "euclidean", invalid=invalid), container, reset=True)


def test_what_an_object_raises_is_not_shown():
    X = records("euclidean").astype(object)
    X[ROW, 0] = Hostile()
    with pytest.raises(ValueError, match="X must contain real numbers only") as caught:
        build(DPFrechetMean, "euclidean", invalid="raise").fit(X)
    assert caught.value.__context__ is None
