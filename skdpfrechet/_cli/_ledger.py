"""The commands that keep a ledger."""

from __future__ import annotations

import argparse
from pathlib import Path

from skdpfrechet._validation import check_positive
from skdpfrechet.privacy import GDP, Group, PrivacyLedger, Record, SameClass, Unit, as_unit


def create(args: argparse.Namespace) -> None:
    """Make a ledger with a budget."""
    path, budget = Path(args.file), GDP(check_positive("mu", args.mu))
    if path.exists():
        raise ValueError(f"{path} is there already; a budget is set once.")
    unit = _unit(args) or Record()
    PrivacyLedger(path, budget, unit=unit)
    print(f"created {path} with a budget of {budget} for each {unit} of each data set")


def upgrade(args: argparse.Namespace) -> None:
    """Name what the groups of a ledger of version 0.1 are, for good."""
    _check_file(args.file)
    ledger = PrivacyLedger.upgrade(args.file, partition=args.partition, unit=_unit(args))
    print(f"{args.file} goes on with a budget of {ledger.budget} for each {ledger.unit}")


def show(args: argparse.Namespace) -> None:
    """Print what was spent and what remains."""
    print(open_ledger(args.file).report())


def open_ledger(path: str, dataset: str = "default") -> PrivacyLedger:
    """Return a ledger that exists."""
    _check_file(path)
    return PrivacyLedger(path, dataset=dataset)


def _check_file(path: str) -> None:
    if not Path(path).is_file():
        raise ValueError(f"there is no ledger {path}; 'skdpfrechet ledger create' makes one.")


def _unit(args: argparse.Namespace) -> Unit | None:
    """Return the unit that the arguments name, None if they say nothing of it."""
    unit = None if args.unit is None else as_unit(args.unit)
    if not args.same_class:
        return unit
    return SameClass(unit if isinstance(unit, Group) else Record())
