"""Faults injected into fits that pay: what is on record afterwards, and what is lost.

The table in docs/security.md names these tests and those of the ledger itself.
"""

from __future__ import annotations

import os
import sqlite3
import struct
from contextlib import closing
from datetime import UTC, datetime
from types import SimpleNamespace

import numpy as np
import pytest
from joblib import Parallel, delayed
from joblib.externals.loky.process_executor import TerminatedWorkerError
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from skdpfrechet import DPFrechetMean
from skdpfrechet.mechanisms import WrappedGaussian
from skdpfrechet.privacy import (
    GDP,
    PrivacyBudgetError,
    PrivacyLedger,
    PrivacyLedgerError,
    _ledger_store,
)
from tests.estimators.test_ledger import (
    LABELS,
    X,  # noqa: F401
    assert_fails_closed,
    assert_not_fitted,
    build,
    estimator_class,  # noqa: F401
    ledger,  # noqa: F401
    path,  # noqa: F401
    spends,
    stopped_workers,  # noqa: F401
)
from tests.privacy.test_ledger import limit_pages, limited_files

# ruff: noqa: F811 (fixtures)


def fit_until_full(estimator, X):
    for i in range(1000):
        estimator.set_params(ledger=estimator.ledger.for_dataset(f"{i}" * 200))
        estimator.fit(X, LABELS)


def test_a_full_disk(estimator_class, ledger, X, monkeypatch):
    """SQLite has no page left: fits pay until then, and no fit after that releases."""
    with monkeypatch.context() as patch:
        limit_pages(patch)
        with pytest.raises(PrivacyLedgerError, match="the disk is full"):
            fit_until_full(estimator := build(estimator_class, ledger), X)
        assert_not_fitted(estimator)
        recorded = len(spends(ledger))
        assert 0 < recorded < 1000
    estimator.fit(X, LABELS)
    assert len(spends(ledger)) == recorded + 1


def test_a_write_that_the_system_refuses(estimator_class, ledger, X):
    with limited_files(4096):
        assert_fails_closed(build(estimator_class, ledger), X, PrivacyLedgerError, "disk")
    assert spends(ledger) == []
    build(estimator_class, ledger).fit(X, LABELS)
    assert len(spends(ledger)) == 1


@pytest.mark.parametrize("end", ["deleted", "replaced"])
def test_a_file_that_goes_in_the_middle_of_a_spend(end, path, ledger, X, monkeypatch, tmp_path):
    """The system keeps a deleted file until it is closed: what is written to it nobody will see."""
    write = _ledger_store.write_spend
    other = tmp_path / "other.ledger"
    PrivacyLedger(other, budget=GDP(1.0))

    def write_elsewhere(*arguments):
        path.unlink() if end == "deleted" else other.replace(path)
        write(*arguments)

    estimator = build(DPFrechetMean, ledger)
    with monkeypatch.context() as patch:
        patch.setattr(_ledger_store, "write_spend", write_elsewhere)
        with pytest.raises(PrivacyLedgerError, match="was deleted or replaced while"):
            estimator.fit(X)
    assert_not_fitted(estimator)
    assert path.exists() == (end == "replaced")


def test_a_number_changed_behind_the_ledger(path, ledger, X):
    """A file has no seal: whoever writes to it by other means can make a spend smaller."""
    build(DPFrechetMean, ledger, mu=0.7).fit(X)
    content = path.read_bytes()
    assert content.count(struct.pack(">d", 0.7)) == 1
    path.write_bytes(content.replace(struct.pack(">d", 0.7), struct.pack(">d", 0.1)))
    assert ledger.spent == GDP(0.1)


def test_a_clock_that_goes_backwards(ledger, X, monkeypatch):
    """Times are for reading only: order and sums are those of the entries."""
    times = [datetime(2030, 1, 1, tzinfo=UTC), datetime(1970, 1, 1, tzinfo=UTC)]

    recorded = []
    for time in times:
        clock = SimpleNamespace(now=lambda zone, time=time: time)
        monkeypatch.setattr(_ledger_store, "datetime", clock)
        build(DPFrechetMean, ledger, mu=0.6).fit(X)
        recorded.append(time.isoformat(timespec="seconds"))
    assert [spend.time for spend in ledger.report().spends] == recorded
    assert ledger.spent.mu == pytest.approx(0.6 * np.sqrt(2), rel=1e-12)
    with pytest.raises(PrivacyBudgetError):
        build(DPFrechetMean, ledger, mu=0.6).fit(X)


def die_before_the_noise(estimator, X):
    """Fit in a worker that ends, without a word, when noise is about to be drawn."""
    WrappedGaussian.release = lambda *arguments: os._exit(3)
    estimator.fit(X)


def test_a_worker_that_dies(ledger, X):
    """What it has paid stays spent; nothing came out."""
    estimator = build(DPFrechetMean, ledger, mu=0.6)
    with pytest.raises(TerminatedWorkerError):
        Parallel(2, backend="loky")(delayed(die_before_the_noise)(estimator, X) for _ in range(2))
    paid = len(spends(ledger))
    assert 1 <= paid <= 2
    assert_not_fitted(estimator)
    with closing(sqlite3.connect(ledger.path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    build(DPFrechetMean, ledger, mu=0.5).fit(X)
    assert len(spends(ledger)) == paid + 1


def test_a_budget_that_ends_in_the_middle_of_a_grid_search(path, ledger, X):
    """Four fits of seven are paid for; the others get no score, and the best is not fitted."""
    pipeline = make_pipeline(build(DPFrechetMean, path, mu=0.5), LogisticRegression())
    search = GridSearchCV(pipeline, {"logisticregression__C": [0.1, 1.0]}, cv=3)
    with (
        pytest.warns(FitFailedWarning, match="2 fits failed"),
        pytest.warns(UserWarning, match="non-finite"),
        pytest.raises(PrivacyBudgetError),
    ):
        search.fit(X, LABELS)
    assert len(spends(ledger)) == 4
    assert ledger.spent == GDP(1.0)
    assert_not_fitted(search.best_estimator_["dpfrechetmean"])
    search.set_params(refit=False)
    with pytest.raises(ValueError, match="All the 6 fits failed"):
        search.fit(X, LABELS)
    assert len(spends(ledger)) == 4


def test_a_ledger_put_back_from_a_copy(path, ledger, X):
    """A restored backup forgets, as its documentation says: what was spent since is lost."""
    before = path.read_bytes()
    build(DPFrechetMean, ledger).fit(X)
    path.write_bytes(before)
    assert PrivacyLedger(path).spent == GDP(0.0)
