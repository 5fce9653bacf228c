"""`PrivacyLedger`: what was spent on a data set by all fits, kept in a file under one budget."""

from __future__ import annotations

import math
import os
import unicodedata
from dataclasses import dataclass
from typing import Any

from skdpfrechet._validation import check_positive
from skdpfrechet.privacy import _ledger_store as store
from skdpfrechet.privacy._guarantees import GDP
from skdpfrechet.privacy._ledger_report import (
    COUNTED,
    LedgerReport,
    check_budget,
    remaining_guarantee,
    spent_guarantee,
)


@dataclass(frozen=True, init=False, repr=False)
class PrivacyLedger:
    """A budget for data sets and what was spent of it, in a file shared by all who spend.

    An estimator with ``ledger=`` records the μ of every fit before it reads a record, and raises if
    the budget has not that much left. For releases by other means call `spend` first.

    Parameters
    ----------
    path : str or os.PathLike
        The file, on a local disk.
    budget : GDP, default=None
        Limit, for each data set, on √(Σ μ²) over its releases. Needed to create the file, which
        nothing else does; None opens a file that exists.
    dataset : str, default="default"
        Name of the data set that this handle spends for. Names are yours: data that share
        a record must share a name, and nothing is read from the data that could tell. Printable;
        kept in Unicode form NFC.
    unit : {"record", "group"}, default="record"
        The unit that `spent` and `remaining` speak of. A fit records its own unit: group if it gets
        `groups`.

    Attributes
    ----------
    budget : GDP
        Budget of each data set.
    spent : GDP
        What the releases about the data set reveal together, rounded up.
    remaining : GDP
        The largest spend that is still allowed, rounded down; 0 once a relative 1e-12 is left.

    Raises
    ------
    FileNotFoundError
        If the file does not exist and no budget is given.
    ValueError
        If the file has another budget, the budget is not positive and finite, or a name is empty
        or not printable.
    TypeError
        If an argument has another type.
    PrivacyLedgerError
        If the file cannot be created or is not a ledger. As every use of a handle reads the file,
        every use may raise this and FileNotFoundError.

    Notes
    -----
    Neighbouring relation: replace-one, of a record or of a group with all its records. The budget
    holds for each unit of each data set. A group-unit release counts for a record too, since
    whoever replaces a group may replace one record of it. A record-unit release never counts as
    group-unit: it promises a group nothing that adds up, so `unit="group"` speaks of group-unit
    releases only. Labels and class sizes are public where the fit says so (`DPMDM`).

    A handle holds a path and names, no connection: copies, pickles, threads and other processes
    share the file. Check and entry are one transaction, synced to the disk before `spend` returns.
    What is asked next, and at which μ, may depend on earlier releases: the guarantee of all of them
    is the budget [1]_.

    The file and its companions ``-wal`` and ``-shm`` belong together: move them together, and only
    when nobody uses them. A copy is another ledger, and a restored backup forgets. Network file
    systems do not provide the locks that this needs.

    References
    ----------
    .. [1] A. Smith, A. Thakurta (2022). Fully adaptive composition for Gaussian differential
       privacy. arXiv 2210.17520.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from skdpfrechet.privacy import GDP, PrivacyLedger
    >>> folder = TemporaryDirectory()
    >>> ledger = PrivacyLedger(Path(folder.name, "study.ledger"), budget=GDP(1.0))
    >>> ledger.spend(GDP(0.6), unit="record", description="mean of the first session")
    >>> print(ledger.spent, ledger.remaining, ledger.for_dataset("pilot").remaining)
    0.6-GDP 0.8-GDP 1-GDP
    >>> ledger.spend(GDP(0.9), unit="record", description="mean of the second session")
    Traceback (most recent call last):
        ...
    skdpfrechet...PrivacyBudgetError: mu = 0.9 is more than the budget allows: ...
    >>> folder.cleanup()
    """

    path: str
    dataset: str
    unit: str

    def __init__(
        self,
        path: str | os.PathLike[str],
        budget: GDP | None = None,
        *,
        dataset: str = "default",
        unit: str = "record",
    ) -> None:
        object.__setattr__(self, "path", _check_path(path))
        object.__setattr__(self, "dataset", _check_text("dataset", dataset))
        object.__setattr__(self, "unit", _check_unit(unit))
        if budget is None:
            _ = self.budget
            return
        if not isinstance(budget, GDP):
            raise TypeError(f"budget must be a GDP, such as GDP(1.0), got {budget!r}.")
        mu = check_positive("budget.mu", budget.mu)
        if not os.path.exists(self.path):
            store.create(self.path, mu)
        if self.budget != budget:
            raise ValueError(
                f"budget must be that of the ledger, {self.budget!r}, got {budget!r}; "
                f"the file is {self.path}."
            )

    def __repr__(self) -> str:
        unit = "" if self.unit == "record" else f", unit={self.unit!r}"
        return f"PrivacyLedger({self.path!r}, dataset={self.dataset!r}{unit})"

    def for_dataset(self, dataset: str) -> PrivacyLedger:
        """Return a handle on the same file that spends for another data set."""
        return PrivacyLedger(self.path, dataset=dataset, unit=self.unit)

    def for_unit(self, unit: str) -> PrivacyLedger:
        """Return a handle on the same file and data set whose numbers speak of another unit."""
        return PrivacyLedger(self.path, dataset=self.dataset, unit=unit)

    @property
    def budget(self) -> GDP:
        """Budget of each data set."""
        with store.transaction(self.path) as connection:
            return GDP(store.read_budget(connection))

    @property
    def spent(self) -> GDP:
        """What the releases about the data set reveal of a unit together, rounded up."""
        with store.transaction(self.path) as connection:
            totals = store.read_totals(connection, self.dataset)
        return spent_guarantee(totals, self.unit)

    @property
    def remaining(self) -> GDP:
        """The largest spend for the unit that is still allowed, rounded down."""
        with store.transaction(self.path) as connection:
            budget = store.read_budget(connection)
            totals = store.read_totals(connection, self.dataset)
        return remaining_guarantee(totals, self.unit, budget)

    def spend(self, guarantee: GDP, unit: str, description: str) -> None:
        """Record a release that is about to be made, or refuse it.

        When this returns the entry is on the disk; when it raises nothing may be released.

        Parameters
        ----------
        guarantee : GDP
            What the release costs, positive and finite.
        unit : {"record", "group"}
            What the release protects.
        description : str
            What is released, for the report; printable, and nothing that depends on the records.

        Raises
        ------
        PrivacyBudgetError
            If the budget has not that much left.
        PrivacyLedgerError, FileNotFoundError
            If the file cannot be used.
        ValueError, TypeError
            If an argument is out of range or of another type.
        """
        if not isinstance(guarantee, GDP):
            raise TypeError(f"guarantee must be a GDP, such as GDP(1.0), got {guarantee!r}.")
        mu = check_positive("guarantee.mu", guarantee.mu)
        unit, description = _check_unit(unit), _check_text("description", description)
        with store.transaction(self.path) as connection:
            budget = store.read_budget(connection)
            totals = store.read_totals(connection, self.dataset)
            check_budget(totals, self.dataset, unit, mu, budget)
            store.write_spend(connection, self.dataset, unit, mu, description)

    def report(self) -> LedgerReport:
        """Return all entries of the file, of every data set, as a table and for JSON."""
        with store.transaction(self.path) as connection:
            return LedgerReport(GDP(store.read_budget(connection)), store.read_spends(connection))

    def to_dp_accounting(self) -> Any:
        """Return the releases that `spent` adds up as an event of dp_accounting.

        Returns
        -------
        dp_accounting.ComposedDpEvent
            Of Gaussian mechanisms with noise multiplier 1/μ, rounded towards more spent; equal ones
            are self-composed. What it speaks of is the unit of this handle.

        Raises
        ------
        ImportError
            If dp_accounting is missing; it is in the extra ``accounting``.
        PrivacyLedgerError, FileNotFoundError
            If the file cannot be used.

        Notes
        -----
        μ already belongs to the replace-one relation, and 1/μ is the noise per largest change
        between neighbours. Pass the event to an accountant with its default relation, which takes
        the multiplier as it is: for ``REPLACE_ONE`` it would double the change once more.
        """
        try:
            import dp_accounting  # type: ignore[import-untyped]
        except ImportError:
            raise ImportError(
                "to_dp_accounting needs dp-accounting: pip install 'skdpfrechet[accounting]'."
            ) from None
        with store.transaction(self.path) as connection:
            totals = store.read_totals(connection, self.dataset)
        return dp_accounting.ComposedDpEvent(
            [
                dp_accounting.SelfComposedDpEvent(
                    dp_accounting.GaussianDpEvent(math.nextafter(1 / mu, 0)), count
                )
                for unit, mu, count in totals
                if unit in COUNTED[self.unit]
            ]
        )


def open_ledger(ledger: object) -> PrivacyLedger:
    """Return the ledger that an estimator was given, itself or by the path of an existing file.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    PrivacyLedgerError
        If the file is not a ledger or cannot be used.
    TypeError
        If it is neither a ledger nor a path.
    """
    if isinstance(ledger, PrivacyLedger):
        return ledger
    if isinstance(ledger, str | os.PathLike):
        return PrivacyLedger(ledger)
    raise TypeError(
        f"ledger must be a PrivacyLedger, the path of one or None, got {type(ledger).__name__}."
    )


def charge(
    ledger: object, mu: float, unit: str, random_state: object, description: str
) -> PrivacyLedger | None:
    """Record the μ of a fit in its ledger, and return the ledger; None keeps none.

    Call it once per fit, after the parameters and the shape of the records were checked and before
    any value of a record is read: an error that depends on values would else be a free answer.

    Raises
    ------
    ValueError
        If the seed is fixed or μ infinite: neither gives a guarantee that could be recorded.
    PrivacyBudgetError
        If the budget has not that much left.
    TypeError, FileNotFoundError, PrivacyLedgerError
        As `open_ledger`.
    """
    if ledger is None:
        return None
    handle = open_ledger(ledger)
    if random_state is not None:
        raise ValueError(
            f"random_state must be None with a ledger, got {random_state!r}: whoever knows the "
            "seed can take the noise off again, so no budget bounds what is revealed."
        )
    if math.isinf(mu):
        raise ValueError("mu must be finite with a ledger, got inf.")
    handle.spend(GDP(mu), unit, description)
    return handle


def _check_path(path: object) -> str:
    """Return an absolute path, the same for a process with another working directory."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path must be a string or a path, got {type(path).__name__}.")
    name = os.fspath(path)
    if not isinstance(name, str):
        raise TypeError(f"path must be a string or a path, got one of {type(name).__name__}.")
    return os.path.abspath(name)


def _check_text(name: str, value: object) -> str:
    """Return a text that prints on one line, in the form where equal looks are equal."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, got {type(value).__name__}.")
    if not value.strip() or not value.isprintable():
        raise ValueError(f"{name} must be printable and not empty, got {value!r}.")
    return unicodedata.normalize("NFC", value)


def _check_unit(unit: object) -> str:
    if not isinstance(unit, str) or unit not in store.UNITS:
        raise ValueError(f"unit must be 'record' or 'group', got {unit!r}.")
    return unit
