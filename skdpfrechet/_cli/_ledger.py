"""The commands that keep a ledger."""

from __future__ import annotations

import argparse
from pathlib import Path

from skdpfrechet._validation import check_positive
from skdpfrechet.privacy import GDP, PrivacyLedger


def create(args: argparse.Namespace) -> None:
    """Make a ledger with a budget."""
    path, budget = Path(args.file), GDP(check_positive("mu", args.mu))
    if path.exists():
        raise ValueError(f"{path} is there already; a budget is set once.")
    PrivacyLedger(path, budget)
    print(f"created {path} with a budget of {budget} for each data set")


def show(args: argparse.Namespace) -> None:
    """Print what was spent and what remains."""
    print(open_ledger(args.file).report())


def open_ledger(path: str, dataset: str = "default") -> PrivacyLedger:
    """Return a ledger that exists."""
    if not Path(path).is_file():
        raise ValueError(f"there is no ledger {path}; 'skdpfrechet ledger create' makes one.")
    return PrivacyLedger(path, dataset=dataset)
