"""Units of privacy: values, what protects what, and what a ledger lets in.

`protects` is tested against its definition: over all small data sets, one unit protects another
where its neighbours include the other's.
"""

import json
import math
import pickle
from collections import Counter
from fractions import Fraction
from itertools import combinations_with_replacement, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdpfrechet.privacy import (
    GDP,
    Group,
    PrivacyBudgetError,
    PrivacyLedger,
    Record,
    SameClass,
    Unit,
    as_unit,
)

PERSON, SESSION = Group("person"), Group("session")
PLAIN = [Record(), PERSON, SESSION]
UNITS = [*PLAIN, *map(SameClass, PLAIN)]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "study.ledger"


# --- values --------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_units_are_values(unit):
    described = json.loads(json.dumps(unit.to_dict(), allow_nan=False))
    for copied in (pickle.loads(pickle.dumps(unit)), as_unit(described), as_unit(unit)):
        assert copied == unit
        assert hash(copied) == hash(unit)
    assert sum(unit == other for other in UNITS) == 1
    assert isinstance(unit, Unit)
    assert unit.neighbours.startswith("replace-one")
    with pytest.raises(AttributeError):
        unit.partition = "other"


def test_units_print_as_one_would_say_them():
    assert [str(unit) for unit in UNITS[:2]] == ["record", "person (all its records)"]
    assert str(SameClass(Record())) == "record (its class stays)"
    assert str(SameClass(PERSON)) == "person (all its records, whose classes stay)"
    assert as_unit("record") == Record()
    assert as_unit("person") == PERSON
    assert Group("caf\u00e9") == Group("cafe\u0301")


@pytest.mark.parametrize("name", ["", " ", "a\nb", " person", "person ", "record", "RECORD"])
def test_what_names_no_partition(name):
    with pytest.raises(ValueError, match=r"partition must .*, got "):
        Group(name)


@pytest.mark.parametrize("value", [3, None, b"person", ["person"]])
def test_what_is_no_unit(value):
    with pytest.raises(TypeError, match="unit must be 'record', the name of a partition"):
        as_unit(value)
    with pytest.raises(TypeError, match="partition must be a string"):
        Group(value)
    with pytest.raises(TypeError, match="unit must be a Record or a Group"):
        SameClass(value)


@pytest.mark.parametrize(
    "description",
    [
        {},
        {"kind": "group"},
        {"kind": "person"},
        {"kind": "record", "partition": "person"},
        {"kind": "same-class", "unit": SameClass(Record()).to_dict()},
        {"kind": "same-class", "unit": "record"},
    ],
)
def test_descriptions_of_no_unit(description):
    with pytest.raises(ValueError, match="unit must be described as by to_dict"):
        as_unit(description)


# --- what protects what --------------------------------------------------------------------------

# A record is (value, class, person, session); a data set is a multiset of at most two records.
RECORDS = tuple(product((0, 1), (0, 1), ("a", "b"), ("s", "t")))
DATA_SETS = [
    frozenset(Counter(rows).items())
    for size in (1, 2)
    for rows in combinations_with_replacement(RECORDS, size)
]
PLACE = {"person": 2, "session": 3}


def are_neighbours(unit, first, second):
    """Whether two data sets differ in one unit, by the words of its docstring."""
    plain = unit.unit if isinstance(unit, SameClass) else unit
    old, new = Counter(dict(first)), Counter(dict(second))
    gone, come = list((old - new).elements()), list((new - old).elements())
    if isinstance(plain, Record):
        if not len(gone) == len(come) == 1:
            return False
        if gone[0][2:] != come[0][2:]:  # a record that stays with its groups
            return False
        return not isinstance(unit, SameClass) or gone[0][1] == come[0][1]
    place = PLACE[plain.partition]
    groups = {row[place] for row in gone + come}
    if len(groups) != 1:
        return False
    (group,) = groups
    before, after = ([row for row in rows if row[place] == group] for rows in (old, new))
    if not before or not after:  # the number of groups is public
        return False
    classes = [{row[1] for row in rows} for rows in (before, after)]
    return not isinstance(unit, SameClass) or classes[0] == classes[1]


@pytest.fixture(scope="module")
def neighbours():
    return {
        unit: {
            (i, j)
            for i, first in enumerate(DATA_SETS)
            for j, second in enumerate(DATA_SETS)
            if i != j and are_neighbours(unit, first, second)
        }
        for unit in UNITS
    }


@pytest.mark.parametrize("other", UNITS, ids=str)
@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_a_unit_protects_those_whose_neighbours_are_its_own(unit, other, neighbours):
    assert unit.protects(other) == (neighbours[other] <= neighbours[unit])


def test_a_record_that_changes_its_group_changes_two():
    before, after = (0, 0, "a", "s"), (1, 0, "b", "s")
    rest = [(0, 0, "a", "t"), (0, 0, "b", "t")]
    ends = [frozenset(Counter([row, *rest]).items()) for row in (before, after)]
    middle = frozenset(Counter([(1, 0, "a", "s"), *rest]).items())  # no step alone does it
    assert not are_neighbours(PERSON, *ends)
    both = [frozenset(Counter(rest).items()), ends[1]]
    assert are_neighbours(PERSON, ends[0], both[0])
    assert are_neighbours(PERSON, *both)
    assert are_neighbours(PERSON, ends[0], middle)


@given(*[st.sampled_from(UNITS)] * 3)
def test_protection_is_a_partial_order(first, second, third):
    assert first.protects(first)
    if first.protects(second) and second.protects(first):
        assert first == second
    if first.protects(second) and second.protects(third):
        assert first.protects(third)


# --- what a ledger lets in -----------------------------------------------------------------------


def test_the_unit_is_set_once(path):
    ledger = PrivacyLedger(path, budget=GDP(1.0), unit="person")
    assert ledger.unit == PERSON == ledger.for_dataset("pilot").unit == PrivacyLedger(path).unit
    assert PrivacyLedger(path, GDP(1.0), unit=PERSON) == ledger
    for unit in ("record", "session", SameClass(PERSON)):
        with pytest.raises(ValueError, match=r"unit must be that of the ledger, Group\("):
            PrivacyLedger(path, unit=unit)
    with pytest.raises(TypeError, match="unit must be"):
        PrivacyLedger(path, unit=3)
    assert "person (all its records)" in str(ledger.report())
    assert ledger.report().to_dict()["unit"] == PERSON.to_dict()


def test_a_group_counts_for_its_records(path):
    ledger = PrivacyLedger(path, budget=GDP(1.0))
    assert ledger.unit == Record()
    ledger.spend(GDP(0.6), "record", "mean")
    ledger.spend(GDP(0.5), "person", "mean")
    assert ledger.spent.mu == pytest.approx(math.hypot(0.6, 0.5), rel=1e-15)
    with pytest.raises(PrivacyBudgetError, match="for each record of data set 'default'"):
        ledger.spend(GDP(0.7), "person", "mean")


def test_a_record_bounds_no_group(path):
    ledger = PrivacyLedger(path, budget=GDP(1.0), unit="person")
    message = (
        r"unit must protect that of this ledger, person \(all its records\), got record: "
        r"what protects a record bounds nothing of one person with several; pass groups and "
        r"unit='person' to the fit, or use another ledger, with unit='record', a separate"
    )
    with pytest.raises(ValueError, match=message):
        ledger.spend(GDP(0.1), "record", "mean")
    with pytest.raises(ValueError, match=r"got session .* use another ledger, with unit='session'"):
        ledger.spend(GDP(0.1), "session", "mean")
    assert ledger.report().spends == ()


def test_two_partitions_in_one_data_set_are_refused(path):
    ledger = PrivacyLedger(path, budget=GDP(1.0), dataset="eeg")
    ledger.spend(GDP(0.1), "session", "mean")
    ledger.spend(GDP(0.1), "record", "mean")
    with pytest.raises(ValueError, match=r"'session', the partition of data set 'eeg' .*'person'"):
        ledger.spend(GDP(0.1), "person", "mean")
    ledger.for_dataset("other people").spend(GDP(0.1), "person", "mean")
    assert len(ledger.report().spends) == 3
    notes = ledger.report().to_dict()["notes"]
    assert [note.split(" count")[0].split()[-1] for note in notes] == ["session", "person"]


def test_one_that_keeps_its_class_is_less_than_one_that_may_not(path, tmp_path):
    ledger = PrivacyLedger(path, budget=GDP(1.0))
    way_out = r"use another ledger, with unit=SameClass\(unit=Record\(\)\)"
    with pytest.raises(ValueError, match=way_out):
        ledger.spend(GDP(0.1), SameClass(Record()), "classifier")
    with pytest.raises(ValueError, match=way_out):
        ledger.spend(GDP(0.1), SameClass(PERSON), "classifier")
    classes = PrivacyLedger(tmp_path / "b", budget=GDP(1.0), unit=SameClass(Record()))
    for unit in (SameClass(Record()), "record", SameClass(PERSON), "person"):
        classes.spend(GDP(0.5), unit, "release")
    assert classes.spent == GDP(1.0)
    assert "keeps its class" in str(classes.report())


@settings(deadline=None, max_examples=40)
@given(
    st.sampled_from(UNITS),
    st.lists(st.tuples(st.sampled_from(UNITS), st.floats(0.05, 0.7), st.booleans()), max_size=8),
)
def test_mixed_spends_compose_to_what_was_let_in(tmp_path_factory, limit, spends):
    """What counts is what protects the unit, of one partition per data set; nothing else is in."""
    path = tmp_path_factory.mktemp("mixed") / "study.ledger"
    first = PrivacyLedger(path, budget=GDP(1.0), unit=limit)
    handles = [first, first.for_dataset("other")]
    held = {0: [], 1: []}
    for unit, mu, which in spends:
        handle, before = handles[which], held[which]
        names = {entry.noun for entry, _ in before} | {unit.noun}
        fits = unit.protects(limit) and len(names - {"record"}) <= 1
        square = sum(Fraction(spent) ** 2 for _, spent in before) + Fraction(mu) ** 2
        try:
            handle.spend(GDP(mu), unit, "release")
        except PrivacyBudgetError:
            assert fits
            assert square > 1
        except ValueError:
            assert not fits
        else:
            assert fits
            assert square <= (1 + Fraction(1, 10**12)) ** 2
            before.append((unit, mu))
    for handle, entries in zip(handles, held.values(), strict=True):
        exact = sum(Fraction(mu) ** 2 for _, mu in entries)
        spent = Fraction(handle.spent.mu)
        assert exact <= spent**2 <= exact * (1 + Fraction(1, 10**15))
        # The sum holds for every unit that the ledger's own protects.
        assert all(unit.protects(weaker) for unit, _ in entries for weaker in UNITS
                   if limit.protects(weaker))  # fmt: skip
