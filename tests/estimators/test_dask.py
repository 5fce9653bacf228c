"""Dask arrays, computed in this process: fits are those of records in memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skdpfrechet import DPMDM, DPFrechetMean, DPFrechetVariance, DPPrincipalGeodesics, _kernels
from skdpfrechet.manifolds import SPDAffineInvariant
from skdpfrechet.privacy import GDP, PrivacyBudgetError, PrivacyLedger
from tests.estimators.conftest import Case
from tests.estimators.test_firewall import leaves
from tests.estimators.test_memory_maps import ESTIMATORS, PLANE, SPACES, numbers

da = pytest.importorskip("dask.array")
dask = pytest.importorskip("dask")


@pytest.fixture(autouse=True)
def in_this_process():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture
def ledger(tmp_path):
    return PrivacyLedger(tmp_path / "study.ledger", budget=GDP(1.0))


def chunked(X):
    """Uneven chunks, one of them empty, that cut every record in two."""
    first = len(X) // 3
    cut = tuple((1, size - 1) if size > 1 else (1,) for size in X.shape[1:])
    return da.from_array(X, chunks=((first, 0, 1, len(X) - first - 1), *cut))


def unreadable(shape=(40, 2)):
    """An array of dask that fails if a value of it is computed."""

    def fail(block):
        raise AssertionError("a record was read")

    return da.zeros(shape, chunks=10).map_blocks(fail, meta=np.empty((0,) * len(shape)))


# --- the same results -----------------------------------------------------------------------------


@pytest.mark.parametrize("kernels", ["numba", "numpy"])
@pytest.mark.parametrize("estimator_class", ESTIMATORS)
@pytest.mark.parametrize("case", SPACES, ids=str)
def test_exact_fits_are_those_of_records_in_memory(case, estimator_class, kernels):
    X = case.records(n=100)
    estimator = case.build(estimator_class, mu=np.inf)
    with _kernels.kernels(kernels):
        wanted, found = numbers(estimator.fit(X)), numbers(estimator.fit(chunked(X)))
    for a, b in zip(wanted, found, strict=True):
        assert_allclose(b, a, rtol=0, atol=1e-10)


@pytest.mark.parametrize("noise", ["float", "auto"])
@pytest.mark.parametrize("estimator_class", ESTIMATORS)
@pytest.mark.parametrize("case", SPACES, ids=str)
def test_private_fits_are_those_of_records_in_memory(case, estimator_class, noise):
    """Both means are within their tolerance, 1e-4 · 2r/n over a modulus, of the exact one.

    So are releases, as noise is the same; ten is for the modulus and the derivatives of the rest.

    Float-safe second moments of SPD matrices are rounded in another frame, so those differ by as
    much as their noise.
    """
    X = case.records(n=100)
    estimator = case.build(estimator_class, noise=noise)
    a, b = estimator.fit(X), case.build(estimator_class, noise=noise).fit(chunked(X))
    assert a.privacy_.releases[0] == b.privacy_.releases[0]
    assert a.privacy_.notes == b.privacy_.notes
    values = zip(numbers(a), numbers(b), strict=True)
    for i, (x, y) in enumerate(values):
        if noise == "float" or i == 0 or estimator_class is DPFrechetVariance:
            assert_allclose(y, x, rtol=0, atol=10 * 2 * 1e-4 * 2 * 0.7 / 100)


def test_float_safe_noise_is_exact_over_blocks():
    """Sums of rounded records have no error, whatever the blocks: not a bit may differ."""
    pytest.importorskip("flint")
    for estimator_class in ESTIMATORS:
        estimator = estimator_class(radius=2.0, noise="secure", random_state=0)
        with_memory = numbers(estimator.fit(PLANE.round(2)))
        assert all(release.float_safe for release in estimator.privacy_.releases)
        for chunks in (1, 7, 40):
            X = da.from_array(PLANE.round(2), chunks=(chunks, 1))
            for a, b in zip(with_memory, numbers(estimator.fit(X)), strict=True):
                assert_allclose(b, a, rtol=0, atol=1e-15)


def test_float_noise_is_said_to_be_such():
    X = chunked(PLANE)
    report = DPFrechetMean(radius=2.0, noise="float").fit(X).privacy_
    assert report.caveats[0].startswith("FLOAT NOISE in mean, second moment:")


def test_the_tolerance_finer_than_the_kernels_is_left_to_the_reference():
    case = Case("spd", SPDAffineInvariant(3))
    estimator = case.build(DPFrechetMean, radius=1e-3, mu=1.0, confidence_level=None)
    X = SPDAffineInvariant(3).exp_coords(np.eye(3), 1e-4 * PLANE[:, :1] * np.ones(6))
    assert_allclose(estimator.fit(chunked(X)).mean_, estimator.fit(X).mean_, rtol=0, atol=1e-8)


def test_principal_geodesics_and_reused_means():
    X = chunked(PLANE)
    geodesics = DPPrincipalGeodesics("euclidean", radius=2.0, random_state=0, noise="float")
    wanted = geodesics.fit(PLANE).components_
    assert_allclose(geodesics.fit(X).components_, wanted, rtol=0, atol=1e-10)
    mean = DPFrechetMean(radius=2.0, random_state=0).fit(X)
    variance = DPFrechetVariance(radius=2.0, mean=mean.release_, random_state=0)
    assert_allclose(variance.fit(X).variance_, variance.fit(PLANE).variance_, rtol=1e-10)


@pytest.mark.parametrize("estimator_class", ESTIMATORS)
def test_a_fitted_estimator_keeps_nothing_more(estimator_class):
    kept = [
        dict(leaves(estimator_class(radius=2.0, random_state=0).fit(X)))
        for X in (PLANE, chunked(PLANE))
    ]
    assert kept[0].keys() == kept[1].keys()
    for a, b in zip(kept[0].values(), kept[1].values(), strict=True):
        assert type(a) is type(b)


def test_single_precision_and_integers():
    estimator = DPFrechetMean(radius=2.0, mu=np.inf)
    for X in (PLANE.astype(np.float32), (10 * PLANE).astype(int)):
        assert_allclose(estimator.fit(chunked(X)).mean_, estimator.fit(X).mean_, atol=1e-10)


def test_one_block_after_the_other_is_in_memory():
    """2 MB of 64 are held at a time: the chunk, its packed copy and what a pass needs."""
    n, chunk = 320_000, 10_000

    def block(block_info=None):
        rng = np.random.default_rng(block_info[None]["chunk-location"][0])
        return np.eye(5) + 0.02 * rng.normal(size=(chunk, 1, 1))

    X = da.map_blocks(block, chunks=((chunk,) * (n // chunk), 5, 5), dtype=float)
    estimator = DPFrechetMean("spd", radius=1.0, noise="float", confidence_level=None)
    estimator.fit(X[:chunk])  # compiles
    tracemalloc.start()
    estimator.fit(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16e6 < n * 200


# --- what blocks cannot do is said before anything is paid ----------------------------------------


@pytest.mark.parametrize(
    "parameters",
    [
        {"radius": "private", "outer_radius": 9.0},
        {"center": "private", "radius": 1.0, "outer_radius": 9.0},
        {"calibration": "paper"},
    ],
)
@pytest.mark.parametrize("estimator_class", ESTIMATORS)
def test_refuses_what_needs_all_records(estimator_class, parameters, ledger):
    estimator = estimator_class(**{"radius": 1.0, **parameters}, ledger=ledger)
    with pytest.raises(ValueError, match=r"^X must be in memory .*; X.compute\(\) loads it\.$"):
        estimator.fit(unreadable())
    assert not ledger.report().spends


@pytest.mark.parametrize("estimator_class", [*ESTIMATORS, DPPrincipalGeodesics])
def test_refuses_groups(estimator_class, ledger):
    with pytest.raises(ValueError, match="must be in memory"):
        estimator_class("euclidean", radius=1.0, unit="person", ledger=ledger).fit(
            unreadable(), groups=np.arange(40) // 2
        )
    assert not ledger.report().spends


def test_refuses_classifiers_and_transform(ledger):
    with pytest.raises(TypeError, match=r"in memory .*X.compute\(\)"):
        DPMDM(radius=1.0, ledger=ledger).fit(unreadable(), np.arange(40) % 2)
    mean = DPFrechetMean(radius=1.0).fit(PLANE)
    with pytest.raises(TypeError, match=r"X.map_blocks"):
        mean.transform(unreadable())
    by_chunks = da.from_array(PLANE, chunks=(10, 2)).map_blocks(mean.transform, dtype=float)
    assert_array_equal(by_chunks.compute(), mean.transform(PLANE))
    assert not ledger.report().spends


def test_refuses_chunks_of_unknown_size(ledger):
    X = da.from_array(PLANE, chunks=10)
    X = X[X[:, 0] > 0]
    estimator = DPFrechetMean(radius=2.0, ledger=ledger)
    with pytest.raises(ValueError, match=r"X.compute_chunk_sizes\(\)"):
        estimator.fit(X)
    assert not ledger.report().spends
    assert estimator.fit(X.compute_chunk_sizes()).n_samples_ == (PLANE[:, 0] > 0).sum()


def test_refuses_other_collections_and_types(ledger):
    estimator = DPFrechetMean(radius=2.0, ledger=ledger)
    with pytest.raises(TypeError, match="got another collection of dask"):
        estimator.fit(dask.delayed(PLANE))
    with pytest.raises(ValueError, match="Complex data not supported"):
        estimator.fit(unreadable().astype(complex))
    with pytest.raises(ValueError, match="square matrices"):
        DPFrechetMean("spd", radius=2.0, ledger=ledger).fit(unreadable((40, 2, 3)))
    assert not ledger.report().spends


# --- the ledger, records that are none, and errors ------------------------------------------------


def test_pays_once_and_before_a_chunk_is_computed(ledger):
    spent = []

    def observe(block):
        spent.append(len(ledger.report().spends))
        return block

    X = da.from_array(PLANE, chunks=(10, 2)).map_blocks(observe, meta=np.empty((0, 0)))
    estimator = DPFrechetMean(radius=2.0, mu=0.9, ledger=ledger).fit(X)
    assert set(spent) == {1}
    assert len(ledger.report().spends) == 1
    spent.clear()
    with pytest.raises(PrivacyBudgetError):
        estimator.fit(X)
    assert not spent


def complaint(estimator, X):
    try:
        estimator.fit(X)
    except ValueError as error:
        return str(error)
    return None


@pytest.mark.parametrize("case", SPACES, ids=str)
@pytest.mark.parametrize("bad", [np.nan, np.inf, 5.0])
def test_records_that_are_none(case, bad):
    X = case.records(n=20)
    X[[3, 17]] = bad  # a matrix of equal entries is singular
    if np.isnan(bad):
        assert complaint(case.build(DPFrechetMean), chunked(X)) is not None
    for estimator_class in ESTIMATORS:
        estimator = case.build(estimator_class, mu=np.inf)
        assert complaint(estimator, chunked(X)) == complaint(estimator, X)
        estimator = case.build(estimator_class, mu=np.inf, invalid="replace")
        for a, b in zip(numbers(estimator.fit(X)), numbers(estimator.fit(chunked(X))), strict=True):
            assert_allclose(b, a, rtol=0, atol=1e-10)


def test_an_error_of_a_block_carries_no_record():
    X = PLANE.copy()
    X[3, 0] = np.nan
    with pytest.raises(ValueError, match="finite numbers only") as caught:
        DPFrechetMean(radius=2.0).fit(chunked(X))
    traceback = caught.value.__traceback__
    while traceback is not None:
        values = traceback.tb_frame.f_locals.values()
        frame = traceback.tb_frame.f_code.co_name
        own = "skdpfrechet" in traceback.tb_frame.f_code.co_filename and "tests" not in frame
        if own:
            assert not any(isinstance(value, np.ndarray) and value.size > 2 for value in values)
        traceback = traceback.tb_next


def test_chunks_that_are_not_what_they_say():
    """n sets the noise, so it is checked rather than believed."""
    X = da.from_array(PLANE, chunks=(10, 2)).map_blocks(lambda x: x[:5], meta=np.empty((0, 0)))
    assert X.shape == (40, 2)
    with pytest.raises(ValueError, match="chunks of the shapes that it declares"):
        DPFrechetMean(radius=2.0).fit(X)
