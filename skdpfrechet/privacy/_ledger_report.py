"""The sums of a ledger, exact and rounded against whoever spends, and the report of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from fractions import Fraction
from typing import Any

from skdpfrechet.privacy._guarantees import GDP
from skdpfrechet.privacy._ledger_store import UNITS, Spend, Totals

TOLERANCE = Fraction(1, 10**12)  # relative, of μ: lets 100 spends of 0.1 make 1
# Whoever replaces all records of a group may replace one: a group-unit release holds for a record.
# A record-unit release promises a group nothing that could be added up.
COUNTED = {"record": ("record", "group"), "group": ("group",)}
RECORD_NOTE = (
    "the line of a record counts group-unit releases too, as they concern every record of a group"
)
GROUP_NOTE = (
    "the line of a group speaks of group-unit releases only; record-unit releases of the same data "
    "set protect a record, not a group, and this ledger bounds nothing of theirs for a group"
)
_TOTALS = ("data set", "unit", "releases", "spent", "remaining")
_SPENDS = ("time (UTC)", "data set", "unit", "mu", "description")


class PrivacyBudgetError(ValueError):
    """A spend is larger than what the budget has left. It was not made, nothing is released.

    A ValueError: with a smaller μ the same call would pass. Trouble with the file is a
    `PrivacyLedgerError` instead.
    """


def spent_square(totals: Totals, unit: str) -> Fraction:
    """Return Σ μ² of the spends that count for a unit, without rounding."""
    counted = COUNTED[unit]
    return sum(
        (count * Fraction(mu) ** 2 for kind, mu, count in totals if kind in counted), Fraction(0)
    )


def units_charged(unit: str) -> tuple[str, ...]:
    """Return the units whose budget a spend for this unit is taken from."""
    return tuple(counting for counting in UNITS if unit in COUNTED[counting])


def check_budget(totals: Totals, dataset: str, unit: str, mu: float, budget: float) -> None:
    """Raise if a spend for a unit is beyond the budget by more than rounding explains."""
    limit = (Fraction(budget) * (1 + TOLERANCE)) ** 2
    for charged in units_charged(unit):
        square = spent_square(totals, charged)
        if _is_exhausted(square, budget) or square + Fraction(mu) ** 2 > limit:
            raise PrivacyBudgetError(
                f"mu = {mu:.6g} is more than the budget allows: for a {charged} of data set "
                f"{dataset!r} it is {GDP(budget)}, of which {spent_guarantee(totals, charged)} was "
                f"spent and {remaining_guarantee(totals, unit, budget)} remains; nothing was "
                "recorded or released."
            )


def spent_guarantee(totals: Totals, unit: str) -> GDP:
    """Return what was spent for a unit, rounded up."""
    return GDP(_root(spent_square(totals, unit), up=True))


def remaining_guarantee(totals: Totals, unit: str, budget: float) -> GDP:
    """Return the largest spend for a unit that the budget allows, rounded down, to 0 if tiny."""
    square = max(spent_square(totals, charged) for charged in units_charged(unit))
    if _is_exhausted(square, budget):
        return GDP(0.0)
    return GDP(_root(Fraction(budget) ** 2 - square, up=False))


def _is_exhausted(square: Fraction, budget: float) -> bool:
    """Return whether rounding alone is left: the tolerance is no budget for small spends."""
    return square >= (Fraction(budget) * (1 - TOLERANCE)) ** 2


def _root(square: Fraction, up: bool) -> float:
    """Return the nearest float on one side of the exact root, of squares beyond float64 too."""
    if square == 0:
        return 0.0
    shift = (square.numerator.bit_length() - square.denominator.bit_length()) // 2
    root = math.ldexp(math.sqrt(square / Fraction(4) ** shift), shift)
    while up and Fraction(root) ** 2 < square:
        root = math.nextafter(root, math.inf)
    while not up and Fraction(root) ** 2 > square:
        root = math.nextafter(root, 0)
    return root


@dataclass(frozen=True)
class LedgerReport:
    """All that a ledger holds; prints as a table.

    Parameters
    ----------
    budget : GDP
        Budget of each data set.
    spends : tuple of Spend
        The entries, the oldest first: `time`, `dataset`, `unit`, `mu`, `description`.

    Notes
    -----
    Printed numbers are rounded up for what was spent, down for what remains.

    Examples
    --------
    >>> from skdpfrechet.privacy import GDP, LedgerReport
    >>> print(LedgerReport(GDP(1.0), ()))
    budget  1-GDP for each data set
    nothing was spent
    """

    budget: GDP
    spends: tuple[Spend, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return strings, finite numbers, lists and dicts of these only, as JSON has them."""
        return {
            "budget_mu": self.budget.mu,
            "data_sets": [
                {
                    "data_set": dataset,
                    "unit": unit,
                    "releases": sum(count for kind, _, count in totals if kind == unit),
                    "spent_mu": spent_guarantee(totals, unit).mu,
                    "remaining_mu": remaining_guarantee(totals, unit, self.budget.mu).mu,
                }
                for dataset, unit, totals in self._lines()
            ],
            "spends": [
                {
                    "time": spend.time,
                    "data_set": spend.dataset,
                    "unit": spend.unit,
                    "mu": spend.mu,
                    "description": spend.description,
                }
                for spend in self.spends
            ],
            "notes": list(self._notes()),
        }

    def __str__(self) -> str:
        head = f"budget  {self.budget} for each data set"
        if not self.spends:
            return f"{head}\nnothing was spent"
        facts = self.to_dict()
        totals = [
            (
                line["data_set"],
                line["unit"],
                str(line["releases"]),
                _rounded(line["spent_mu"], ROUND_CEILING),
                _rounded(line["remaining_mu"], ROUND_FLOOR),
            )
            for line in facts["data_sets"]
        ]
        spends = [
            (
                spend.time[:19],
                spend.dataset,
                spend.unit,
                _rounded(spend.mu, ROUND_CEILING),
                spend.description,
            )
            for spend in self.spends
        ]
        lines = [head, "", *_table(_TOTALS, totals), "", *_table(_SPENDS, spends)]
        if facts["notes"]:
            lines += ["", *(f"- {note}" for note in facts["notes"])]
        return "\n".join(lines)

    def _lines(self) -> list[tuple[str, str, Totals]]:
        """Return data set, unit and spends of the data set for every unit that was spent for.

        A record always has a line: it pays for groups as well.
        """
        lines = []
        for dataset in dict.fromkeys(spend.dataset for spend in self.spends):
            totals = [(s.unit, s.mu, 1) for s in self.spends if s.dataset == dataset]
            units = {counting for unit, _, _ in totals for counting in units_charged(unit)}
            lines += [(dataset, unit, totals) for unit in UNITS if unit in units]
        return lines

    def _notes(self) -> tuple[str, ...]:
        if all(spend.unit == "record" for spend in self.spends):
            return ()
        return (RECORD_NOTE, GROUP_NOTE)


def _rounded(value: float, rounding: str) -> str:
    """Four significant digits, rounded in one direction but for the tolerance."""
    slack = float(TOLERANCE) if rounding == ROUND_FLOOR else -float(TOLERANCE)
    return f"{float(Context(prec=4, rounding=rounding).create_decimal(value * (1 + slack))):.4g}"


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in (head, *rows)]
