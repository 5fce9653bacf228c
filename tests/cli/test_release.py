"""From files to releases: what is accepted, and what the JSON document says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from math import hypot

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import skdpfrechet
from skdpfrechet import ConfidenceRegion, DPFrechetMean
from skdpfrechet._cli import _release, main
from skdpfrechet._cli._parser import SPACES
from skdpfrechet._cli._read import read_groups, read_point, read_records
from skdpfrechet.manifolds._resolve import resolve_manifold

N = 40


def write_csv(path, rows, delimiter=",", names=None):
    lines = [delimiter.join(map(repr, map(float, row))) for row in rows]
    head = [] if names is None else [delimiter.join(names)]
    path.write_text("\n".join(head + lines) + "\n", encoding="utf-8")
    return path


def test_every_kind_of_file_gives_the_same_records(tmp_path, spd):
    flat = spd.reshape(N, 4)
    np.save(tmp_path / "stack.npy", spd)
    np.save(tmp_path / "flat.npy", flat)
    np.savez(tmp_path / "one.npz", anything=spd)
    np.savez_compressed(tmp_path / "many.npz", covariances=spd, labels=np.arange(N))
    write_csv(tmp_path / "plain.csv", flat)
    write_csv(tmp_path / "named.csv", flat, names=["a", "b", "c", "d"])
    write_csv(tmp_path / "semicolons.csv", flat, delimiter=";", names=['"a"', "b", "c", "d"])
    write_csv(tmp_path / "tabs.CSV", flat, delimiter="\t")
    (tmp_path / "spreadsheet.csv").write_text(
        "\ufeff\r\na,b,c,d\r\n\r\n"
        + "\r\n".join(",".join(f'"{float(x)!r}"' for x in row) for row in flat)
        + "\r\n\r\n",
        encoding="utf-8",
    )
    for path in tmp_path.iterdir():
        key = "covariances" if path.name == "many.npz" else None
        held = read_records(path, "spd", key, None)
        assert_array_equal(held.records, spd, err_msg=path.name)
        assert held.groups is None


def test_a_row_of_numbers_is_a_record_whatever_they_are(tmp_path):
    path = write_csv(tmp_path / "counts.csv", [[0, 1, 2], [np.inf, np.nan, -0.0], [3, 4, 5]])
    assert len(read_records(path, "euclidean", None, None).records) == 3


def test_records_that_are_none_count_as_the_center(tmp_path, spd, release, monkeypatch):
    """The release is that of records with the center in their place: same noise, same numbers."""
    made = []
    for name in ("DPFrechetMean", "DPFrechetVariance"):
        estimator = getattr(_release, name)

        def seeded(*args, estimator=estimator, **parameters):
            made.append(estimator(*args, **parameters, random_state=0))
            return made[-1]

        monkeypatch.setattr(_release, name, seeded)
    spoilt, replaced = spd.copy(), spd.copy()
    spoilt[3], spoilt[5, 0, 0], spoilt[7] = np.nan, np.inf, -np.eye(2)
    replaced[[3, 5, 7]] = np.eye(2)
    np.save(tmp_path / "spoilt.npy", spoilt)
    np.save(tmp_path / "replaced.npy", replaced)
    options = ["--manifold", "spd", "--radius", "2", "--variance", "--invalid", "replace"]
    for name in ("spoilt", "replaced"):
        release(tmp_path / f"{name}.npy", *options, output=f"{name}.json")
    assert [estimator.invalid for estimator in made] == ["replace"] * 4
    assert_array_equal(made[0].mean_, made[2].mean_)
    assert made[1].variance_ == made[3].variance_


def test_single_precision_stays_as_it_is(tmp_path, spd):
    np.save(tmp_path / "x.npy", spd.astype(np.float32))
    assert read_records(tmp_path / "x.npy", "spd", None, None).records.dtype == np.float32


@pytest.mark.parametrize("text", ["2,1\n1,3\n", "2,1,1,3\n", "2\n1\n1\n3\n", "a,b\n2,1\n1,3\n"])
def test_a_point_may_be_laid_out_in_any_way(tmp_path, text):
    (tmp_path / "point.csv").write_text(text)
    assert_array_equal(read_point(tmp_path / "point.csv", "spd"), [[2, 1], [1, 3]])
    assert_array_equal(read_point(tmp_path / "point.csv", "euclidean"), [2, 1, 1, 3])


def test_groups_come_from_files_and_columns(tmp_path):
    labels = ["Ärzte, A", "B", "B", "Ärzte, A"]
    (tmp_path / "labels.txt").write_text("x1\nB \nB\nx1\n")
    assert read_groups(tmp_path / "labels.txt").tolist() == ["x1", "B", "B", "x1"]
    (tmp_path / "labels.csv").write_text("".join(f'"{label}"\n' for label in labels))
    assert read_groups(tmp_path / "labels.csv").tolist() == labels
    np.save(tmp_path / "labels.npy", np.array([1, 2, 2, 1]))
    assert read_groups(tmp_path / "labels.npy").tolist() == [1, 2, 2, 1]
    for encoding in ("utf-8", "latin-1"):  # in the wrong encoding labels differ where they did
        (tmp_path / "table.csv").write_bytes(
            ("x,who,y\n" + "".join(f'1,"{who}",2\n' for who in ["Ä", "Ö", "Ö", "Ä"])).encode(
                encoding
            )
        )
        held = read_records(tmp_path / "table.csv", "euclidean", None, "who")
        assert_array_equal(held.records, [[1, 2]] * 4)
        assert len(set(held.groups)) == 2
        assert held.groups[0] == held.groups[3]


def test_the_document_is_what_the_estimators_released(tmp_path, release, monkeypatch, spd):
    fits = []

    class Kept(DPFrechetMean):
        def fit(self, X, y=None, *, groups=None):
            fits.append(super().fit(X, y, groups=groups))
            return self

    monkeypatch.setattr(_release, "DPFrechetMean", Kept)
    np.save(tmp_path / "x.npy", spd)
    np.save(tmp_path / "center.npy", 2 * np.eye(2))
    document, _ = release(
        tmp_path / "x.npy",
        "--manifold",
        "spd",
        "--radius",
        "3",
        "--center",
        tmp_path / "center.npy",
    )
    (fit,) = fits
    assert fit.random_state is None
    assert document["schema"] == "skdpfrechet-release/2"
    assert document["skdpfrechet_version"] == skdpfrechet.__version__
    assert document["manifold"] == {"name": "SPDAffineInvariant", "size": 2}
    assert (document["n"], document["unit"], document["mu"]) == (N, {"kind": "record"}, 1.0)
    assert_allclose(document["epsilon"]["epsilon"], 4.377, atol=1e-3)
    assert document["ball"] == {"center": [[2.0, 0.0], [0.0, 2.0]], "radius": 3.0}
    assert document["variance"] is None
    assert_array_equal(document["mean"], fit.mean_)
    assert [row["statistic"] for row in document["privacy"]["releases"]] == [
        "mean",
        "second moment",
    ]
    region = ConfidenceRegion.from_dict(document["region"])
    assert region.to_dict() == fit.confidence_region_.to_dict()
    assert_array_equal(region.covariance, fit.confidence_region_.covariance)
    assert region.contains(fit.mean_)


def test_a_variance_is_paid_from_the_same_mu(tmp_path, release, spd):
    np.save(tmp_path / "x.npy", spd)
    document, page = release(
        tmp_path / "x.npy", "--manifold", "logeuclid", "--radius", "2", "--variance"
    )
    low, high = document["variance"]["interval"]
    assert 0 <= low <= document["variance"]["estimate"] <= high
    rows = document["privacy"]["releases"]
    assert [row["statistic"] for row in rows] == ["mean", "second moment", "variance"]
    assert hypot(*(row["mu"] for row in rows)) <= 1.0 + 1e-15
    assert document["privacy"]["total_mu"] == document["mu"] == 1.0
    assert "The variance" in page


def test_groups_are_the_unit(tmp_path, release, directions, pole):
    write_csv(tmp_path / "x.csv", directions, names=["x", "y", "z"])
    persons = np.arange(N) // 4
    (tmp_path / "persons.txt").write_text("".join(f"person {k}\n" for k in persons))
    place = ["--manifold", "sphere", "--radius", "1.2", "--center", pole]
    document, page = release(tmp_path / "x.csv", *place, "--groups", tmp_path / "persons.txt")
    assert (document["n"], document["unit"]) == (10, {"kind": "group", "partition": "group"})
    assert "Private mean of 10 groups<" in page
    assert "every single group with all its records" in page
    table = np.column_stack([directions, persons])
    write_csv(tmp_path / "y.csv", table, names=["x", "y", "z", "person"])
    document, page = release(
        tmp_path / "y.csv",
        *place,
        "--group-column",
        "person",
        "--unit",
        "<person>",
        output="other.json",
    )
    assert (document["n"], document["unit"]) == (10, {"kind": "group", "partition": "<person>"})
    assert document["privacy"]["unit"] == document["unit"]
    assert "10 groups (one for each &lt;person&gt;)" in page
    assert "<person>" not in page


def test_a_private_ball(tmp_path, release, directions):
    write_csv(tmp_path / "x.csv", np.tile(directions, (20, 1)))
    document, page = release(
        tmp_path / "x.csv", "--manifold", "sphere", "--radius", "private", "--center", "private"
    )
    rows = document["privacy"]["releases"]
    assert rows[0]["statistic"].startswith("ball")
    assert rows[0]["statistic"] in page
    assert_allclose(hypot(*(row["mu"] for row in rows)), 1.0, rtol=1e-12)
    np.save(tmp_path / "y.npy", np.random.default_rng(0).normal(size=(400, 2)))
    document, _ = release(
        tmp_path / "y.npy", "--manifold", "euclidean", "--radius", "private",
        "--outer-radius", "50", "--variance", output="y.json",
    )  # fmt: skip
    assert document["ball"]["radius"] < 50


@pytest.mark.parametrize("n", [1, 2])
def test_few_records_still_make_a_strict_document(tmp_path, release, n):
    np.save(tmp_path / "x.npy", np.full((n, 2), 0.1))
    document, _ = release(
        tmp_path / "x.npy", "--manifold", "euclidean", "--radius", "1", "--variance"
    )
    assert ConfidenceRegion.from_dict(document["region"]).to_dict() == document["region"]


@pytest.mark.parametrize("space", SPACES)
def test_the_names_of_spaces_are_those_of_the_library(space):
    shape = (2, 2) if space in ("spd", "logeuclid", "logchol") else (3,)
    assert resolve_manifold(space, shape).point_shape == shape


def test_force_replaces_both_files(tmp_path, release, pole, directions):
    np.save(tmp_path / "x.npy", directions)
    for name in ("out.json", "out.html"):
        (tmp_path / name).write_text("old")
    place = ["--manifold", "sphere", "--radius", "1", "--center", pole]
    document, page = release(tmp_path / "x.npy", *place, "--force")
    assert document["n"] == N
    assert page.startswith("<!doctype html>")


def test_a_release_that_cannot_be_saved_is_printed(tmp_path, capsys, monkeypatch, pole, directions):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    np.save(tmp_path / "x.npy", directions)
    argv = ["release", tmp_path / "x.npy", "--manifold", "sphere", "--radius", "1", "--mu", "1",
            "--center", pole, "--output", tmp_path / "out.json"]  # fmt: skip
    with pytest.raises(SystemExit) as stop:
        main([str(word) for word in argv])
    shown = capsys.readouterr()
    assert stop.value.code == 2
    assert "No space left" in shown.err
    assert json.loads(shown.out)["n"] == N
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pole.csv", "x.npy"]


def test_the_page_cannot_cost_the_document(tmp_path, monkeypatch, pole, directions):
    def broken(released):
        raise ZeroDivisionError

    monkeypatch.setattr(_release, "make_page", broken)
    np.save(tmp_path / "x.npy", directions)
    argv = ["release", tmp_path / "x.npy", "--manifold", "sphere", "--radius", "1", "--mu", "1",
            "--center", pole, "--output", tmp_path / "out.json"]  # fmt: skip
    with pytest.raises(ZeroDivisionError):
        main([str(word) for word in argv])
    assert json.loads((tmp_path / "out.json").read_text())["n"] == N


def test_the_module_runs(tmp_path, directions, pole):
    write_csv(tmp_path / "x.csv", directions)
    command = [sys.executable, "-W", "error", "-m", "skdpfrechet"]
    argv = ["release", "x.csv", "--manifold", "sphere", "--radius", "1", "--mu", "1",
            "--center", "pole.csv", "--output", "out.json"]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run(
        [*command, *argv], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout == "released with 1-GDP: out.json for programs, out.html for people\n"
    assert json.loads((tmp_path / "out.json").read_text())["n"] == N
    run = subprocess.run(
        [*command, *argv], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == (
        "skdpfrechet release: error: out.json is there already; --force replaces it.\n"
    )


@pytest.mark.parametrize("command", [[], ["release"], ["ledger"], ["ledger", "create"]])
def test_help(command, capsys):
    with pytest.raises(SystemExit) as stop:
        main([*command, "--help"])
    assert stop.value.code == 0
    assert "usage: skdpfrechet" in capsys.readouterr().out


def test_version(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"skdpfrechet {skdpfrechet.__version__}\n"
