"""Tables of text as people have them: names, missing values, and cells that are no numbers.

What one cell holds changes neither how many records there are nor what the others are.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from skdpfrechet._cli import main
from skdpfrechet._cli._read import MISSING, read_records

NAN = np.nan


@pytest.fixture
def read(tmp_path):
    def run(text, *arguments, replace=True, **options):
        path = tmp_path / "x.csv"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_records(path, "euclidean", *arguments, replace=replace, **options)

    return run


@pytest.mark.parametrize(
    ("text", "records", "lines"),
    [
        ("a,b\n1,2\n3,4\n", [[1, 2], [3, 4]], 1),
        ("0,1\n1,2\n3,4\n", [[0, 1], [1, 2], [3, 4]], 0),
        ("a,1\n1,2\n3,4\n", [[NAN, 1], [1, 2], [3, 4]], 0),
        ("a,\n1,2\n", [[NAN, NAN], [1, 2]], 0),
        (
            "a,b,c\n1,2,3\nNA,1,2\n2,,2\n0,0,1\n",
            [[1, 2, 3], [NAN, 1, 2], [2, NAN, 2], [0, 0, 1]],
            1,
        ),
        ("NA\n1.0\n2.0\n3.0\n", [[NAN], [1], [2], [3]], 0),
        ("x\n1\n\n2\n", [[1], [NAN], [2]], 1),
        ("\n1\n2\n\n", [[NAN], [1], [2], [NAN]], 0),
        ("1;\n;\n\n2;3", [[1, NAN], [NAN, NAN], [2, 3]], 0),
        ("1\t2\n\t\n", [[1, 2], [NAN, NAN]], 0),
        ("1,5;2,5\n2;3\n4;5\n", [[NAN, NAN], [2, 3], [4, 5]], 0),
        ("inf,-inf\n1e400,-1E-400\n0x10,1_0\n", [[np.inf, -np.inf], [np.inf, -0.0], [NAN, 10]], 0),
        ('"1","2"\n"3","a ""quote"""\n"open,4\n5,6\n', None, None),
        ('1,2\n3,"\n5,6\n', [[1, 2], [3, NAN], [5, 6]], 0),
        (b"1,\xff\x00\n3,\xc3\xa4\n", [[1, NAN], [3, NAN]], 0),
    ],
)
def test_what_a_table_holds(read, text, records, lines):
    if records is None:  # the number of cells is public, and must be that of the first line
        with pytest.raises(ValueError, match="same number of cells"):
            read(text)
        return
    held = read(text)
    assert_array_equal(held.records, records)
    assert held.header_lines == lines


def test_names_by_order(read):
    text = "0,1\n1,2\n3,4\n"
    assert_array_equal(read(text, header="yes").records, [[1, 2], [3, 4]])
    assert_array_equal(read("a,b\n3,4\n", header="no").records, [[NAN, NAN], [3, 4]])
    held = read("7,who\n1,a\n2,b\n", None, "who", header="yes")
    assert held.groups.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="--header yes says that the first line holds names"):
        read("7,who\n1,a\n2,b\n", None, "who")


@pytest.mark.parametrize("value", sorted(MISSING))
def test_missing_values_are_no_names(read, value):
    for cell in (value, value.upper(), f" {value} "):
        assert len(read(f"{cell},a\n1,2\n").records) == 2
        with pytest.raises(ValueError, match="must contain numbers only"):
            read(f"{cell},a\n1,2\n", replace=False)


cells = st.text(st.characters(exclude_characters=',;\t\r\n"', codec="utf-8"), max_size=8)
cells |= st.sampled_from([*MISSING, "a" * 200_000, "1e999", "-0", "1,"[:1], "0x1p3", "\x0c"])


@given(st.data())
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("width", [1, 3])
def test_a_cell_changes_nothing_but_its_record(tmp_path_factory, delimiter, width, data):
    n = 5
    rows = np.arange(1.0, n * width + 1).reshape(n, width)
    lines = [[repr(x) for x in row] for row in rows.tolist()]
    place = data.draw(st.integers(1, n - 1))
    lines[place] = [data.draw(cells) for _ in range(width)]
    path = tmp_path_factory.mktemp("t") / "x.csv"
    path.write_text(
        "\n".join(delimiter.join(line) for line in lines) + "\n", encoding="utf-8", newline=""
    )
    held = read_records(path, "euclidean", replace=True)
    others = np.arange(n) != place
    assert held.records.shape == rows.shape
    assert_array_equal(held.records[others], rows[others])


@pytest.mark.parametrize("kind", ["U", "S"])
def test_text_in_arrays(tmp_path, kind):
    table = np.array([["1.5", "2"], ["NA", ""], ["inf", "x"]]).astype(kind)
    np.save(tmp_path / "x.npy", table)
    records = read_records(tmp_path / "x.npy", "euclidean", replace=True).records
    assert_array_equal(records, [[1.5, 2], [NAN, NAN], [np.inf, NAN]])
    with pytest.raises(ValueError, match="must hold real numbers only"):
        read_records(tmp_path / "x.npy", "euclidean")


@pytest.mark.parametrize("kind", ["complex", "M8[s]", "m8[s]", "V8"])
def test_types_that_hold_no_numbers_are_refused_as_types(tmp_path, kind):
    np.save(tmp_path / "x.npy", np.zeros((4, 2), dtype=kind))
    with pytest.raises(ValueError, match="must hold real numbers only, got an array of"):
        read_records(tmp_path / "x.npy", "euclidean", replace=True)


@pytest.mark.parametrize(
    ("text", "options", "n", "lines"),
    [
        ("a,b\n1,2\nNA,1\n2,\n0,0\n", [], 4, 1),
        ("0,1\n1,2\n", [], 2, 0),
        ("0,1\n1,2\n", ["--header", "yes"], 1, 1),
        ("a,b\n1,2\n", ["--header", "no"], 2, 0),
    ],
)
def test_the_release_says_how_the_first_line_was_read(tmp_path, release, text, options, n, lines):
    (tmp_path / "x.csv").write_text(text)
    public = ["--manifold", "euclidean", "--radius", "5", "--invalid", "replace"]
    document, page = release(tmp_path / "x.csv", *public, *options)
    assert (document["n"], document["header_lines"]) == (n, lines)
    assert f"Lines of names in the file</dt><dd>{lines}</dd>" in page


def test_arrays_have_no_lines_of_names(tmp_path, release, fail_release, spd):
    np.save(tmp_path / "x.npy", spd)
    document, page = release(tmp_path / "x.npy", "--manifold", "spd", "--radius", "2")
    assert document["header_lines"] is None
    assert "the file has none" in page
    for path in (tmp_path / "out.json", tmp_path / "out.html"):
        path.unlink()
    assert "--header needs a .csv" in fail_release(tmp_path / "x.npy", "--header", "yes")


# --- noise and mechanism --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "mechanism", "noise"),
    [
        ([], "projected-gaussian", "exact"),
        (["--noise", "secure"], "projected-gaussian", "exact"),
        (["--noise", "float"], "riemannian-gaussian", "float"),
        (["--noise", "float", "--mechanism", "projected-gaussian"], "projected-gaussian", "float"),
        (["--mechanism", "riemannian-gaussian-exact"], "riemannian-gaussian-exact", "float"),
    ],
)
def test_the_noise_is_chosen_and_said(
    tmp_path, release, directions, pole, options, mechanism, noise
):
    pytest.importorskip("flint")
    np.save(tmp_path / "x.npy", directions)
    public = ["--manifold", "sphere", "--center", pole, "--radius", "1", "--variance"]
    document, page = release(tmp_path / "x.npy", *public, *options)
    privacy = document["privacy"]
    exact = noise == "exact"
    assert privacy["releases"][0]["mechanism"] == mechanism
    assert [row["is_private"] for row in privacy["releases"]] == [
        # The query of the variance has exact noise of its own, whatever the mean has.
        exact or (row["statistic"] == "variance" and "--noise" not in options)
        for row in privacy["releases"]
    ]
    assert privacy["is_private"] == (privacy["caveats"] == []) == exact
    assert f'<td class="words">{mechanism}</td><td class="words">{noise}</td>' in page
    assert ("FLOAT NOISE in mean" in page) == (not exact)
    for caveat in privacy["caveats"]:
        assert "last bits" in caveat


def test_noise_that_cannot_be_had_is_refused_before_it_is_paid(
    tmp_path, fail_release, directions, pole
):
    np.save(tmp_path / "x.npy", directions)
    assert main(["ledger", "create", str(tmp_path / "l"), "--mu", "2"]) == 0
    public = ["--manifold", "sphere", "--center", pole, "--radius", "1", "--ledger", tmp_path / "l"]
    run = lambda *more: fail_release(tmp_path / "x.npy", *public, *more)  # noqa: E731
    assert "noise='secure' requires mechanism" in run(
        "--noise", "secure", "--mechanism", "riemannian-gaussian"
    )
    assert "mechanism 'wrapped-gaussian' requires" in run("--mechanism", "wrapped-gaussian")
    assert "invalid choice" in run("--mechanism", "laplace")
    assert "invalid choice" in run("--noise", "none")


def test_the_document_is_json_whatever_the_caveats(tmp_path, release, spd):
    np.save(tmp_path / "x.npy", spd)
    document, _ = release(
        tmp_path / "x.npy", "--manifold", "spd", "--radius", "2", "--noise", "float"
    )
    assert json.loads(json.dumps(document)) == document
    assert document["privacy"]["caveats"][0].startswith("FLOAT NOISE in mean, second moment")
