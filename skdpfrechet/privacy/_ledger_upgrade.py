"""The one step from a ledger of version 0.1 to the present format.

Version 0.1 wrote "group" without saying of what, and "record" for classifiers that protect a record
within its class only.
"""

from __future__ import annotations

from skdpfrechet.privacy import _ledger_store as store
from skdpfrechet.privacy._ledger_units import strictest
from skdpfrechet.privacy._units import Group, Record, SameClass, Unit

_CLASSIFIER = "DPMDM: "  # how the fits of classifiers describe themselves


def upgrade(path: str, partition: str | None, unit: Unit | None) -> None:
    """Write the entries anew with their units, in one transaction: whole or not at all.

    Raises
    ------
    ValueError
        If groups have no name, an entry does not protect `unit`, or the file has the present
        format.
    PrivacyLedgerError, FileNotFoundError
        If it cannot be used.
    """
    with store.transaction(path, store.OLD_VERSION) as connection:
        rows = connection.execute(
            "SELECT id, time, dataset, unit, mu, description FROM spends ORDER BY id"
        ).fetchall()
        units = [_unit(kind, description, partition) for *_, kind, _, description in rows]
        limit = _limit(units, unit)
        budget = store.read_budget(connection)
        for name in store.TRIGGERS:
            connection.execute(f"DROP TRIGGER {name}")
        for name in store.TABLES:
            connection.execute(f"DROP TABLE {name}")
        for statement in store.SCHEMA:
            connection.execute(statement)
        store.write_budget(connection, budget, limit)
        for (number, time, dataset, _, mu, description), protected in zip(rows, units, strict=True):
            connection.execute(
                "INSERT INTO spends (id, time, dataset, unit, mu, description) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                (number, time, dataset, store.encode(protected), mu, description),
            )


def _unit(kind: str, description: str, partition: str | None) -> Unit:
    if kind == "group" and partition is None:
        raise ValueError(
            "partition must name what the groups of this ledger are, such as 'person', got None."
        )
    plain = Record() if kind == "record" or partition is None else Group(partition)
    return SameClass(plain) if description.startswith(_CLASSIFIER) else plain


def _limit(units: list[Unit], wanted: Unit | None) -> Unit:
    """Return the unit of the upgraded ledger: the wanted one, or of a record, as it was counted."""
    candidates = (Record(), SameClass(Record())) if wanted is None else (wanted,)
    limit = strictest(units, candidates)
    if limit is None:
        held = ", ".join(sorted({str(unit) for unit in units}))
        raise ValueError(
            f"unit must be one that every entry of the ledger protects, got {wanted}; its entries "
            f"protect: {held}."
        )
    return limit
