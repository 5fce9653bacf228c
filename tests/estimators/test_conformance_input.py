"""scikit-learn's checks of input data, by their names, on the spaces that its own suite skips.

One rule goes beyond scikit-learn: no message, cause or context of an error may quote the data.
"""

from __future__ import annotations

import joblib
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array, csr_matrix

from skdpfrechet import DPFrechetMean

SECRET = 7.7712345  # every refused input holds it; no error may
TRACE = "777123"


def filled(case, n=4):
    """An array of the right shape full of the secret, off every manifold but SPD(1)."""
    return np.full((n, *case.space.point_shape), SECRET)


def poisoned(case, value):
    X = filled(case)
    X[1, ..., 0] = value
    return X


def with_objects(case, thing):
    X = filled(case).astype(object)
    X[(1,) + (0,) * (X.ndim - 1)] = thing
    return X


NUMBERS = r"real numbers"
REFUSED = {
    "check_estimators_nan_inf(nan)": (lambda case: poisoned(case, np.nan), ValueError, "NaN"),
    "check_estimators_nan_inf(inf)": (lambda case: poisoned(case, np.inf), ValueError, "infinity"),
    "check_estimators_nan_inf(-inf)": (
        lambda case: poisoned(case, -np.inf),
        ValueError,
        "infinity",
    ),
    "check_estimators_empty_data_messages": (lambda case: filled(case, 0), ValueError, "0 sample"),
    "check_fit1d": (lambda case: np.full(4, SECRET), ValueError, "X must have shape"),
    "check_fit0d": (lambda case: SECRET, ValueError, "X must have shape"),
    "check_fit4d": (
        lambda case: np.full((2, 2, 2, 2), SECRET),
        ValueError,
        "dim 4|must have shape",
    ),
    "check_complex_data": (lambda case: filled(case) * (1 + 1j), ValueError, "Hermitian"),
    "check_complex_data(list)": (
        lambda case: (filled(case) * 1j).tolist(),
        ValueError,
        "Complex data not supported",
    ),
    "check_dtype_object(string)": (
        lambda case: with_objects(case, f"secret {SECRET}"),
        ValueError,
        NUMBERS,
    ),
    "check_dtype_object(dict)": (
        lambda case: with_objects(case, {"x": SECRET}),
        TypeError,
        "argument must be .* string.* number",
    ),
    "check_dtype_object(complex)": (
        lambda case: with_objects(case, SECRET * 1j),
        TypeError,
        NUMBERS,
    ),
    "check_dtype_object(None)": (lambda case: with_objects(case, None), ValueError, "NaN"),
    "check_dtype_object(huge)": (lambda case: with_objects(case, 777123**99), ValueError, NUMBERS),
    "check_strings": (
        lambda case: np.full((4, *case.space.point_shape), f"s{SECRET}"),
        ValueError,
        NUMBERS,
    ),
    "check_bytes": (
        lambda case: np.full((4, *case.space.point_shape), b"s7.7712345"),
        ValueError,
        NUMBERS,
    ),
    "check_ragged": (lambda case: [[SECRET], [SECRET, SECRET]], ValueError, "rectangular"),
    "check_estimator_sparse_array": (
        lambda case: csr_array(np.full((4, 3), SECRET)),
        TypeError,
        "[Ss]parse",
    ),
    "check_estimator_sparse_matrix": (
        lambda case: csr_matrix(np.full((4, 3), SECRET)),
        TypeError,
        "[Ss]parse",
    ),
}
REFUSED_MATRICES = {
    "check_nonsquare_error": (
        lambda case: np.full((4, case.space.size, case.space.size + 1), SECRET),
        ValueError,
        "square matrices",
    ),
    "check_no_rows": (lambda case: np.empty((4, 0, 0)), ValueError, "square matrices"),
    "check_not_positive_definite": (
        lambda case: -SECRET * np.eye(case.space.size)[None],
        ValueError,
        "positive definite matrices",
    ),
    "check_zero": (lambda case: 0 * filled(case), ValueError, "positive definite matrices"),
    "check_singular": (
        lambda case: filled(case) if case.space.size > 1 else 0 * filled(case),
        ValueError,
        "positive definite matrices",
    ),
    "check_asymmetric": (
        lambda case: np.tril(filled(case)) if case.space.size > 1 else -filled(case),
        ValueError,
        "symmetric matrices|positive definite",
    ),
}
REFUSED_VECTORS = {
    "check_off_manifold": (filled, ValueError, "must contain (unit vectors|points)"),
    "check_zero": (lambda case: 0 * filled(case), ValueError, "must contain (directions|points)"),
    "check_no_columns": (lambda case: np.empty((4, 0)), ValueError, "0 feature"),
}


def assert_reveals_nothing(error):
    """The message and whatever is chained to the error are free of the data."""
    chain = error, error.__cause__, error.__context__
    for part in (link for link in chain if link is not None):
        text = f"{part} {part.args}".replace(".", "")
        assert TRACE not in text
        assert "secret" not in text


def assert_refused(case, estimator_class, make, kind, words):
    """By `fit` as by `transform`."""
    estimator = case.build(estimator_class)
    with pytest.raises(kind, match=words) as at_fit:
        estimator.fit(make(case))
    assert_reveals_nothing(at_fit.value)
    estimator.fit(case.records())
    with pytest.raises(kind, match=words) as at_transform:
        estimator.transform(make(case))
    assert_reveals_nothing(at_transform.value)


@pytest.mark.parametrize("check", REFUSED)
def test_refused(case, estimator_class, check):
    assert_refused(case, estimator_class, *REFUSED[check])


@pytest.mark.parametrize("check", REFUSED_MATRICES)
def test_refused_matrices(matrix_case, estimator_class, check):
    assert_refused(matrix_case, estimator_class, *REFUSED_MATRICES[check])


@pytest.mark.parametrize("check", REFUSED_VECTORS)
def test_refused_vectors(vector_case, estimator_class, check):
    assert_refused(vector_case, estimator_class, *REFUSED_VECTORS[check])


def test_errors_do_not_depend_on_the_records(case, estimator):
    """Not even on which of them, or how many, are at fault."""
    for value in (np.nan, np.inf, 3.0):
        messages = set()
        for rows in ([0], [3], [1, 2, 4]):
            X = case.records(seed=len(rows))
            X[rows] = value if value != 3.0 else -np.abs(X[rows]) - 3.0
            with pytest.raises(ValueError) as info:
                estimator.fit(X)
            messages.add(str(info.value))
        assert len(messages) == 1


def test_check_n_features_in(case, estimator):
    assert not hasattr(estimator, "n_features_in_")
    X = case.records()
    estimator.fit(X)
    assert estimator.n_features_in_ == X.shape[1]
    larger = np.ones((3, *(size + 1 for size in case.space.point_shape)))
    with pytest.raises(ValueError, match=rf"X has {X.shape[1] + 1} features, but .* {X.shape[1]} "):
        estimator.transform(larger)
    assert estimator.n_features_in_ == X.shape[1]


def test_check_dataframe_column_names_consistency(vector_case, estimator_class):
    """On vectors only: data frames are two-dimensional."""
    X, estimator = vector_case.records(), vector_case.build(estimator_class)
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])])
    plain = estimator.fit(X).transform(X)
    assert not hasattr(estimator, "feature_names_in_")
    assert_array_equal(estimator.fit(frame).transform(frame), plain)
    assert list(estimator.feature_names_in_) == list(frame.columns)
    with pytest.raises(ValueError, match="feature names should match"):
        estimator.transform(frame.rename(columns={"x0": "y"}))
    with pytest.warns(UserWarning, match="valid feature names"):
        estimator.transform(X)
    assert not hasattr(estimator.fit(X), "feature_names_in_")


# --- accepted ------------------------------------------------------------------------------------


def test_check_fit2d_1sample(case, estimator):
    X = case.records(1)
    assert estimator.fit(X).n_samples_ == 1
    assert np.isfinite(estimator.transform(X)).all()
    if isinstance(estimator, DPFrechetMean) and estimator.confidence_level is not None:
        assert estimator.confidence_region_.contains(estimator.mean_)


def equivalents(X, directory):
    """The same numbers in other containers."""
    strided = np.zeros((2 * len(X), *X.shape[1:]))
    strided[::2] = X
    joblib.dump(X, directory / "X.joblib")
    yield "check_readonly_memmap_input", joblib.load(directory / "X.joblib", mmap_mode="r")
    yield "check_f_contiguous_array_estimator", np.asfortranarray(X)
    yield "check_transformer_data_not_an_array(list)", X.tolist()
    yield "check_transformer_data_not_an_array(list of arrays)", list(X)
    yield "check_strided", strided[::2]
    yield "check_estimators_dtypes(object)", X.astype(object)
    yield "check_estimators_dtypes(longdouble)", X.astype(np.longdouble)
    yield "check_estimators_dtypes(big-endian)", X.astype(">f8")


def test_equivalent_containers(case, estimator, tmp_path):
    X = case.records()
    plain = estimator.fit(X).transform(X)
    for check, same in equivalents(X, tmp_path):
        assert_array_equal(estimator.fit(same).transform(same), plain, err_msg=check)


def test_check_estimators_dtypes_float32(case, estimator):
    X = case.records()
    plain = estimator.fit(X).transform(X)
    single = X.astype(np.float32)
    out = estimator.fit(single).transform(single)
    assert out.dtype == np.float64
    assert_allclose(out, plain, rtol=0, atol=1e-4)


def test_check_estimators_dtypes_integer(case, estimator):
    """Integers and booleans count as the numbers that they are."""
    point = np.eye(case.space.point_shape[-1], dtype=np.int64)
    if not case.matrices:
        point = point[0] if case.center is None else point[-1]
    X = np.stack([point] * 4)
    plain = estimator.fit(X.astype(float)).transform(X.astype(float))
    for kind in (np.int64, np.int8, np.uint16, bool):
        same = X.astype(kind)
        assert_array_equal(estimator.fit(same).transform(same), plain)


def test_inverse_transform(case):
    """Returns the records, and is as discreet as `transform`."""
    X = case.records()
    mean = case.build(DPFrechetMean).fit(X)
    c = mean.transform(X)
    assert_allclose(mean.inverse_transform(c), X, rtol=0, atol=1e-10)
    assert mean.inverse_transform(c[:0]).shape == (0, *case.space.point_shape)
    bad = (c + 1j, c.astype(str)[:, 0], c[0] * SECRET, c * np.nan, c[:, :-1], [["secret"]])
    for wrong in bad:
        with pytest.raises(ValueError, match=r"X") as info:
            mean.inverse_transform(wrong)
        assert_reveals_nothing(info.value)
