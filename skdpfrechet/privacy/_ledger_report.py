"""The sums of a ledger, exact and rounded against whoever spends, and the report of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from fractions import Fraction
from typing import Any

from skdpfrechet.privacy._guarantees import GDP
from skdpfrechet.privacy._ledger_store import Spend, Totals
from skdpfrechet.privacy._units import RECORD, SameClass, Unit, partition_of

TOLERANCE = Fraction(1, 10**12)  # relative, of μ: lets 100 spends of 0.1 make 1
GROUP_NOTE = (
    "releases that protect a whole {0} count for its records, if a record stays with its {0}: one "
    "that changes it changes two, at up to twice the mu"
)
CLASS_NOTE = "all this holds for what keeps its class in every classifier; labels are public"
_TOTALS = ("data set", "releases", "spent", "remaining")
_SPENDS = ("time (UTC)", "data set", "unit", "mu", "description")


class PrivacyBudgetError(ValueError):
    """A spend is larger than what the budget has left. It was not made, nothing is released.

    A ValueError: with a smaller μ the same call would pass. Trouble with the file is a
    `PrivacyLedgerError` instead.
    """


def spent_square(totals: Totals) -> Fraction:
    """Return Σ μ² of the spends, without rounding."""
    return sum((count * Fraction(mu) ** 2 for mu, count in totals), Fraction(0))


def check_budget(totals: Totals, dataset: str, unit: Unit, mu: float, budget: float) -> None:
    """Raise if a spend is beyond the budget for a unit by more than rounding explains."""
    limit = (Fraction(budget) * (1 + TOLERANCE)) ** 2
    square = spent_square(totals)
    if _is_exhausted(square, budget) or square + Fraction(mu) ** 2 > limit:
        raise PrivacyBudgetError(
            f"mu = {mu:.6g} is more than the budget allows: for each {unit} of data set "
            f"{dataset!r} it is {GDP(budget)}, of which {spent_guarantee(totals)} was spent and "
            f"{remaining_guarantee(totals, budget)} remains; nothing was recorded or released."
        )


def spent_guarantee(totals: Totals) -> GDP:
    """Return what was spent, rounded up."""
    return GDP(_root(spent_square(totals), up=True))


def remaining_guarantee(totals: Totals, budget: float) -> GDP:
    """Return the largest spend that the budget allows, rounded down, to 0 if tiny."""
    square = spent_square(totals)
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
        Budget for each unit of each data set.
    spends : tuple of Spend
        The entries, the oldest first: `time`, `dataset`, `unit`, `mu`, `description`, `receipt`.
    unit : Unit, default=Record()
        What the budget and the sums speak of.

    Notes
    -----
    Printed numbers are rounded up for what was spent, down for what remains.

    Examples
    --------
    >>> from skdpfrechet.privacy import GDP, Group, LedgerReport
    >>> print(LedgerReport(GDP(1.0), (), Group("person")))
    budget  1-GDP for each person (all its records) of each data set
    nothing was spent
    """

    budget: GDP
    spends: tuple[Spend, ...]
    unit: Unit = RECORD

    def to_dict(self) -> dict[str, Any]:
        """Return strings, None, finite numbers, lists and dicts of these only, as JSON has them."""
        return {
            "budget_mu": self.budget.mu,
            "unit": self.unit.to_dict(),
            "data_sets": [
                {
                    "data_set": dataset,
                    "releases": len(totals),
                    "spent_mu": spent_guarantee(totals).mu,
                    "remaining_mu": remaining_guarantee(totals, self.budget.mu).mu,
                }
                for dataset, totals in self._lines()
            ],
            "spends": [
                {
                    "time": spend.time,
                    "data_set": spend.dataset,
                    "unit": spend.unit.to_dict(),
                    "mu": spend.mu,
                    "description": spend.description,
                    "receipt": spend.receipt,
                }
                for spend in self.spends
            ],
            "notes": list(self._notes()),
        }

    def __str__(self) -> str:
        head = f"budget  {self.budget} for each {self.unit} of each data set"
        if not self.spends:
            return f"{head}\nnothing was spent"
        facts = self.to_dict()
        totals = [
            (
                line["data_set"],
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
                str(spend.unit),
                _rounded(spend.mu, ROUND_CEILING),
                spend.description,
            )
            for spend in self.spends
        ]
        lines = [head, "", *_table(_TOTALS, totals), "", *_table(_SPENDS, spends)]
        if facts["notes"]:
            lines += ["", *(f"- {note}" for note in facts["notes"])]
        return "\n".join(lines)

    def _lines(self) -> list[tuple[str, Totals]]:
        """Return every data set with its spends."""
        return [
            (dataset, [(spend.mu, 1) for spend in self.spends if spend.dataset == dataset])
            for dataset in dict.fromkeys(spend.dataset for spend in self.spends)
        ]

    def _notes(self) -> tuple[str, ...]:
        notes = []
        if partition_of(self.unit) is None:
            named = dict.fromkeys(partition_of(spend.unit) for spend in self.spends)
            notes += [GROUP_NOTE.format(name) for name in named if name is not None]
        if isinstance(self.unit, SameClass):
            notes.append(CLASS_NOTE)
        return tuple(notes)


def _rounded(value: float, rounding: str) -> str:
    """Four significant digits, rounded in one direction but for the tolerance."""
    slack = float(TOLERANCE) if rounding == ROUND_FLOOR else -float(TOLERANCE)
    return f"{float(Context(prec=4, rounding=rounding).create_decimal(value * (1 + slack))):.4g}"


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in (head, *rows)]
