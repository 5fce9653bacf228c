"""`PrivacyLedger`: what was spent on a data set by all fits, kept in a file under one budget."""

from __future__ import annotations

import math
import os
import secrets
from dataclasses import dataclass
from typing import Any

from skdpfrechet._validation import check_positive, check_text
from skdpfrechet.privacy import _ledger_store as store
from skdpfrechet.privacy._guarantees import GDP
from skdpfrechet.privacy._ledger_report import (
    LedgerReport,
    check_budget,
    remaining_guarantee,
    spent_guarantee,
)
from skdpfrechet.privacy._ledger_units import check_unit
from skdpfrechet.privacy._ledger_upgrade import upgrade
from skdpfrechet.privacy._units import Record, Unit, as_unit, partition_of


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
        Limit, for each unit of each data set, on √(Σ μ²) over its releases. Needed to create the
        file, which nothing else does; None opens a file that exists.
    dataset : str, default="default"
        Name of the data set that this handle spends for. Names are yours: data that share
        a record must share a name, and nothing is read from the data that could tell. Printable;
        kept in Unicode form NFC.
    unit : str or Unit, default=None
        What the budget is for, set once with the file: ``"record"``, the name of a partition such
        as ``"person"``, or a `SameClass`. None is ``"record"`` for a new file, and whatever it is
        for one that exists.

    Attributes
    ----------
    budget : GDP
        Budget for each unit of each data set.
    unit : Unit
        What the budget, `spent` and `remaining` speak of.
    spent : GDP
        What the releases about the data set reveal together, rounded up.
    remaining : GDP
        The largest spend that is still allowed, rounded down; 0 once a relative 1e-12 is left.

    Raises
    ------
    FileNotFoundError
        If the file does not exist and no budget is given.
    ValueError
        If the file has another budget or unit, the budget is not positive and finite, or a name is
        empty or not printable.
    TypeError
        If an argument has another type.
    PrivacyLedgerError
        If the file cannot be created, is not a ledger or is one of version 0.1, see `upgrade`. As
        every use of a handle reads the file, every use may raise this and FileNotFoundError.

    Notes
    -----
    Neighbouring relation: that of `unit`. A release is let in if it protects the unit, and counts
    with its whole μ. One for a group protects its records as well, since whoever replaces a group
    may replace one record of it; that assumes a record that stays with its group, as one that
    changes its group changes two. One for a record bounds nothing of a group with several, one
    within a class (`DPMDM`) nothing of a record whose class changes, and one person may be in many
    sessions: a ledger whose unit is not protected refuses the release, and no data set holds two
    partitions. Another ledger is a separate account. Neither of the two then says what both reveal
    together.

    A handle holds a path and a name, no connection: copies, pickles, threads and other processes
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

    def __init__(
        self,
        path: str | os.PathLike[str],
        budget: GDP | None = None,
        *,
        dataset: str = "default",
        unit: str | Unit | None = None,
    ) -> None:
        object.__setattr__(self, "path", _check_path(path))
        object.__setattr__(self, "dataset", check_text("dataset", dataset))
        wanted = None if unit is None else as_unit(unit)
        if budget is not None:
            if not isinstance(budget, GDP):
                raise TypeError(f"budget must be a GDP, such as GDP(1.0), got {budget!r}.")
            mu = check_positive("budget.mu", budget.mu)
            if not os.path.exists(self.path):
                store.create(self.path, mu, wanted or Record())
        with store.transaction(self.path) as connection:
            held = GDP(store.read_budget(connection)), store.read_unit(connection)
        for name, value, set_once in zip(("budget", "unit"), (budget, wanted), held, strict=True):
            if value is not None and value != set_once:
                raise ValueError(
                    f"{name} must be that of the ledger, {set_once!r}, got {value!r}; it is set "
                    f"once, and the file is {self.path}."
                )

    def __repr__(self) -> str:
        return f"PrivacyLedger({self.path!r}, dataset={self.dataset!r})"

    @classmethod
    def upgrade(
        cls,
        path: str | os.PathLike[str],
        *,
        partition: str | None = None,
        unit: str | Unit | None = None,
        dataset: str = "default",
    ) -> PrivacyLedger:
        """Open a ledger of version 0.1 for good: one step, which names what its groups are.

        Version 0.1 recorded groups without the name of their partition. The entries are written
        anew with it, in one transaction: whoever is killed meanwhile leaves the old ledger or the
        new one. All of them keep counting.

        Parameters
        ----------
        path : str or os.PathLike
            The file, which no process of version 0.1 may use any more.
        partition : str, default=None
            What a group was in all fits with `groups`, such as ``"person"``. Needed if there were
            any. If they were of several partitions no sum speaks of any of them: give them a name
            of their own, such as ``"mixed"``, and keep the unit of a record.
        unit : str or Unit, default=None
            What the budget is for from now on. Every entry must protect it. None is a record, as
            version 0.1 counted; if a `DPMDM` was fitted, a record whose class stays.
        dataset : str, default="default"
            Data set of the handle that is returned.

        Returns
        -------
        PrivacyLedger

        Raises
        ------
        ValueError
            If groups need a name, an entry does not protect the unit, or the file has the present
            format.
        TypeError
            If an argument has another type.
        PrivacyLedgerError, FileNotFoundError
            If the file cannot be used. It is left as it was.
        """
        name = None if partition is None else check_text("partition", partition)
        upgrade(_check_path(path), name, None if unit is None else as_unit(unit))
        return cls(path, dataset=dataset)

    def for_dataset(self, dataset: str) -> PrivacyLedger:
        """Return a handle on the same file that spends for another data set."""
        return PrivacyLedger(self.path, dataset=dataset)

    @property
    def unit(self) -> Unit:
        """What the budget is for."""
        with store.transaction(self.path) as connection:
            return store.read_unit(connection)

    @property
    def budget(self) -> GDP:
        """Budget for each unit of each data set."""
        with store.transaction(self.path) as connection:
            return GDP(store.read_budget(connection))

    @property
    def spent(self) -> GDP:
        """What the releases about the data set reveal of a unit together, rounded up."""
        with store.transaction(self.path) as connection:
            return spent_guarantee(store.read_totals(connection, self.dataset))

    @property
    def remaining(self) -> GDP:
        """The largest spend that is still allowed, rounded down."""
        with store.transaction(self.path) as connection:
            budget = store.read_budget(connection)
            return remaining_guarantee(store.read_totals(connection, self.dataset), budget)

    def spend(self, guarantee: GDP, unit: str | Unit, description: str) -> None:
        """Record a release that is about to be made, or refuse it.

        When this returns the entry is on the disk; when it raises nothing may be released.

        Parameters
        ----------
        guarantee : GDP
            What the release costs, positive and finite.
        unit : str or Unit
            What the release protects: ``"record"``, the name of a partition, or a `SameClass`.
        description : str
            What is released, for the report; printable, and nothing that depends on the records.

        Raises
        ------
        PrivacyBudgetError
            If the budget has not that much left.
        PrivacyLedgerError, FileNotFoundError
            If the file cannot be used.
        ValueError, TypeError
            If an argument is out of range or of another type, or the release does not protect the
            unit of the ledger or speaks of another partition than its data set.
        """
        if not isinstance(guarantee, GDP):
            raise TypeError(f"guarantee must be a GDP, such as GDP(1.0), got {guarantee!r}.")
        mu = check_positive("guarantee.mu", guarantee.mu)
        self._spend(mu, as_unit(unit), check_text("description", description))

    def _spend(
        self,
        mu: float,
        unit: Unit,
        description: str,
        receipt: str | None = None,
        reused: Reused | None = None,
    ) -> Unit:
        """Record a spend that was checked but for this ledger, and return the ledger's unit."""
        with store.transaction(self.path) as connection:
            limit = store.read_unit(connection)
            check_unit(limit, unit, store.read_units(connection, self.dataset), self.dataset)
            if reused is not None:
                paid = store.has_receipt(connection, self.dataset, reused.receipt)
                _check_paid(reused, paid, self.dataset)
            totals = store.read_totals(connection, self.dataset)
            check_budget(totals, self.dataset, limit, mu, store.read_budget(connection))
            store.write_spend(connection, self.dataset, unit, mu, description, receipt)
        return limit

    def report(self) -> LedgerReport:
        """Return all entries of the file, of every data set, as a table and for JSON."""
        with store.transaction(self.path) as connection:
            return LedgerReport(
                GDP(store.read_budget(connection)),
                store.read_spends(connection),
                store.read_unit(connection),
            )

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
                for mu, count in totals
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


@dataclass(frozen=True)
class Reused:
    """An earlier release that a fit builds on.

    Parameters
    ----------
    name : str
        The parameter it was passed as.
    receipt : str or None
        Of the entry that paid for it, if a ledger did.
    """

    name: str
    receipt: str | None


@dataclass(frozen=True)
class Payment:
    """What a fit has from its ledger: sentences for its report, the receipt for its release."""

    notes: tuple[str, ...] = ()
    receipt: str | None = None


def charge(
    ledger: object,
    mu: float,
    unit: Unit,
    random_state: object,
    description: str,
    reused: Reused | None = None,
) -> Payment:
    """Record the μ of a fit in its ledger, and return what it has for that; None keeps none.

    Call it once per fit, after the parameters and the shape of the records were checked and before
    any value of a record is read: an error that depends on values would else be a free answer.

    The receipt is drawn from the operating system's entropy: it says nothing but that it was paid.

    Raises
    ------
    ValueError
        If the seed is fixed or μ infinite: neither gives a guarantee that could be recorded; or if
        the ledger cannot add up the unit, or has not paid for the reused release.
    PrivacyBudgetError
        If the budget has not that much left.
    TypeError, FileNotFoundError, PrivacyLedgerError
        As `open_ledger`.
    """
    if ledger is None:
        return Payment()
    handle = open_ledger(ledger)
    if random_state is not None:
        raise ValueError(
            f"random_state must be None with a ledger, got {random_state!r}: whoever knows the "
            "seed can take the noise off again, so no budget bounds what is revealed."
        )
    if math.isinf(mu):
        raise ValueError("mu must be finite with a ledger, got inf.")
    receipt = secrets.token_hex(16)
    limit = handle._spend(mu, unit, description, receipt, reused)
    notes = [f"recorded in a ledger as a spend of data set {handle.dataset!r}"]
    partition = partition_of(unit)
    if partition is not None and partition_of(limit) is None:
        notes.append(_STAYS.format(partition))
    return Payment(tuple(notes), receipt)


_STAYS = (
    "the ledger counts this for a record, which assumes that a record stays with its {0}: one that "
    "changes its {0} changes two, at up to twice the mu"
)


def _check_paid(reused: Reused, paid: bool, dataset: str) -> None:
    if not paid:
        raise ValueError(
            f"{reused.name} must be a release that data set {dataset!r} of the ledger has paid "
            f"for, got one with receipt={reused.receipt!r}, which is not there: its cost would be "
            f"in no sum; fit it with this ledger and data set, or pass {reused.name}=None."
        )


def _check_path(path: object) -> str:
    """Return an absolute path, the same for a process with another working directory."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path must be a string or a path, got {type(path).__name__}.")
    name = os.fspath(path)
    if not isinstance(name, str):
        raise TypeError(f"path must be a string or a path, got one of {type(name).__name__}.")
    return os.path.abspath(name)
