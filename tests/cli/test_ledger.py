"""Ledgers from the command line: made once, charged before a record is read, both or none."""

from __future__ import annotations

import numpy as np
import pytest

from skdpfrechet._cli import _release, main
from skdpfrechet.privacy import GDP, Group, PrivacyLedger, Record, SameClass
from tests.privacy.test_ledger_upgrade import make_old


@pytest.fixture
def ledger(tmp_path, capsys):
    path = tmp_path / "study.ledger"
    assert main(["ledger", "create", str(path), "--mu", "1.2"]) == 0
    assert capsys.readouterr().out.endswith(
        "with a budget of 1.2-GDP for each record of each data set\n"
    )
    return path


@pytest.fixture
def records(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.random.default_rng(0).normal(size=(40, 2)))
    return path


PLACE = ["--manifold", "euclidean", "--radius", "3"]


def spends(path):
    return [(s.dataset, s.unit, s.mu) for s in PrivacyLedger(path).report().spends]


def test_create_and_show(ledger, capsys, fail, tmp_path):
    assert PrivacyLedger(ledger).budget == GDP(1.2)
    assert main(["ledger", "show", str(ledger)]) == 0
    assert capsys.readouterr().out == f"{PrivacyLedger(ledger).report()}\n"
    assert "is there already" in fail("ledger", "create", ledger, "--mu", "2")
    assert "mu must be finite" in fail("ledger", "create", tmp_path / "b", "--mu", "inf")
    assert "mu must be positive" in fail("ledger", "create", tmp_path / "b", "--mu", "-1")
    assert "could not be created" in fail("ledger", "create", tmp_path / "no" / "b", "--mu", "1")
    assert not (tmp_path / "b").exists()
    assert PrivacyLedger(ledger).budget == GDP(1.2)


def test_a_release_is_recorded(ledger, records, release):
    document, page = release(records, *PLACE, "--ledger", ledger)
    assert spends(ledger) == [("default", Record(), 1.0)]
    note = "recorded in a ledger as a spend of data set 'default'"
    assert note in document["privacy"]["notes"]
    assert "recorded in a ledger" in page


def test_mean_and_variance_are_recorded_under_their_data_set(ledger, records, release, tmp_path):
    np.save(tmp_path / "persons.npy", np.arange(40) // 2)
    release(records, *PLACE, "--variance", "--groups", tmp_path / "persons.npy",
            "--unit", "person", "--ledger", ledger, "--dataset", "pilot")  # fmt: skip
    (_, unit, first), (dataset, _, second) = spends(ledger)
    assert (unit, dataset) == (Group("person"), "pilot")
    np.testing.assert_allclose([first, second], [0.8, 0.6], rtol=1e-14)
    assert 1 - 1e-14 < PrivacyLedger(ledger, dataset="pilot").spent.mu <= 1


@pytest.mark.parametrize("variance", [[], ["--variance"]])
def test_what_the_budget_has_not_left_is_not_begun(
    ledger, records, release, fail, tmp_path, variance
):
    release(records, *PLACE, "--ledger", ledger)
    left = PrivacyLedger(ledger).remaining.mu  # 0.66: enough for a part of a mean and a variance
    argv = ["release", records, *PLACE, *variance, "--ledger", ledger]
    argv += ["--output", tmp_path / "b.json"]
    message = fail(*argv, "--mu", "0.7")
    assert f"mu must be at most {left!r}" in message
    assert len(spends(ledger)) == 1
    assert not (tmp_path / "b.json").exists()
    assert main([str(word) for word in [*argv, "--mu", left]]) == 0  # the number that was named
    assert PrivacyLedger(ledger).remaining == GDP(0.0)


def test_the_last_of_the_budget_can_be_spent_on_both(ledger, records, release):
    release(records, *PLACE, "--variance", "--mu", "1.2", "--ledger", ledger)
    assert PrivacyLedger(ledger).remaining == GDP(0.0)


def test_what_fails_before_the_fit_costs_nothing(ledger, records, fail, tmp_path):
    (tmp_path / "taken.json").write_text("")
    (tmp_path / "bad.csv").write_text("1,2\n3,secret\n")
    for file, output, place in (
        (records, "taken.json", PLACE),
        (tmp_path / "bad.csv", "b.json", PLACE),
        (tmp_path / "missing.npy", "b.json", PLACE),
        (records, "b.json", ["--manifold", "spd", "--radius", "3"]),
        (records, "b.json", ["--manifold", "euclidean", "--radius", "0"]),
    ):
        argv = ["--mu", "1", "--output", tmp_path / output, "--ledger", ledger]
        fail("release", file, *place, *argv)
    assert spends(ledger) == []


def test_a_record_that_is_none_is_paid_for(ledger, fail, tmp_path):
    """As by the estimators: that a record is not finite is told by the fit only."""
    np.save(tmp_path / "x.npy", np.full((3, 2), np.nan))
    message = fail("release", tmp_path / "x.npy", *PLACE, "--mu", "1",
                   "--output", tmp_path / "b.json", "--ledger", ledger)  # fmt: skip
    assert "must contain finite numbers only" in message
    assert spends(ledger) == [("default", Record(), 1.0)]


def test_units(records, release, fail, tmp_path, capsys):
    path = tmp_path / "persons.ledger"
    assert main(["ledger", "create", str(path), "--mu", "1.2", "--unit", "person"]) == 0
    assert "1.2-GDP for each person (all its records) of each data set" in capsys.readouterr().out
    np.save(tmp_path / "persons.npy", np.arange(40) // 2)
    groups = ["--groups", tmp_path / "persons.npy"]
    argv = ["release", records, *PLACE, "--mu", "1", "--output", tmp_path / "b.json"]
    assert "--unit needs --groups" in fail(*argv, "--unit", "person")
    message = fail(*argv, *groups, "--ledger", path)
    assert "--unit must name what one group is, such as person" in message
    assert "got record: what protects a record bounds" in fail(*argv, "--ledger", path)
    assert spends(path) == []
    document, page = release(records, *PLACE, *groups, "--unit", "person", "--ledger", path)
    assert document["unit"] == {"kind": "group", "partition": "person"}
    assert "noise that protects every single person with all its records" in page
    assert spends(path) == [("default", Group("person"), 1.0)]
    main(["ledger", "show", str(path)])
    assert "person (all its records)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "unit"),
    [
        ([], Record()),
        (["--unit", "record"], Record()),
        (["--same-class"], SameClass(Record())),
        (["--unit", "person", "--same-class"], SameClass(Group("person"))),
    ],
)
def test_create_for_a_unit(options, unit, tmp_path):
    path = tmp_path / "study.ledger"
    assert main(["ledger", "create", str(path), "--mu", "1", *options]) == 0
    assert PrivacyLedger(path).unit == unit


def test_upgrade(tmp_path, capsys, fail, records):
    path = make_old(tmp_path / "old.ledger")
    place = ["--mu", "0.1", "--output", tmp_path / "b.json", "--ledger", path]
    for argv in (["ledger", "show", path], ["release", records, *PLACE, *place]):
        assert "skdpfrechet ledger upgrade FILE --partition person" in fail(*argv)
    assert "partition must name what the groups" in fail("ledger", "upgrade", path)
    assert main(["ledger", "upgrade", str(path), "--partition", "person"]) == 0
    assert capsys.readouterr().out == f"{path} goes on with a budget of 1-GDP for each record\n"
    assert [unit for _, unit, _ in spends(path)] == [Group("person"), Record(), Group("person")]
    assert "present format" in fail("ledger", "upgrade", path, "--partition", "person")
    assert "there is no ledger" in fail("ledger", "upgrade", tmp_path / "no", "--partition", "x")


def test_a_ledger_that_cannot_be_used_stops_the_release(records, fail, tmp_path, monkeypatch):
    def never(*args):
        raise AssertionError("a record was read")

    monkeypatch.setattr(_release, "read_records", never)
    (tmp_path / "text.ledger").write_text("no ledger " * 100)
    argv = ["release", records, *PLACE, "--mu", "1", "--output", tmp_path / "b.json"]
    message = fail(*argv, "--ledger", tmp_path / "missing.ledger")
    assert "there is no ledger" in message
    assert "skdpfrechet ledger create" in message
    assert "text.ledger" in fail(*argv, "--ledger", tmp_path / "text.ledger")
    assert "there is no ledger" in fail("ledger", "show", tmp_path / "missing.ledger")
    assert "text.ledger" in fail("ledger", "show", tmp_path / "text.ledger")
