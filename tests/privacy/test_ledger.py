"""The ledger under arithmetic, copies, races, kills and broken files.

Every failure must leave the sum as it was or larger, and say why in one sentence.
"""

import copy
import json
import math
import os
import pickle
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing, contextmanager
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import dp_accounting
import joblib
import pytest
from dp_accounting.pld import PLDAccountant
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, clone

from skdpfrechet.privacy import (
    GDP,
    Group,
    PrivacyBudgetError,
    PrivacyLedger,
    PrivacyLedgerError,
    Record,
    _ledger_store,
    compose,
)
from skdpfrechet.privacy._ledger import charge, open_ledger
from skdpfrechet.privacy._ledger_report import (
    TOLERANCE,
    check_budget,
    remaining_guarantee,
    spent_guarantee,
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "study.ledger"


@pytest.fixture
def ledger(path):
    return PrivacyLedger(path, budget=GDP(1.0))


def spend(ledger, mu, unit="record"):
    ledger.spend(GDP(mu), unit, "mean")


# --- arithmetic ----------------------------------------------------------------------------------


def test_spends_add_up_to_the_budget_and_not_beyond(ledger):
    assert (ledger.budget, ledger.spent, ledger.remaining) == (GDP(1.0), GDP(0.0), GDP(1.0))
    spend(ledger, 0.6)
    assert ledger.spent == GDP(0.6)
    assert ledger.remaining.mu == pytest.approx(0.8, rel=1e-12)
    with pytest.raises(PrivacyBudgetError, match=r"mu = 0\.81 .* 1-GDP, .* 0\.6-GDP .* 0\.8-GDP"):
        spend(ledger, 0.81)
    assert ledger.spent == GDP(0.6)
    spend(ledger, 0.8)
    assert ledger.spent.mu == pytest.approx(1.0, rel=1e-12)
    assert ledger.remaining == GDP(0.0)


def test_rounding_neither_refuses_the_last_spend_nor_allows_another(ledger):
    for _ in range(100):
        spend(ledger, 0.1)
    assert ledger.spent == compose(*[GDP(0.1)] * 100)
    for mu in (0.1, 1e-6, 1e-12, 1e-200):
        with pytest.raises(PrivacyBudgetError):
            spend(ledger, mu)


@given(st.lists(st.floats(1e-3, 1.0), max_size=12), st.floats(0.1, 3.0), st.floats(1e-9, 4.0))
def test_a_spend_passes_exactly_when_the_exact_sum_allows_it(spends, budget, mu):
    totals = [(value, 1) for value in spends]
    before = sum(Fraction(value) ** 2 for value in spends)
    after = before + Fraction(mu) ** 2
    try:
        check_budget(totals, "d", Record(), mu, budget)
    except PrivacyBudgetError:
        used_up = before >= (Fraction(budget) * (1 - TOLERANCE)) ** 2
        assert used_up or after > Fraction(budget) ** 2
    else:
        assert after <= (Fraction(budget) * (1 + Fraction(1, 10**12))) ** 2
    left = remaining_guarantee(totals, budget)
    assert left.mu == 0 or compose(spent_guarantee(totals), left).mu <= budget * (1 + 1e-12)
    if left.mu > 0:
        check_budget(totals, "d", Record(), left.mu, budget)


@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1.0, 1e200, 1e300])
def test_sums_are_exact_at_every_scale(scale):
    totals = [(3 * scale, 1), (2 * scale, 4)]
    assert spent_guarantee(totals).mu == pytest.approx(5 * scale, rel=1e-15)
    left = remaining_guarantee(totals, 13 * scale).mu
    assert left == pytest.approx(12 * scale, rel=1e-15)
    check_budget(totals, "d", Record(), left, 13 * scale)
    with pytest.raises(PrivacyBudgetError):
        check_budget(totals, "d", Record(), 12.001 * scale, 13 * scale)


def test_data_sets_have_budgets_of_their_own(ledger):
    other = ledger.for_dataset("other")
    spend(ledger, 1.0)
    assert other.remaining == GDP(1.0)
    spend(other, 1.0)
    assert PrivacyLedger(ledger.path, dataset="other").spent == GDP(1.0)


@pytest.mark.parametrize("mu", [0.0, math.inf])
def test_a_spend_must_be_positive_and_finite(ledger, mu):
    with pytest.raises(ValueError, match=r"guarantee\.mu must be"):
        spend(ledger, mu)


def test_arguments_are_checked(path, ledger):
    with pytest.raises(TypeError, match="guarantee must be a GDP"):
        ledger.spend(1.0, "record", "mean")
    with pytest.raises(TypeError, match="unit must be 'record', the name of a partition"):
        spend(ledger, 0.1, 3)
    for bad in ("", " person", "Record", "a\nb"):
        with pytest.raises(ValueError, match="partition must"):
            spend(ledger, 0.1, bad)
    with pytest.raises(TypeError, match="budget must be a GDP"):
        PrivacyLedger(path, budget=1.0)
    with pytest.raises(ValueError, match=r"budget\.mu must be finite"):
        PrivacyLedger(path, budget=GDP(math.inf))
    with pytest.raises(ValueError, match=r"budget\.mu must be positive"):
        PrivacyLedger(path, budget=GDP(0.0))
    for bad in (b"study", 3, None):
        with pytest.raises(TypeError, match="path must be a string or a path"):
            PrivacyLedger(bad)
    assert ledger.spent == GDP(0.0)


# --- names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["Hände", "脳波", "🧠", "a b", "'; DROP TABLE spends; --", '"', "%_?", "x" * 10_000]
)
def test_any_printable_name_is_a_name(ledger, name):
    named = ledger.for_dataset(name)
    named.spend(GDP(0.5), "record", name)
    assert (named.spent, ledger.spent) == (GDP(0.5), GDP(0.0))
    (entry,) = ledger.report().spends
    assert (entry.dataset, entry.description) == (name, name)


def test_names_that_look_the_same_are_the_same(ledger):
    spend(ledger.for_dataset("caf\u00e9"), 0.5)
    assert ledger.for_dataset("cafe\u0301").spent == GDP(0.5)


@pytest.mark.parametrize(
    "name", ["", " ", "a\nb", "a\x00b", "\x1b[2J", "\ud800", "zero\u200bwidth"]
)
def test_other_names_are_refused(ledger, name):
    with pytest.raises(ValueError, match="dataset must be printable and not empty"):
        ledger.for_dataset(name)
    with pytest.raises(ValueError, match="description must be printable and not empty"):
        ledger.spend(GDP(0.1), "record", name)


@pytest.mark.parametrize(
    "name", ["a b?c#d%20.ledger", "Größe 脳.ledger", ":memory:", "file:x?mode=ro"]
)
def test_the_file_may_have_any_name(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    ledger = PrivacyLedger(name, budget=GDP(1.0))
    spend(ledger, 0.5)
    assert os.listdir() == [name]
    assert PrivacyLedger(Path(name)).spent == GDP(0.5)


# --- opening -------------------------------------------------------------------------------------


def test_reopening(path, ledger):
    spend(ledger, 0.6)
    for reopened in (PrivacyLedger(path), PrivacyLedger(str(path), budget=GDP(1.0))):
        assert reopened == ledger
        assert (reopened.budget, reopened.spent) == (GDP(1.0), GDP(0.6))
    for budget in (GDP(2.0), GDP(math.nextafter(1.0, 2.0))):
        with pytest.raises(ValueError, match=r"budget must be that of the ledger, GDP\(mu=1\.0\)"):
            PrivacyLedger(path, budget=budget)


def test_who_creates_too_late_changes_nothing(path, ledger):
    spend(ledger, 0.6)
    _ledger_store.create(
        ledger.path, 2.0, Record()
    )  # as if the file had appeared after the look for it
    assert (ledger.budget, ledger.spent) == (GDP(1.0), GDP(0.6))
    assert [entry.name for entry in path.parent.iterdir()] == ["study.ledger"]


def test_only_a_budget_creates_the_file(path):
    for call in (lambda: PrivacyLedger(path), lambda: open_ledger(path)):
        with pytest.raises(FileNotFoundError, match="there is no ledger at"):
            call()
    assert not path.exists()


def test_a_handle_never_brings_a_deleted_file_back(path, ledger):
    path.unlink()
    for call in (lambda: spend(ledger, 0.1), lambda: ledger.spent, lambda: ledger.report()):
        with pytest.raises(FileNotFoundError):
            call()
    assert not path.exists()


def test_nothing_but_the_file_is_left(path, ledger):
    spend(ledger, 0.1)
    assert [entry.name for entry in path.parent.iterdir()] == ["study.ledger"]


def test_a_folder_that_does_not_exist(tmp_path):
    with pytest.raises(PrivacyLedgerError, match="could not be created"):
        PrivacyLedger(tmp_path / "no" / "ledger", budget=GDP(1.0))


def test_commits_are_synced_and_in_wal_mode(path, ledger):
    with _ledger_store.transaction(ledger.path) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL


def test_entries_can_be_neither_changed_nor_deleted(path, ledger):
    spend(ledger, 0.5)
    with closing(sqlite3.connect(path)) as connection:
        for statement in (
            "UPDATE spends SET mu = 0.1",
            "DELETE FROM spends",
            "UPDATE budget SET mu = 9.0",
            "UPDATE budget SET unit = 'x'",
            "INSERT INTO spends SELECT 9, time, dataset, unit, -1.0, description, 'r' FROM spends",
            "INSERT INTO spends SELECT 9, time, dataset, unit, 'NaN', description, 'r' FROM spends",
            "INSERT INTO spends SELECT 9, time, dataset, 'record', mu, description, '' FROM spends",
        ):
            with pytest.raises(sqlite3.IntegrityError):
                connection.execute(statement)
    assert ledger.spent == GDP(0.5)


# --- what an estimator calls ---------------------------------------------------------------------


def test_charge(path, ledger):
    assert charge(None, math.inf, Record(), 0, "mean").receipt is None
    receipts = [
        charge(ledger, 0.3, Record(), None, "mean").receipt,
        charge(str(path), 0.4, Record(), None, "mean").receipt,
        charge(path, 0.5, Group("person"), None, "mean").receipt,
    ]
    assert receipts == [entry.receipt for entry in ledger.report().spends]
    assert len(set(receipts)) == 3
    assert ledger.spent == compose(GDP(0.3), GDP(0.4), GDP(0.5))
    for seed in (0, 7, True):
        with pytest.raises(ValueError, match="random_state must be None with a ledger"):
            charge(ledger, 0.1, Record(), seed, "mean")
    with pytest.raises(ValueError, match="mu must be finite with a ledger"):
        charge(ledger, math.inf, Record(), None, "mean")
    with pytest.raises(TypeError, match="ledger must be a PrivacyLedger, the path of one or None"):
        charge(3, 0.1, Record(), None, "mean")
    assert len(ledger.report().spends) == 3


class Fitted(BaseEstimator):
    def __init__(self, mu=0.1, ledger=None):
        self.mu = mu
        self.ledger = ledger

    def fit(self, X, y=None):
        charge(self.ledger, self.mu, Record(), None, "fit")
        return self


def test_copies_spend_from_the_same_file(ledger, monkeypatch, tmp_path):
    copies = [
        copy.deepcopy(ledger),
        copy.copy(ledger),
        pickle.loads(pickle.dumps(ledger)),
        clone(Fitted(ledger=ledger)).ledger,
    ]
    monkeypatch.chdir("/")  # as another process may have
    for handle in copies:
        assert handle == ledger
        spend(handle, 0.1)
    clone(Fitted(ledger=ledger)).fit(None)
    assert ledger.spent == compose(*[GDP(0.1)] * 5)
    assert repr(ledger) in repr(Fitted(ledger=ledger))


def test_unpickling_needs_no_file(path, ledger):
    path.unlink()
    assert pickle.loads(pickle.dumps(ledger)) == ledger
    assert not path.exists()


@pytest.mark.parametrize("error", [PrivacyBudgetError, PrivacyLedgerError])
def test_errors_come_back_from_other_processes(error):
    copied = pickle.loads(pickle.dumps(error("one sentence.")))
    assert type(copied) is error
    assert str(copied) == "one sentence."


# --- at the same time ----------------------------------------------------------------------------


def try_to_spend(ledger, mu):
    try:
        spend(ledger, mu)
    except PrivacyBudgetError:
        return False
    return True


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_joblib_workers_share_the_budget(ledger, backend):
    tasks = (joblib.delayed(try_to_spend)(ledger, 0.25) for _ in range(24))
    passed = joblib.Parallel(n_jobs=2, backend=backend)(tasks)
    assert sum(passed) == 16
    assert ledger.spent == GDP(1.0)


def test_threads_race_for_the_last_spend(ledger):
    passed = []
    threads = [
        threading.Thread(target=lambda: passed.append(try_to_spend(ledger, 0.5))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(passed) == 4
    assert ledger.spent == GDP(1.0)


def test_threads_race_to_create(path):
    made = []
    threads = [
        threading.Thread(target=lambda: made.append(PrivacyLedger(path, budget=GDP(1.0))))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 8
    assert PrivacyLedger(path).budget == GDP(1.0)


COMMON = """
import json, os, random, signal, sys, threading, time
from skdpfrechet.privacy import GDP, PrivacyBudgetError, PrivacyLedger
path = sys.argv[1]
def fork(task, *arguments):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(reading)
            task(writing, *arguments)
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    return child, reading
def collect(child, reading):
    status = os.waitpid(child, 0)[1]
    with os.fdopen(reading) as pipe:
        return status, pipe.read().split()
"""

# Eight processes, which also create the file, race for 40 spends; each may make 10.
RACE = """
def race(pipe):
    ledger = PrivacyLedger(path, budget=GDP(2.0))
    for _ in range(10):
        try:
            ledger.spend(GDP(2.0 / 40**0.5), "record", "race")
        except PrivacyBudgetError:
            os.write(pipe, b"refused ")
        else:
            os.write(pipe, b"released ")
outcomes = [collect(*child) for child in [fork(race) for _ in range(8)]]
print(json.dumps(outcomes))
"""

# A child releases without end and is killed at a random instant, half of the time from its start
# and half from its first release on. Waits are in units of what a spend takes.
KILL = """
def release(pipe, i):
    ledger = PrivacyLedger(path)
    k = 0
    while True:
        ledger.spend(GDP(1e-3), "record", f"{i}.{k}")
        os.write(pipe, f"{i}.{k} ".encode())
        k += 1
ledger = PrivacyLedger(path, budget=GDP(1.0))
start = time.perf_counter()
ledger.spend(GDP(1e-3), "record", "first")
wait = 3 * (time.perf_counter() - start)
random.seed(0)
released = ["first"]
for i in range(120):
    child, reading = fork(release, i)
    first = os.read(reading, 100).decode() if i % 2 else ""
    time.sleep(random.uniform(0, wait))
    os.kill(child, signal.SIGKILL)
    status, rest = collect(child, reading)
    assert os.WIFSIGNALED(status), status
    released += (first + " ".join(rest)).split()
print(json.dumps(released))
"""

# A killed creator leaves no half-made ledger: there is none, or it works.
KILL_CREATION = """
from skdpfrechet.privacy import _ledger_store
start = time.perf_counter()
PrivacyLedger(path, budget=GDP(1.0))
wait = 3 * (time.perf_counter() - start)
random.seed(1)
made = 0
for i in range(24):
    target = f"{path}.{i}"
    child, reading = fork(lambda pipe: PrivacyLedger(target, budget=GDP(1.0)))
    if i == 23:
        os.read(reading, 1)  # one child ends by itself, and the first is killed at once
    elif i:
        time.sleep(random.uniform(0, wait))
    os.kill(child, signal.SIGKILL)
    collect(child, reading)
    made += os.path.exists(target)
    PrivacyLedger(target, budget=GDP(1.0)).spend(GDP(1.0), "record", "after")
print(json.dumps(made))
"""

# Children forked while threads of the parent spend must not inherit the middle of it.
FORK_UNDER_THREADS = """
ledger = PrivacyLedger(path, budget=GDP(1.0))
stop, counts = threading.Event(), []
def work():
    count = 0
    while not stop.is_set():
        ledger.spend(GDP(1e-3), "record", "thread")
        count += 1
    counts.append(count)
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads:
    thread.start()
child_outcomes = []
for _ in range(15):
    child = fork(lambda pipe: ledger.spend(GDP(1e-3), "record", "child"))
    child_outcomes.append(collect(*child)[0])
stop.set()
for thread in threads:
    thread.join()
print(json.dumps([sum(counts), child_outcomes]))
"""

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")


def run(script, path):
    """Run it in a fresh interpreter, whose children need not import again."""
    command = [sys.executable, "-W", "ignore", "-c", COMMON + script, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@needs_fork
def test_processes_race_for_the_last_spend(path):
    outcomes = run(RACE, path)
    assert [status for status, _ in outcomes] == [0] * 8
    words = [word for _, said in outcomes for word in said]
    assert (words.count("released"), words.count("refused")) == (40, 40)
    ledger = PrivacyLedger(path)
    assert len(ledger.report().spends) == 40
    assert ledger.spent.mu == pytest.approx(2.0, rel=1e-12)


@needs_fork
def test_no_kill_leaves_a_release_off_the_record(path):
    released = run(KILL, path)
    recorded = [entry.description for entry in PrivacyLedger(path).report().spends]
    assert len(released) > 60  # every second child waits for its first
    assert set(released) <= set(recorded)
    assert (
        len(set(recorded)) == len(recorded) <= len(released) + 150
    )  # each may die between the two


@needs_fork
def test_no_kill_leaves_half_a_ledger(path):
    made = run(KILL_CREATION, path)
    assert 0 < made < 24  # kills came before and after


@needs_fork
def test_forks_while_threads_spend(path):
    by_threads, statuses = run(FORK_UNDER_THREADS, path)
    assert statuses == [0] * 15
    assert len(PrivacyLedger(path).report().spends) == by_threads + 15


# --- broken files --------------------------------------------------------------------------------


def damage_header(path):
    path.write_bytes(b"\x00" * 100 + path.read_bytes()[100:])


def damage_pages(path):
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\xa5" * (len(content) - 4096))


def drop_table(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE spends")


def drop_trigger(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TRIGGER spends_are_kept")


def empty_budget(path):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DELETE FROM budget")


def foreign(path):
    path.unlink()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE spends (mu REAL)")


def other_version(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 3")


def folder_instead(path):
    path.unlink()
    path.mkdir()


BREAKAGES = {
    "empty": (lambda path: path.write_bytes(b""), "is not a ledger"),
    "text": (lambda path: path.write_text("mu,unit\n" * 1000), "not a ledger, or it is damaged"),
    "header": (damage_header, "not a ledger, or it is damaged"),
    "pages": (damage_pages, "is damaged"),
    "one page": (lambda path: os.truncate(path, 4096), "is damaged"),
    "half a page": (lambda path: os.truncate(path, 6000), "is damaged"),
    "no table": (drop_table, "damaged: its tables were changed"),
    "no trigger": (drop_trigger, "damaged: its tables were changed"),
    "no budget": (empty_budget, "damaged: it has no budget"),
    "foreign": (foreign, "is not a ledger"),
    "version": (other_version, "must have format 2, got 3"),
    "folder": (folder_instead, "it is not a file"),
}


@pytest.mark.parametrize("name", BREAKAGES)
def test_broken_files_are_refused_and_left_alone(path, ledger, name):
    breakage, message = BREAKAGES[name]
    spend(ledger, 0.5)
    breakage(path)
    content = None if path.is_dir() else path.read_bytes()
    for call in (
        lambda: spend(ledger, 0.1),
        lambda: ledger.remaining,
        lambda: charge(str(path), 0.1, Record(), None, "mean"),
        lambda: PrivacyLedger(path, budget=GDP(1.0)),
    ):
        with pytest.raises(PrivacyLedgerError, match=message) as caught:
            call()
        assert caught.value.__cause__ is None
    assert content is None or path.read_bytes() == content


def test_a_locked_ledger_times_out(path, ledger, monkeypatch):
    monkeypatch.setattr(_ledger_store, "TIMEOUT", 0.05)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        with pytest.raises(PrivacyLedgerError, match="another connection keeps it locked"):
            spend(ledger, 0.1)
        connection.execute("ROLLBACK")
    spend(ledger, 0.1)
    assert ledger.spent == GDP(0.1)


def fill(ledger):
    """Spend until the entries take pages that the disk does not have."""
    for _ in range(200):
        ledger.spend(GDP(1e-3), "record", "x" * 1000)


def limit_pages(monkeypatch):
    pragmas = (*_ledger_store._DURABLE, "PRAGMA max_page_count = 8")
    monkeypatch.setattr(_ledger_store, "_DURABLE", pragmas)


@contextmanager
def limited_files(size):
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_records_nothing_of_what_it_refuses(ledger, monkeypatch):
    with monkeypatch.context() as patch:
        limit_pages(patch)
        with pytest.raises(PrivacyLedgerError, match="the disk is full"):
            fill(ledger)
        recorded = len(ledger.report().spends)
        assert 0 < recorded < 200
    spend(ledger, 0.1)
    assert len(ledger.report().spends) == recorded + 1


@pytest.mark.parametrize("size", [0, 4096, 9000])
def test_a_write_that_the_system_refuses(ledger, size):
    spend(ledger, 0.1)
    with limited_files(size), pytest.raises(PrivacyLedgerError, match="disk"):
        fill(ledger)
    recorded = len(ledger.report().spends)
    spend(ledger, 0.1)
    assert len(ledger.report().spends) == recorded + 1


def test_creation_on_a_full_disk_leaves_no_file(path):
    with limited_files(4096), pytest.raises(PrivacyLedgerError, match="could not be created"):
        PrivacyLedger(path, budget=GDP(1.0))
    assert list(path.parent.iterdir()) == []


@contextmanager
def without_root():
    """Permissions do not bind root, so become somebody else for a while."""
    if not hasattr(os, "geteuid"):
        pytest.skip("needs POSIX permissions")
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


@pytest.fixture
def open_folder():
    """A folder that anyone can reach."""
    with TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        yield Path(folder)


@pytest.mark.parametrize(("file_mode", "folder_mode"), [(0o444, 0o777), (0o666, 0o555)])
def test_read_only_files_and_folders(open_folder, file_mode, folder_mode):
    path = open_folder / "study.ledger"
    ledger = PrivacyLedger(path, budget=GDP(1.0))
    path.chmod(file_mode)
    open_folder.chmod(folder_mode)
    message = "read-only|its folder is not writable"
    with without_root():
        with pytest.raises(PrivacyLedgerError, match=message):
            spend(ledger, 0.1)
        if folder_mode == 0o555:
            with pytest.raises(PrivacyLedgerError, match="could not be created"):
                PrivacyLedger(open_folder / "other", budget=GDP(1.0))
    open_folder.chmod(0o777)
    path.chmod(0o666)
    assert ledger.spent == GDP(0.0)


# --- report and events ---------------------------------------------------------------------------


def test_report(ledger):
    assert (
        str(ledger.report()) == "budget  1-GDP for each record of each data set\nnothing was spent"
    )
    spend(ledger, 0.6)
    ledger.for_dataset("pilot").spend(GDP(1 / 3), "person", "variance")
    report = ledger.report()
    lines = [line for line in str(report).splitlines() if line]
    assert lines[:4] == [
        "budget  1-GDP for each record of each data set",
        "data set  releases  spent   remaining",
        "default   1         0.6     0.8",
        "pilot     1         0.3334  0.9428",
    ]
    assert lines[4].split() == ["time", "(UTC)", "data", "set", "unit", "mu", "description"]
    assert lines[5].split()[1:] == ["default", "record", "0.6", "mean"]
    assert lines[6].split()[1:] == [
        "pilot", "person", "(all", "its", "records)", "0.3334", "variance"
    ]  # fmt: skip
    (note,) = lines[7:]
    assert note.startswith("- releases that protect a whole person count for its records, if a")
    with pytest.raises(AttributeError):
        report.budget = GDP(2.0)


def test_report_is_json(ledger):
    spend(ledger, 0.6)
    facts = json.loads(json.dumps(ledger.report().to_dict(), allow_nan=False))
    assert facts["budget_mu"] == 1.0
    (line,) = facts["data_sets"]
    assert line == {
        "data_set": "default",
        "releases": 1,
        "spent_mu": 0.6,
        "remaining_mu": pytest.approx(0.8),
    }
    (entry,) = facts["spends"]
    assert entry["time"].endswith("+00:00")
    assert facts["unit"] == entry["unit"] == {"kind": "record"}
    assert (entry["mu"], entry["description"], entry["receipt"]) == (0.6, "mean", None)


def test_events_of_dp_accounting_have_the_same_epsilon(ledger):
    for mu in (0.3, 0.3, 0.5):
        spend(ledger, mu)
    spend(ledger, 0.2, "person")
    accountant = PLDAccountant()
    accountant.compose(ledger.to_dp_accounting())
    for delta in (1e-3, 1e-6):
        exact = ledger.spent.epsilon(delta)
        # The accountant rounds the loss up, to multiples of 1e-4, for each event.
        assert exact - 1e-9 <= accountant.get_epsilon(delta) <= exact + 1e-3


@settings(deadline=None, max_examples=10)
@given(st.lists(st.floats(0.01, 0.3), min_size=1, max_size=5))
def test_event_multipliers_compose_to_what_was_spent(tmp_path_factory, spends):
    ledger = PrivacyLedger(tmp_path_factory.mktemp("events") / "l", budget=GDP(1.0))
    for mu in spends:
        spend(ledger, mu)
    event = ledger.to_dp_accounting()
    assert isinstance(event, dp_accounting.ComposedDpEvent)
    square = sum(part.count / part.event.noise_multiplier**2 for part in event.events)
    assert ledger.spent.mu <= math.sqrt(square) * (1 + 1e-15)
    assert math.sqrt(square) == pytest.approx(ledger.spent.mu, rel=1e-14)


def test_an_empty_ledger_is_an_empty_event(ledger):
    accountant = PLDAccountant()
    accountant.compose(ledger.to_dp_accounting())
    assert accountant.get_epsilon(1e-6) == 0


def test_events_without_dp_accounting_name_the_extra(ledger, monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    with pytest.raises(ImportError, match=r"skdpfrechet\[accounting\]"):
        ledger.to_dp_accounting()
