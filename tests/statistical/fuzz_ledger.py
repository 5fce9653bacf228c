"""The ledgers of the fuzzer: what a case is given, and what has to be on record afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from pathlib import Path
from typing import Any

from skdpfrechet.privacy import (
    GDP,
    Group,
    PrivacyBudgetError,
    PrivacyLedger,
    Record,
    SameClass,
    Unit,
)

KINDS = {
    "none": 75.0,
    "rich": 8.0,
    "exact": 1.5,  # a file of its own, by its path, with just enough
    "long name": 2.0,
    "group": 1.0,
    "poor": 5.0,
    "missing": 2.0,
    "damaged": 2.0,
    "wrong type": 1.0,
}
BROKEN = ("missing", "damaged", "wrong type")
PER_FILE = 500  # cases; every use of a ledger checks the whole file
VALUES = r"X must contain (?!square)|The Fréchet mean did not reach"  # errors that values decide


def open_ledger(case: Any, directory: Path) -> Any:
    """Return what the case gives as `ledger`."""
    if case.ledger == "none":
        return None
    if case.ledger == "wrong type":
        return 3
    path = directory / f"{case.ledger}.ledger"
    # What keeps its class is protected by the fits of all estimators, groups' too.
    unit = SameClass(Group("person") if case.ledger == "group" else Record())
    if case.ledger == "missing":
        return str(path)
    if case.ledger == "damaged":
        path.write_text("mu,unit\n" * 1000, encoding="utf-8")
        return str(path)
    if case.ledger == "exact":
        for name in directory.glob(f"{path.name}*"):
            name.unlink()
        mu = case.parameters["mu"]
        usable = isinstance(mu, float) and 0 < mu < inf
        PrivacyLedger(
            path, budget=GDP(mu * (1.5 if case.reuse else 1.0) if usable else 1.0), unit=unit
        )
        return str(path)
    if case.ledger == "poor":
        return PrivacyLedger(path, budget=GDP(1e-13), dataset=f"case {case.number}", unit=unit)
    kind = "group" if case.ledger == "group" else "rich"
    path = directory / f"{kind}-{case.number // PER_FILE}.ledger"
    name = f"case {case.number}" + " of a study" * (1000 if case.ledger == "long name" else 0)
    return PrivacyLedger(path, budget=GDP(1e6), dataset=name, unit=unit)


def unit_of(case: Any) -> Unit:
    """Return what the fits of a case protect."""
    partition = case.parameters.get("unit") or "group"
    plain = Record() if case.groups is None else Group(partition)
    return SameClass(plain) if case.estimator == "DPMDM" else plain


def entries(case: Any, ledger: Any) -> list[tuple[Unit, float]]:
    """Return unit and μ of what the data set of the case has spent."""
    if case.ledger in ("none", *BROKEN):
        return []
    handle = ledger if isinstance(ledger, PrivacyLedger) else PrivacyLedger(ledger)
    spends = handle.report().spends
    return [(spend.unit, spend.mu) for spend in spends if spend.dataset == handle.dataset]


def refuses(case: Any) -> bool:
    """Whether the ledger can take no fit of the case."""
    records = case.ledger == "group" and case.groups is None  # they bound nothing of a person
    return records or case.ledger in ("poor", *BROKEN)


def check_ledger(
    case: Any, new: list[tuple[Unit, float]], error: BaseException | None, about_values: bool
) -> Iterator[str]:
    """Every release is on record; what failed before the charge is not, what failed after it is."""
    if case.ledger == "none":
        return
    one = (unit_of(case), case.parameters["mu"])
    fits = 2 if case.reuse else 1
    if error is None:
        allowed = [fits] if not refuses(case) else []
    elif refuses(case) or isinstance(error, PrivacyBudgetError):
        allowed = [0] if not about_values else []  # no value was paid for
    elif about_values:
        allowed = list(range(1, fits + 1))
    else:
        allowed = list(range(fits))
    if not any(new == [one] * count for count in allowed):
        end = "released" if error is None else f"{type(error).__name__}: {error}"
        yield f"ledger: {case.ledger}, {len(new)} entries after {end}"
