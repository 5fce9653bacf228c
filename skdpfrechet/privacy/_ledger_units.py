"""Which releases a ledger can add up: those that protect its unit, of one partition per data set.

Everything that is let in counts with its whole μ, so that a sum needs no exceptions.
"""

from __future__ import annotations

from collections.abc import Iterable

from skdpfrechet.privacy._units import Group, Record, SameClass, Unit, partition_of


def check_unit(limit: Unit, unit: Unit, held: Iterable[Unit], dataset: str) -> None:
    """Raise if a spend for `unit` does not belong in a data set of a ledger.

    Parameters
    ----------
    limit : Unit
        Unit of the ledger.
    unit : Unit
        What the spend protects.
    held : iterable of Unit
        What the entries of the data set protect.
    dataset : str

    Raises
    ------
    ValueError
        If it does not protect `limit`, or speaks of another partition than an entry does.
    """
    if not unit.protects(limit):
        raise ValueError(
            f"unit must protect that of this ledger, {limit}, got {unit}: {_way_out(limit, unit)}"
        )
    named = partition_of(unit)
    for other in map(partition_of, held):
        if None not in (named, other) and named != other:
            raise ValueError(
                f"unit must be {other!r}, the partition of data set {dataset!r} of this ledger, "
                f"got {named!r}: one {other} may be in several groups of the other partition, and "
                f"no sum would say what both reveal; pass the groups of unit={other!r}, or "
                f"{_another(repr(named), f'one {other}')}"
            )


def _way_out(limit: Unit, unit: Unit) -> str:
    wanted = partition_of(limit)
    if wanted is not None and partition_of(unit) != wanted:
        what = "a record" if partition_of(unit) is None else "a group of another partition"
        return (
            f"what protects {what} bounds nothing of one {wanted} with several; pass groups and "
            f"unit={wanted!r} to the fit, or "
            f"{_another(repr(partition_of(unit) or 'record'), f'one {wanted}')}"
        )
    assert isinstance(limit, Record | Group)  # what keeps its class is protected by all the rest
    return (
        "it does not protect one whose class changes; use another ledger, with "
        f"unit={SameClass(limit)!r}: it counts releases without classes as well, and its budget "
        "holds for all that keep their class."
    )


def _another(unit: str, whom: str) -> str:
    return (
        f"use another ledger, with unit={unit}, a separate account: neither of the two says what "
        f"both together reveal of {whom}."
    )


def strictest(units: Iterable[Unit], candidates: Iterable[Unit]) -> Unit | None:
    """Return the first candidate that all units protect, or None."""
    held = tuple(units)
    return next((c for c in candidates if all(unit.protects(c) for unit in held)), None)
