"""Errors: one line, status 2, nothing written, nothing spent, and no value of a record."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from skdpfrechet._cli import main
from skdpfrechet._cli._output import reserve

X = 0.7345123 * np.eye(2)
GOOD = np.stack([X] * 8)


def bad(kind):
    array = GOOD.copy()
    if kind == "nan":
        array[3, 0, 0] = np.nan
    elif kind == "asymmetric":
        array[3, 0, 1] = 0.7345
    elif kind == "indefinite":
        array[3, 0, 0] = -0.7345
    return array


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (bad("nan"), "x.npy must contain finite numbers only"),
        (bad("asymmetric"), "x.npy must contain symmetric matrices"),
        (bad("indefinite"), "x.npy must contain positive definite matrices"),
        (GOOD[:, :1], "must hold square matrices"),
        (GOOD.reshape(16, 2), "must have 1, 4, 9, 16, 25, ... columns"),
        (GOOD[0, 0], "must hold square matrices"),
        (GOOD[:0], "must hold at least one record"),
        (np.array(0.7345), "must hold square matrices"),
        (GOOD.astype(complex), "must hold real numbers only"),
        (GOOD.astype(str), "must hold real numbers only"),
    ],
)
def test_bad_arrays(tmp_path, fail_release, array, words):
    np.save(tmp_path / "x.npy", array)
    assert words in fail_release(tmp_path / "x.npy")


def test_files_that_are_none(tmp_path, fail_release):
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "x.txt").write_text("0.7345,1\n")
    assert "there is no file" in fail_release(tmp_path / "missing.npy")
    assert "there is no file" in fail_release(tmp_path / "missing.npz")
    assert "there is no file" in fail_release(tmp_path / "missing.csv")
    assert "there is no file" in fail_release(tmp_path / "two\nlines.csv")
    assert "is not a file" in fail_release(tmp_path / "folder.csv")
    assert "must end in .csv, .npy or .npz" in fail_release(tmp_path / "x.txt")


def damaged(tmp_path):
    np.save(tmp_path / "whole.npy", GOOD)
    np.savez_compressed(tmp_path / "whole.npz", GOOD)
    whole, archive = (tmp_path / "whole.npy").read_bytes(), (tmp_path / "whole.npz").read_bytes()
    garbled = bytearray(archive)
    garbled[60:90] = bytes(30)
    objects = np.array([{"secret": 0.7345}], dtype=object)
    np.save(tmp_path / "objects.npy", objects, allow_pickle=True)
    np.savez(tmp_path / "objects.npz", objects)
    files = {
        "cut.npy": whole[:-40],
        "empty.npy": b"",
        "text.npy": b"0.7345 1 2 3",
        "pickle.npy": pickle.dumps([0.7345]),
        "archive.npy": archive,
        "cut.npz": archive[:-40],
        "garbled.npz": bytes(garbled),
        "array.npz": whole,
        "empty.npz": b"",
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "whole.npy").unlink()
    (tmp_path / "whole.npz").unlink()
    return sorted(tmp_path.iterdir())


def test_damaged_files_and_pickles(tmp_path, fail_release):
    paths = damaged(tmp_path)
    assert len(paths) == 11
    for path in paths:
        assert f"{path.name} cannot be read" in fail_release(path)


def test_an_archive_of_many_arrays_needs_a_name(tmp_path, fail_release):
    np.savez(tmp_path / "x.npz", covariances=GOOD, labels=np.arange(8))
    message = fail_release(tmp_path / "x.npz")
    assert "--key must name one of: 'covariances', 'labels'" in message
    message = fail_release(tmp_path / "x.npz", "--key", "other")
    assert "one of 'covariances', 'labels', got 'other'" in message
    np.savez(tmp_path / "none.npz")
    assert "must hold one array" in fail_release(tmp_path / "none.npz")
    np.save(tmp_path / "x.npy", GOOD)
    assert "--key needs a .npz file" in fail_release(tmp_path / "x.npy", "--key", "other")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n0.7345,1\n2,secret 0.7345\n", "must contain numbers only"),
        ("0.7345,secret\n1,2\n", "must contain numbers only"),
        ("0.7345,1\n2\n", "must have the same number of cells in every line"),
        ("0.7345,1\n\n2,3,4\n", "must have the same number of cells in every line"),
        ("0,7345;1,5\n2,5;3,5\n", "must contain numbers only"),
        ("0.7345,1\n2,\n", "must contain numbers only"),
        ("0,7345;1,5\n2;3\n", "must contain numbers only"),
        ("0.7345,1+2j\n", "must contain numbers only"),
        (",a,b\n0,0.7345,1\n", "must contain numbers only"),
        ("a,a\n0.7345,1\n", "must have a name of its own over every column"),
        ("NA,NA\n0.7345,1\n", "must contain numbers only"),
        ("0.7345\n\n1\n", "must contain numbers only"),
        ("a,b\n", "must hold at least one record"),
        ("", "must hold at least one record"),
        ("0.7345,\x001\n", "must contain numbers only"),
    ],
)
def test_bad_tables(tmp_path, fail_release, text, words):
    (tmp_path / "x.csv").write_text(text)
    assert words in fail_release(tmp_path / "x.csv", "--manifold", "euclidean")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a\n" * 7, "one label per record"),
        ("group\n" + "a\n" * 8, "one label per record"),
        ("a\n" * 7 + " \n", "one label in each line"),
        ("0.7345,a\n" * 8, "in a single column"),
        ("", "one label in each line"),
    ],
)
def test_bad_groups(tmp_path, fail_release, text, words):
    np.save(tmp_path / "x.npy", GOOD)
    (tmp_path / "groups.txt").write_text(text)
    message = fail_release(tmp_path / "x.npy", "--groups", tmp_path / "groups.txt")
    assert words in message
    assert "8" not in message.replace(str(tmp_path), "")  # how many records there are is private


def test_bad_group_files(tmp_path, fail_release):
    np.save(tmp_path / "x.npy", GOOD)
    np.save(tmp_path / "nan.npy", np.full(8, np.nan))
    np.save(tmp_path / "objects.npy", np.array([["a"]], dtype=object))
    (tmp_path / "groups.xlsx").write_text("a")
    (tmp_path / "x.csv").write_text("x,who\n0.7345,a\n1,\n")
    run = lambda name: fail_release(tmp_path / "x.npy", "--groups", tmp_path / name)  # noqa: E731
    assert "there is no file" in run("missing.txt")
    assert "missing label" in run("nan.npy")
    assert "cannot be read" in run("objects.npy")
    assert ".npy, .csv or .txt" in run("groups.xlsx")
    column = lambda name, file: fail_release(  # noqa: E731
        tmp_path / file, "--group-column", name, "--manifold", "euclidean"
    )
    assert "must name a group in every row" in column("who", "x.csv")
    assert "one of 'x', 'who', got 'whom'" in column("whom", "x.csv")
    assert "needs a .csv file" in column("who", "x.npy")


def test_bad_balls(tmp_path, fail_release):
    np.save(tmp_path / "x.npy", np.tile([0.0, 0.0, 1.0], (8, 1)))
    np.save(tmp_path / "off.npy", np.array([0.0, 0.0, 2.0]))
    np.save(tmp_path / "plane.npy", np.array([0.0, 1.0]))
    np.save(tmp_path / "pole.npy", np.array([0.0, 0.0, 1.0]))
    np.save(tmp_path / "five.npy", np.ones(5))
    sphere = ["--manifold", "sphere"]

    def run(*arguments):
        return fail_release(tmp_path / "x.npy", *sphere, *arguments)

    assert "center must be given" in run()
    assert "center must be a point of" in run("--center", tmp_path / "off.npy")
    assert "center must have shape (3,)" in run("--center", tmp_path / "plane.npy")
    assert "curvature limit" in run("--center", tmp_path / "pole.npy", "--radius", "1.6")
    assert "radius must be positive" in run("--center", tmp_path / "pole.npy", "--radius", "-1")
    assert "there is no file" in run("--center", tmp_path / "missing.npy")
    np.save(tmp_path / "spd.npy", GOOD)
    assert "one square matrix" in fail_release(
        tmp_path / "spd.npy", "--center", tmp_path / "five.npy"
    )
    assert "outer_radius must be given" in fail_release(tmp_path / "spd.npy", "--radius", "private")
    assert "outer_radius must be None" in fail_release(tmp_path / "spd.npy", "--outer-radius", "9")


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--mu", "inf", "mu must be finite"),
        ("--mu", "0", "mu must be positive"),
        ("--mu", "nan", "mu must be a number"),
        ("--mu", "one", "must be a number, got 'one'"),
        ("--radius", "wide", "must be a number, got 'wide'"),
        ("--confidence-level", "95", "must lie strictly between 0 and 1"),
        ("--manifold", "torus", "invalid choice: 'torus'"),
        ("--output", "out.txt", "--output must end in .json"),
        ("--seed", "0", "unrecognized arguments: --seed 0"),
        ("--random-state", "0", "unrecognized arguments"),
        ("--out", "x.json", "unrecognized arguments"),
        ("--dataset", "muse", "--dataset needs a --ledger"),
    ],
)
def test_bad_arguments(tmp_path, fail_release, option, value, words):
    np.save(tmp_path / "x.npy", GOOD)
    assert words in fail_release(tmp_path / "x.npy", option, value)


def test_missing_arguments(fail):
    assert "required" in fail("release", "x.npy")
    assert "required" in fail()
    assert "invalid choice" in fail("publish")
    argv = ["--manifold", "spd", "--radius", "1", "--mu", "1", "--output", "o.json"]
    assert "not allowed with" in fail(
        "release", "x.csv", *argv, "--groups", "g.txt", "--group-column", "g"
    )


@pytest.mark.parametrize("name", ["out.json", "out.html"])
def test_outputs_are_checked_before_the_file_is_read(tmp_path, fail_release, name):
    (tmp_path / name).write_text("precious")
    assert f"{name} is there already; --force" in fail_release(tmp_path / "missing.npy")
    assert (tmp_path / name).read_text() == "precious"
    (tmp_path / name).unlink()
    (tmp_path / name).mkdir()
    assert f"{name} is a folder" in fail_release(tmp_path / "missing.npy")
    (tmp_path / name).rmdir()
    output = tmp_path / "nowhere" / "out.json"
    assert "cannot be written: No such file" in fail_release(
        tmp_path / "missing.npy", "--output", output
    )


def test_an_output_that_may_not_be_written(tmp_path, fail_release, monkeypatch):
    def refuse(self, *args, **kwargs):
        raise PermissionError(13, "Permission denied", str(self))

    np.save(tmp_path / "x.npy", GOOD)
    monkeypatch.setattr("pathlib.Path.open", refuse)  # root may write anywhere
    assert "out.json cannot be written: Permission denied" in fail_release(tmp_path / "x.npy")


def test_two_runs_do_not_write_the_same_file(tmp_path, fail_release):
    with reserve(tmp_path / "out.json", force=False) as save:
        assert "another run is about to write" in fail_release(tmp_path / "missing.npy")
        save("first")
    assert (tmp_path / "out.json").read_text() == "first"


def test_an_error_of_two_records_is_the_same(tmp_path, fail):
    """What is wrong may be told, but no more: two bad files give one message."""
    messages = set()
    for row, value in ((0, np.nan), (7, np.inf)):
        array = GOOD.copy()
        array[row] = value
        np.save(tmp_path / "x.npy", array)
        messages.add(
            fail("release", tmp_path / "x.npy", "--manifold", "spd", "--radius", "1", "--mu", "1",
                 "--output", tmp_path / "out.json")
        )  # fmt: skip
    assert len(messages) == 1


def test_success_is_silent_on_standard_error(tmp_path, capsys):
    np.save(tmp_path / "x.npy", GOOD)
    argv = [
        "release",
        str(tmp_path / "x.npy"),
        "--manifold",
        "logchol",
        "--radius",
        "1",
        "--mu",
        "1",
    ]
    assert main([*argv, "--output", str(tmp_path / "out.json")]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    assert shown.out.count("\n") == 1


@pytest.mark.parametrize(
    ("table", "space"), [(np.zeros((37, 2, 2)), "euclidean"), (np.zeros((37, 2, 3)), "spd")]
)
def test_no_shape_counts_records(fail_release, tmp_path, table, space):
    """With groups their number is private."""
    np.save(tmp_path / "x.npy", table)
    np.save(tmp_path / "groups.npy", np.arange(37) // 5)
    message = fail_release(
        tmp_path / "x.npy", "--manifold", space, "--groups", tmp_path / "groups.npy"
    )
    assert "(records, 2, " in message
    assert "37" not in message
