"""Ledgers of version 0.1: refused with one sentence, opened by one step, whole or not at all."""

import json
import os
import signal
import sqlite3
import threading
from contextlib import closing

import pytest

from skdpfrechet.privacy import (
    GDP,
    Group,
    PrivacyBudgetError,
    PrivacyLedger,
    PrivacyLedgerError,
    Record,
    SameClass,
    _ledger_store,
)
from skdpfrechet.privacy._ledger import charge
from tests.privacy.test_ledger import limited_files, needs_fork

PERSON = Group("person")
OLD_SCHEMA = """
BEGIN IMMEDIATE;
CREATE TABLE budget (mu REAL NOT NULL CHECK (typeof(mu) = 'real' AND mu > 0 AND mu < 9e999));
CREATE TABLE spends (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    time TEXT NOT NULL,
    dataset TEXT NOT NULL,
    unit TEXT NOT NULL CHECK (unit IN ('record', 'group')),
    mu REAL NOT NULL CHECK (typeof(mu) = 'real' AND mu > 0 AND mu < 9e999),
    description TEXT NOT NULL
);
CREATE TRIGGER budget_stays BEFORE UPDATE ON budget
    BEGIN SELECT RAISE(ABORT, 'the budget of a ledger never changes'); END;
CREATE TRIGGER spends_stay BEFORE UPDATE ON spends
    BEGIN SELECT RAISE(ABORT, 'a spend is never changed'); END;
CREATE TRIGGER spends_are_kept BEFORE DELETE ON spends
    BEGIN SELECT RAISE(ABORT, 'a spend is never deleted'); END;
PRAGMA application_id = 1181893744;
PRAGMA user_version = 1;
COMMIT;
"""
INSERT = "INSERT INTO spends (time, dataset, unit, mu, description) VALUES (?, ?, ?, ?, ?)"
TIME = "2026-11-30T10:00:00+00:00"
MEANS = [
    (TIME, "eeg", "group", 0.3, "DPFrechetMean: mean, second moment"),
    (TIME, "eeg", "record", 0.4, "DPFrechetMean: mean, second moment"),
    (TIME, "pilot", "group", 0.5, "DPFrechetVariance: mean, variance"),
]
CLASSES = [
    *MEANS,
    (TIME, "eeg", "record", 0.2, "DPMDM: mean of every class"),
    (TIME, "eeg", "group", 0.1, "DPMDM: mean of every class"),
]


def make_old(path, rows=MEANS, budget=1.0):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(OLD_SCHEMA)
        connection.execute("INSERT INTO budget VALUES (?)", (budget,))
        connection.executemany(INSERT, rows)
    return path


def rows_of(path):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        return connection.execute(
            "SELECT time, dataset, unit, mu, description FROM spends ORDER BY id"
        ).fetchall()


@pytest.fixture
def old(tmp_path):
    return make_old(tmp_path / "study.ledger")


def test_until_then_every_use_names_the_step(old):
    message = (
        r"is one of version 0\.1, which did not say what its groups are: "
        r"PrivacyLedger\.upgrade\(path, partition='person'\) or 'skdpfrechet ledger upgrade"
    )
    for call in (
        lambda: PrivacyLedger(old),
        lambda: PrivacyLedger(old, budget=GDP(1.0)),
        lambda: charge(str(old), 0.1, Record(), None, "mean"),
    ):
        with pytest.raises(PrivacyLedgerError, match=message):
            call()
    assert rows_of(old) == MEANS


def test_one_step_and_all_keeps_counting(old):
    ledger = PrivacyLedger.upgrade(old, partition="person", dataset="eeg")
    assert (ledger.budget, ledger.unit, ledger.dataset) == (GDP(1.0), Record(), "eeg")
    spends = ledger.report().spends
    assert [(s.time, s.dataset, s.mu, s.description) for s in spends] == [
        (time, dataset, mu, description) for time, dataset, _, mu, description in MEANS
    ]
    assert [s.unit for s in spends] == [PERSON, Record(), PERSON]
    assert ledger.spent.mu == pytest.approx(0.5, rel=1e-15)
    assert ledger.for_dataset("pilot").spent == GDP(0.5)
    ledger.spend(GDP(0.8), "person", "mean")
    with pytest.raises(PrivacyBudgetError):
        ledger.spend(GDP(0.6), "record", "mean")
    with pytest.raises(ValueError, match="partition of data set 'eeg'"):
        ledger.spend(GDP(0.1), "session", "mean")
    assert len(PrivacyLedger(old, budget=GDP(1.0)).report().spends) == 4
    with pytest.raises(ValueError, match="got one of the present format"):
        PrivacyLedger.upgrade(old, partition="person")


def test_groups_need_a_name(old, tmp_path):
    with pytest.raises(ValueError, match=r"partition must name what the groups .* got None"):
        PrivacyLedger.upgrade(old)
    for bad in ("", "record", " person"):
        with pytest.raises(ValueError, match="partition must"):
            PrivacyLedger.upgrade(old, partition=bad)
    assert rows_of(old) == MEANS
    records = make_old(tmp_path / "records", [row for row in MEANS if row[2] == "record"])
    assert PrivacyLedger.upgrade(records).report().spends[0].unit == Record()
    empty = make_old(tmp_path / "empty", [])
    assert PrivacyLedger.upgrade(empty, unit="person").unit == PERSON


def test_the_budget_is_for_what_every_entry_protects(tmp_path):
    groups = [row for row in MEANS if row[2] == "group"]
    ledger = PrivacyLedger.upgrade(
        make_old(tmp_path / "groups", groups), partition="person", unit="person"
    )
    assert ledger.unit == PERSON
    mixed = make_old(tmp_path / "mixed")
    with pytest.raises(ValueError, match=r"unit must be one that every entry .* person.*: person"):
        PrivacyLedger.upgrade(mixed, partition="person", unit="person")
    assert rows_of(mixed) == MEANS


def test_classifiers_protected_what_keeps_its_class(tmp_path):
    path = make_old(tmp_path / "classes", CLASSES)
    with pytest.raises(ValueError, match="unit must be one that every entry"):
        PrivacyLedger.upgrade(path, partition="person", unit="record")
    ledger = PrivacyLedger.upgrade(path, partition="person", dataset="eeg")
    assert ledger.unit == SameClass(Record())
    kept = [spend.unit for spend in ledger.report().spends][3:]
    assert kept == [SameClass(Record()), SameClass(PERSON)]
    assert ledger.spent.mu == pytest.approx((0.3**2 + 0.4**2 + 0.2**2 + 0.1**2) ** 0.5)


def test_other_files_are_refused_and_left_alone(tmp_path, old):
    with pytest.raises(FileNotFoundError):
        PrivacyLedger.upgrade(tmp_path / "missing", partition="person")
    (tmp_path / "text").write_text("mu,unit\n" * 1000)
    with pytest.raises(PrivacyLedgerError, match="not a ledger, or it is damaged"):
        PrivacyLedger.upgrade(tmp_path / "text", partition="person")
    with closing(sqlite3.connect(old)) as connection:
        connection.execute("DROP TRIGGER spends_are_kept")
    with pytest.raises(PrivacyLedgerError, match="damaged: its tables were changed"):
        PrivacyLedger.upgrade(old, partition="person")
    assert rows_of(old) == MEANS


def test_a_process_of_the_old_version_can_write_no_more(old):
    """It may have looked at the format before, and write after."""
    PrivacyLedger.upgrade(old, partition="person")
    with closing(sqlite3.connect(old)) as connection:
        for unit in ("record", "group"):
            with pytest.raises(sqlite3.IntegrityError):
                connection.execute(INSERT, (TIME, "eeg", unit, 0.1, "mean"))


def test_of_several_that_upgrade_one_does(old):
    outcomes = []

    def work():
        try:
            outcomes.append(PrivacyLedger.upgrade(old, partition="person").unit)
        except ValueError as error:
            outcomes.append(str(error))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes.count(Record()) == 1
    assert sum("present format" in str(outcome) for outcome in outcomes) == 3
    assert len(PrivacyLedger(old).report().spends) == 3


@pytest.mark.parametrize("size", [0, 4096, 9000])
def test_a_full_disk_leaves_the_old_ledger(old, size):
    with limited_files(size), pytest.raises(PrivacyLedgerError, match="disk"):
        PrivacyLedger.upgrade(old, partition="person")
    assert rows_of(old) == MEANS
    assert len(PrivacyLedger.upgrade(old, partition="person").report().spends) == 3


# --- killed midway -------------------------------------------------------------------------------


def whole(path):
    """Whether the ledger was upgraded; either way nothing of it is lost."""
    old_words = {"record": Record(), "group": PERSON}
    wanted = [(*row[:2], old_words[row[2]], *row[3:]) for row in MEANS]
    upgraded = rows_of(path) != MEANS
    if not upgraded:
        with pytest.raises(PrivacyLedgerError, match=r"is one of version 0\.1"):
            PrivacyLedger(path)
        PrivacyLedger.upgrade(path, partition="person")
    assert PrivacyLedger(path).budget == GDP(1.0)
    held = PrivacyLedger(path).report().spends
    assert [(s.time, s.dataset, s.unit, s.mu, s.description) for s in held] == wanted
    return upgraded


def run_and_die(path, prepare):
    """Upgrade in a child that kills itself where `prepare` has put it; return whether it did."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            prepare()
            PrivacyLedger.upgrade(path, partition="person")
            status = 0
        finally:
            os._exit(status)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status) or status == 0
    return os.WIFSIGNALED(status)


def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)


@needs_fork
def test_a_kill_at_every_statement(tmp_path):
    connect, upgraded = _ledger_store._connect, []
    for last in range(1000):
        path = make_old(tmp_path / f"{last}")

        def die_there(last=last):
            count = iter(range(last))

            def traced(name):
                connection = connect(name)
                connection.set_trace_callback(lambda _: next(count, None) is None and die())
                return connection

            _ledger_store._connect = traced

        killed = run_and_die(path, die_there)
        upgraded.append(whole(path))
        if not killed:
            break
    assert upgraded == sorted(upgraded)  # old ledgers first, then new ones
    assert upgraded[-1]
    assert upgraded.count(False) > 20


@needs_fork
def test_a_kill_at_every_write(old, tmp_path):
    """All that a commit writes goes to the log first; then the log is copied to the file.

    The file as it was, with every beginning of the log; and every beginning of the copy, with the
    log, which is dropped last.
    """

    def die_after_the_commit():
        _ledger_store._check_place = die

    before = old.read_bytes()
    assert run_and_die(old, die_after_the_commit)
    log = old.with_name(f"{old.name}-wal")
    written = log.read_bytes()
    assert old.read_bytes() == before
    assert len(written) > 4096
    frame = 24 + int.from_bytes(written[8:12], "big")
    lengths = [0, 16, *range(32, len(written), frame), *range(32 + 24 + 99, len(written), frame)]
    for number, length in enumerate(sorted(lengths)):
        path = tmp_path / f"log-{number}"
        path.write_bytes(before)
        path.with_name(f"{path.name}-wal").write_bytes(written[:length])
        # Only the last frame commits; behind it the log may hold nothing else.
        assert not whole(path)
    assert whole(old)
    page, after = frame - 24, old.read_bytes()
    for number, copied in enumerate(range(0, len(after) + 1, page)):
        path = tmp_path / f"copy-{number}"
        path.write_bytes(after[:copied] + before[copied:])
        path.with_name(f"{path.name}-wal").write_bytes(written)
        assert whole(path)


def test_the_report_of_an_upgraded_ledger_is_json(old):
    report = PrivacyLedger.upgrade(old, partition="person").report()
    facts = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert [spend["receipt"] for spend in facts["spends"]] == [None] * 3
