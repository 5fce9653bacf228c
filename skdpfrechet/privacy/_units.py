"""What a guarantee protects: a record, a group of a named partition, either within its class."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from skdpfrechet._validation import check_text


class Unit(ABC):
    """What neighbouring data sets may differ in: `Record`, `Group` or `SameClass`.

    Users name a unit by a string, ``"record"`` or the name of a partition; `as_unit` makes the
    value. Two are equal if they are of the same kind and name the same partition.
    """

    @property
    @abstractmethod
    def noun(self) -> str:
        """The unit in one word, such as "record" or "person"."""

    @property
    @abstractmethod
    def neighbours(self) -> str:
        """The neighbouring relation in words."""

    @abstractmethod
    def protects(self, other: Unit) -> bool:
        """Return whether every guarantee for this unit is one for `other`, at the same μ.

        It is one wherever each pair of neighbours for `other` is a pair of neighbours for this
        unit, too.
        """

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return strings and dicts of them only, as JSON has them; `as_unit` reads them."""


@dataclass(frozen=True)
class Record(Unit):
    """One record: neighbours replace it by any other. The number of records is public.

    Examples
    --------
    >>> from skdpfrechet.privacy import Group, Record
    >>> print(Record(), Record().protects(Group("person")), sep=", ")
    record, False
    """

    def __str__(self) -> str:
        return "record"

    @property
    def noun(self) -> str:
        """The word "record"."""
        return "record"

    @property
    def neighbours(self) -> str:
        """The neighbouring relation in words."""
        return "replace-one"

    def protects(self, other: Unit) -> bool:
        """Return True for a record and for one of the same class: it is no bound for a group."""
        return isinstance(_any_class(other), Record)

    def to_dict(self) -> dict[str, Any]:
        """Return ``{"kind": "record"}``."""
        return {"kind": "record"}


@dataclass(frozen=True)
class Group(Unit):
    """A group of a partition with all its records, such as a person with all trials.

    Neighbours replace all records of one group by others, any number of them from one up. The
    number of groups is public, their sizes are not.

    Parameters
    ----------
    partition : str
        What one group is, such as ``"person"``. Printable; kept in Unicode form NFC. Two
        partitions are the same if their names are.

    Raises
    ------
    ValueError
        If the name is empty, not printable, begins or ends with a space, or is "record".
    TypeError
        If it is no string.

    Notes
    -----
    Whoever replaces a group may replace one record of it, so a guarantee for a group holds for a
    record, **if that record stays with its group**. A record that changes its group changes two.

    Examples
    --------
    >>> from skdpfrechet.privacy import Group, Record
    >>> print(Group("person"))
    person (all its records)
    >>> Group("person").protects(Record()), Group("person").protects(Group("session"))
    (True, False)
    """

    partition: str

    def __post_init__(self) -> None:
        name = check_text("partition", self.partition)
        if name != name.strip() or name.casefold() == "record":
            raise ValueError(
                "partition must name what a group is, such as 'person', without spaces around it "
                f"and other than 'record', got {self.partition!r}."
            )
        object.__setattr__(self, "partition", name)

    def __str__(self) -> str:
        return f"{self.partition} (all its records)"

    @property
    def noun(self) -> str:
        """Name of the partition."""
        return self.partition

    @property
    def neighbours(self) -> str:
        """The neighbouring relation in words."""
        return f"replace-one: all records of one {self.partition}, in any number from one up"

    def protects(self, other: Unit) -> bool:
        """Return True for this group and a record that stays with it, of the same class or not."""
        plain = _any_class(other)
        return isinstance(plain, Record) or plain == self

    def to_dict(self) -> dict[str, Any]:
        """Return ``{"kind": "group", "partition": name}``."""
        return {"kind": "group", "partition": self.partition}


@dataclass(frozen=True)
class SameClass(Unit):
    """A record or a group whose classes stay: the weaker promise of a classifier.

    Labels are public. Neighbours replace a record by one of the same class, or the records of a
    group by others of the same set of classes. A record whose class changes is not protected.

    Parameters
    ----------
    unit : Record or Group
        What keeps its classes.

    Raises
    ------
    TypeError
        If it is neither.

    Notes
    -----
    Releases with several labellings compose for a record that keeps its class in all of them.

    Examples
    --------
    >>> from skdpfrechet.privacy import Record, SameClass
    >>> print(SameClass(Record()))
    record (its class stays)
    >>> Record().protects(SameClass(Record())), SameClass(Record()).protects(Record())
    (True, False)
    """

    unit: Record | Group

    def __post_init__(self) -> None:
        if not isinstance(self.unit, Record | Group):
            raise TypeError(f"unit must be a Record or a Group, got {self.unit!r}.")

    def __str__(self) -> str:
        if isinstance(self.unit, Record):
            return "record (its class stays)"
        return f"{self.noun} (all its records, whose classes stay)"

    @property
    def noun(self) -> str:
        """That of the unit."""
        return self.unit.noun

    @property
    def neighbours(self) -> str:
        """The neighbouring relation in words."""
        if isinstance(self.unit, Record):
            return "replace-one, by a record of the same class; labels and class sizes are public"
        return (
            f"replace-one: all records of one {self.noun}, whose classes stay; which classes it "
            "has is public"
        )

    def protects(self, other: Unit) -> bool:
        """Return True for units whose class stays, too, and that `unit` protects."""
        return isinstance(other, SameClass) and self.unit.protects(other.unit)

    def to_dict(self) -> dict[str, Any]:
        """Return ``{"kind": "same-class", "unit": …}``."""
        return {"kind": "same-class", "unit": self.unit.to_dict()}


RECORD = Record()
"""The unit wherever nothing else is said."""


def as_unit(unit: object) -> Unit:
    """Return the unit that a string names, that a dict describes, or that is one.

    Parameters
    ----------
    unit : Unit, str or dict
        ``"record"``, the name of a partition such as ``"person"``, or what `to_dict` returned.

    Raises
    ------
    ValueError
        If the string is no name of a partition or the dict describes no unit.
    TypeError
        If it is of another type.

    Examples
    --------
    >>> from skdpfrechet.privacy import Group, SameClass, as_unit
    >>> as_unit("record"), as_unit("person")
    (Record(), Group(partition='person'))
    >>> as_unit(SameClass(Group("person")).to_dict())
    SameClass(unit=Group(partition='person'))
    """
    if isinstance(unit, Unit):
        return unit
    if isinstance(unit, str):
        return Record() if unit == "record" else Group(unit)
    if isinstance(unit, Mapping):
        return _from_dict(unit)
    raise TypeError(
        "unit must be 'record', the name of a partition such as 'person', or a unit of "
        f"skdpfrechet.privacy, got {unit!r}."
    )


def _from_dict(description: Mapping[str, Any]) -> Unit:
    match dict(description):
        case {"kind": "record", **rest} if not rest:
            return Record()
        case {"kind": "group", "partition": partition, **rest} if not rest:
            return Group(partition)
        case {"kind": "same-class", "unit": Mapping() as inner, **rest} if not rest:
            unit = _from_dict(inner)
            if isinstance(unit, Record | Group):
                return SameClass(unit)
    raise ValueError(f"unit must be described as by to_dict, got {dict(description)!r}.")


def partition_of(unit: Unit) -> str | None:
    """Return the name of the partition whose groups are meant, if any."""
    plain = _any_class(unit)
    return plain.partition if isinstance(plain, Group) else None


def _any_class(unit: Unit) -> Unit:
    """Return what is meant when its class may change as well, which asks for more."""
    return unit.unit if isinstance(unit, SameClass) else unit
