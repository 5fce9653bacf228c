"""The SQLite file behind a ledger: created whole, written in one transaction, refused if damaged.

A connection lives for one operation only. So a handle can be copied, pickled and used by threads
and by other processes, and nothing is left half done when one of them is killed.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from skdpfrechet.privacy._units import Unit, as_unit

TIMEOUT = 30.0  # seconds to wait for another process
APPLICATION_ID = 0x46724470  # tells a ledger from any other SQLite file
VERSION = 2
OLD_VERSION = 1  # of 0.1: units were the words "record" and "group"

# FULL syncs every commit to the disk, on macOS with the sync that empties the drive's own cache.
_DURABLE = (
    "PRAGMA synchronous = FULL",
    "PRAGMA fullfsync = ON",
    "PRAGMA checkpoint_fullfsync = ON",
)
_MU = "mu REAL NOT NULL CHECK (typeof(mu) = 'real' AND mu > 0 AND mu < 9e999)"
# A word of version 0.1 is no unit, should a process of it write here after an upgrade.
_UNIT = "unit TEXT NOT NULL CHECK (unit LIKE '{%}')"
SCHEMA = (
    f"CREATE TABLE budget ({_MU}, {_UNIT})",
    f"""CREATE TABLE spends (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    time TEXT NOT NULL,
    dataset TEXT NOT NULL,
    {_UNIT},
    {_MU},
    description TEXT NOT NULL,
    receipt TEXT UNIQUE
)""",
    """CREATE TRIGGER budget_stays BEFORE UPDATE ON budget
    BEGIN SELECT RAISE(ABORT, 'the budget of a ledger never changes'); END""",
    """CREATE TRIGGER spends_stay BEFORE UPDATE ON spends
    BEGIN SELECT RAISE(ABORT, 'a spend is never changed'); END""",
    """CREATE TRIGGER spends_are_kept BEFORE DELETE ON spends
    BEGIN SELECT RAISE(ABORT, 'a spend is never deleted'); END""",
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {VERSION}",
)
TABLES = ("budget", "spends")
TRIGGERS = ("budget_stays", "spends_stay", "spends_are_kept")
_NAMES = {*TABLES, *TRIGGERS}
_CAUSES = {
    sqlite3.SQLITE_BUSY: "another connection keeps it locked",
    sqlite3.SQLITE_LOCKED: "another connection keeps it locked",
    sqlite3.SQLITE_READONLY: "the file or its folder is read-only",
    sqlite3.SQLITE_PERM: "the file or its folder is read-only",
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_IOERR: "the disk cannot be read or written, it may be full",
    sqlite3.SQLITE_CANTOPEN: "it is not a file, or its folder is not writable",
    sqlite3.SQLITE_NOTADB: "it is not a ledger, or it is damaged",
    sqlite3.SQLITE_CORRUPT: "it is damaged",
}
Totals = list[tuple[float, int]]
"""How often each μ was spent."""

# Forking while a connection is open would hand the child SQLite's notes about locks that it does
# not hold. So operations of one process take turns, and a fork waits for its turn.
_turn = threading.Lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_turn.acquire, after_in_parent=_turn.release, after_in_child=_turn.release
    )


class PrivacyLedgerError(OSError):
    """The file of a ledger cannot be used: locked, read-only, damaged, gone, no ledger, disk full.

    A spend that raises it must be taken as not made: nothing is released. It may be on record all
    the same if the disk failed at the very end.
    """


@dataclass(frozen=True)
class Spend:
    """One entry of a ledger: UTC time in ISO format, what was spent, and for what.

    The receipt is the random name by which a release knows the entry that paid for it, if it does.
    """

    time: str
    dataset: str
    unit: Unit
    mu: float
    description: str
    receipt: str | None = None


def create(path: str, budget: float, unit: Unit) -> None:
    """Make a ledger with no spends; leave a file that is there already as it is.

    It is made elsewhere and linked to its name when complete: under its own name no process ever
    sees half a ledger, and of several that create it one wins. Whoever is killed meanwhile leaves a
    hidden folder next to it, of no use to anyone.
    """
    target = Path(path)
    try:
        with TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-") as folder:
            draft = Path(folder, "ledger")
            with closing(sqlite3.connect(draft, isolation_level=None)) as connection:
                _make_durable(connection)
                connection.execute("BEGIN IMMEDIATE")
                for statement in SCHEMA:
                    connection.execute(statement)
                write_budget(connection, budget, unit)
                connection.execute("COMMIT")
            os.link(draft, target)
        if os.name == "posix":
            _sync_folder(target.parent)
    except FileExistsError:
        return
    except (OSError, sqlite3.Error) as error:
        raise PrivacyLedgerError(f"the ledger {path} could not be created: {error}.") from None


def _sync_folder(folder: Path) -> None:
    """Make the name of a new file survive a power failure."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def transaction(path: str, version: int = VERSION) -> Iterator[sqlite3.Connection]:
    """Lock the ledger for writing, check that it is one, and commit at the end; all or nothing.

    Readers take the lock as well: what they see then is whole, and they need no second path.

    Raises
    ------
    FileNotFoundError
        If there is no file.
    PrivacyLedgerError
        If anything else is wrong with it.
    """
    if not os.path.exists(path):
        raise FileNotFoundError(
            f"there is no ledger at {path}; PrivacyLedger(path, budget=GDP(mu)) creates one."
        )
    identity = os.stat(path)
    try:
        with _turn, closing(_connect(path)) as connection:
            _check_kind(connection, path, version)
            _make_durable(connection)
            connection.execute("BEGIN IMMEDIATE")
            try:
                _check_kind(connection, path, version)  # an upgrade may have come in between
                _check_health(connection, path)
                yield connection
                connection.execute("COMMIT")
                _check_place(path, identity)
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the primary code
        cause = _CAUSES.get(code, "the operation failed")
        raise PrivacyLedgerError(
            f"the ledger {path} cannot be used: {cause} (SQLite: {error})."
        ) from None


def _connect(path: str) -> sqlite3.Connection:
    """Open the file without ever creating one; transactions are begun by hand."""
    uri = Path(path).as_uri() + "?mode=rw"
    return sqlite3.connect(uri, uri=True, timeout=TIMEOUT, isolation_level=None)


def _check_kind(connection: sqlite3.Connection, path: str, wanted: int) -> None:
    """Refuse foreign files, before anything is changed in them."""
    (kind,) = connection.execute("PRAGMA application_id").fetchone()
    if kind != APPLICATION_ID:
        raise PrivacyLedgerError(f"the file {path} is not a ledger, or it is damaged.")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version == wanted:
        return
    if version == OLD_VERSION:
        raise PrivacyLedgerError(
            f"the ledger {path} is one of version 0.1, which did not say what its groups are: "
            "PrivacyLedger.upgrade(path, partition='person') or 'skdpfrechet ledger upgrade FILE "
            "--partition person' names them once, and then it goes on."
        )
    if version == VERSION:
        raise ValueError(
            f"path must be a ledger of version 0.1, got one of the present format: {path}."
        )
    raise PrivacyLedgerError(
        f"the ledger {path} must have format {wanted}, got {version}; "
        "another version of skdpfrechet made it."
    )


def _check_place(path: str, identity: os.stat_result) -> None:
    """Refuse what was written to a file that lost its name meanwhile: nobody will read it again."""
    with suppress(FileNotFoundError):
        if os.path.samestat(os.stat(path), identity):
            return
    raise PrivacyLedgerError(f"the ledger {path} was deleted or replaced while it was in use.")


def _make_durable(connection: sqlite3.Connection) -> None:
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise PrivacyLedgerError(f"a ledger needs SQLite's WAL mode, which its folder gave {mode}.")
    for pragma in _DURABLE:
        connection.execute(pragma)


def _check_health(connection: sqlite3.Connection, path: str) -> None:
    (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        raise PrivacyLedgerError(f"the ledger {path} is damaged: {verdict}.")
    names = connection.execute("SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'")
    if {name for (name,) in names} != _NAMES:
        raise PrivacyLedgerError(f"the ledger {path} is damaged: its tables were changed.")
    if connection.execute("SELECT count(*) FROM budget").fetchone() != (1,):
        raise PrivacyLedgerError(f"the ledger {path} is damaged: it has no budget.")


def read_budget(connection: sqlite3.Connection) -> float:
    """Return the μ of the budget."""
    return float(connection.execute("SELECT mu FROM budget").fetchone()[0])


def read_unit(connection: sqlite3.Connection) -> Unit:
    """Return the unit of the budget."""
    return _decode(connection.execute("SELECT unit FROM budget").fetchone()[0])


def write_budget(connection: sqlite3.Connection, mu: float, unit: Unit) -> None:
    """Set the budget, once."""
    connection.execute("INSERT INTO budget (mu, unit) VALUES (?, ?)", (mu, encode(unit)))


def read_totals(connection: sqlite3.Connection, dataset: str) -> Totals:
    """Return what a data set has spent."""
    return connection.execute(
        "SELECT mu, count(*) FROM spends WHERE dataset = ? GROUP BY mu ORDER BY mu", (dataset,)
    ).fetchall()


def read_units(connection: sqlite3.Connection, dataset: str) -> list[Unit]:
    """Return what the entries of a data set protect."""
    rows = connection.execute("SELECT DISTINCT unit FROM spends WHERE dataset = ?", (dataset,))
    return [_decode(text) for (text,) in rows]


def read_spends(connection: sqlite3.Connection) -> tuple[Spend, ...]:
    """Return all entries, the oldest first."""
    rows = connection.execute(
        "SELECT time, dataset, unit, mu, description, receipt FROM spends ORDER BY id"
    )
    return tuple(Spend(time, name, _decode(unit), *rest) for time, name, unit, *rest in rows)


def has_receipt(connection: sqlite3.Connection, dataset: str, receipt: str | None) -> bool:
    """Return whether an entry of the data set has this receipt."""
    rows = connection.execute(
        "SELECT 1 FROM spends WHERE dataset = ? AND receipt = ?", (dataset, receipt)
    )
    return rows.fetchone() is not None


def write_spend(
    connection: sqlite3.Connection,
    dataset: str,
    unit: Unit,
    mu: float,
    description: str,
    receipt: str | None,
) -> None:
    """Add an entry."""
    time = datetime.now(UTC).isoformat(timespec="seconds")
    connection.execute(
        "INSERT INTO spends (time, dataset, unit, mu, description, receipt) "
        "VALUES (?, ?, ?, ?, ?, ?)",
        (time, dataset, encode(unit), mu, description, receipt),
    )


def encode(unit: Unit) -> str:
    """Return the text of a unit in the file."""
    return json.dumps(unit.to_dict(), sort_keys=True)


def _decode(text: str) -> Unit:
    try:
        return as_unit(json.loads(text))
    except (ValueError, TypeError):
        pass
    raise PrivacyLedgerError("the ledger is damaged: an entry names no unit.")
