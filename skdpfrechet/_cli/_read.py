"""Files of records, groups and points.

No message quotes a value or tells where it stands: whoever reads the screen may not know the
records. Messages of other libraries do both, so none of them comes through.

How many records a file holds, and how many numbers each has, is public. So lines are cut into cells
one by one, and no cell, whatever it holds, can reach beyond its own line.
"""

from __future__ import annotations

import csv
import warnings
import zipfile
from array import array
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice
from math import isqrt, nan
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from skdpfrechet._numerics import Array
from skdpfrechet.manifolds._resolve import point_ndim

DELIMITERS = (",", ";", "\t")
HEADERS = ("auto", "yes", "no")
#: What programs write where a number is missing, without regard to case.
MISSING = frozenset({
    "", ".", "-", "?", "na", "n/a", "#n/a", "#n/a n/a", "#na", "<na>", "nan", "-nan", "nat", "null",
    "none", "missing", "1.#ind", "-1.#ind", "1.#qnan", "-1.#qnan",
})  # fmt: skip
_LINES = 1000  # of a file that say what separates its cells


@dataclass(frozen=True, eq=False)
class RecordFile:
    """What a file of records holds.

    Parameters
    ----------
    records : ndarray, shape (n, *point_shape)
    groups : ndarray, shape (n,), or None
    header_lines : int or None
        How many lines of a .csv file were read as names of columns.
    """

    records: Array
    groups: Array | None = None
    header_lines: int | None = None


def read_records(
    path: Path,
    manifold: str,
    key: str | None = None,
    group_column: str | None = None,
    header: str = "auto",
    replace: bool = False,
) -> RecordFile:
    """Return the records of a file, matrices in their shape.

    Parameters
    ----------
    path : Path
    manifold : str
    key : str or None
        The array of a .npz file.
    group_column : str or None
        The column of a .csv file that names groups.
    header : {"auto", "yes", "no"}
        Whether the first line of a .csv file names the columns. ``"auto"`` takes it so if none of
        its cells is a number or a missing value.
    replace : bool
        Whether what is no number becomes NaN instead of an error.

    Raises
    ------
    ValueError
        If the file is not what it should be.
    """
    csv_only = {"--group-column": group_column is not None, "--header": header != "auto"}
    for option, used in csv_only.items():
        if used and path.suffix.lower() != ".csv":
            raise ValueError(f"{option} needs a .csv file of records, got {path}.")
    if path.suffix.lower() == ".csv":
        if key is not None:
            raise ValueError(f"--key needs a .npz file of records, got {path}.")
        table, groups, lines = _read_csv(path, group_column, header, replace)
        return RecordFile(_shape_records(path, table, manifold), groups, lines)
    table = _read_array(path, key, replace)
    return RecordFile(_shape_records(path, table, manifold))


def read_groups(path: Path) -> Array:
    """Return the labels of a file that holds one for each record."""
    if path.suffix.lower() == ".npy":
        return _read_npy(path)
    if path.suffix.lower() not in (".csv", ".txt"):
        raise ValueError(f"groups must be in a .npy, .csv or .txt file, got {path}.")
    rows = list(_rows(path, _delimiter(path)))
    if not rows or any(len(row) != 1 or not row[0] for row in rows):
        raise ValueError(f"{path} must have one label in each line, in a single column.")
    return np.array([row[0] for row in rows])


def read_point(path: Path, manifold: str) -> Array:
    """Return the one point that a file holds."""
    if path.suffix.lower() == ".csv":
        table, _, _ = _read_csv(path, None, "auto", False)
    else:
        table = _read_array(path, None, False)
    if point_ndim(manifold) == 1:
        return table.reshape(-1)
    size = isqrt(table.size)
    if size**2 != table.size:
        raise ValueError(
            f"{path} must hold one square matrix for the space {manifold!r}, "
            f"got an array of shape {table.shape}."
        )
    return table.reshape(size, size)


def _shape_records(path: Path, table: Array, manifold: str) -> Array:
    if table.size == 0:
        raise ValueError(f"{path} must hold at least one record.")
    if point_ndim(manifold) == 1:
        if table.ndim != 2:
            raise ValueError(
                f"{path} must have a record in each row for the space {manifold!r}, "
                f"got an array of shape {_shape(table)}."
            )
        return table
    if table.ndim == 2:
        size = isqrt(table.shape[1])
        if size**2 != table.shape[1]:
            raise ValueError(
                f"{path} must have 1, 4, 9, 16, 25, ... columns for the space {manifold!r}, the "
                f"rows of a square matrix one after the other, got {table.shape[1]}."
            )
        return table.reshape(-1, size, size)
    if table.ndim != 3 or table.shape[1] != table.shape[2]:
        raise ValueError(
            f"{path} must hold square matrices for the space {manifold!r}, an array of shape "
            f"(records, p, p), got {_shape(table)}."
        )
    return table


def _shape(table: Array) -> str:
    """Return a shape without the number of records, which groups may make private."""
    return f"({', '.join(['records', *map(str, table.shape[1:])][: table.ndim])})"


def _read_array(path: Path, key: str | None, replace: bool) -> Array:
    """Return the array of a binary file: numbers, or text that is read as a table's would be."""
    kind = path.suffix.lower()
    if key is not None and kind != ".npz":
        raise ValueError(f"--key needs a .npz file of records, got {path}.")
    if kind not in (".npy", ".npz"):
        raise ValueError(f"the file must end in .csv, .npy or .npz, got {path}.")
    table = _read_npy(path) if kind == ".npy" else _read_npz(path, key)
    if table.dtype.kind == "S":
        table = np.char.decode(table, "utf-8", "replace")
    if table.dtype.kind == "U" and replace:
        numbers = [_number(cell) for cell in table.ravel().tolist()]
        return np.array(numbers, dtype=float).reshape(table.shape)
    if table.dtype.kind not in "buif":
        raise ValueError(f"{path} must hold real numbers only, got an array of {table.dtype}.")
    return table


def _read_csv(
    path: Path, group_column: str | None, header: str, replace: bool
) -> tuple[Array, Array | None, int]:
    """Return the numbers of a table, the labels in one of its columns, and its lines of names."""
    delimiter = _delimiter(path)
    rows = _rows(path, delimiter)
    first = next(rows, [])
    named = bool(first) and header != "no" and (header == "yes" or _is_header(first))
    names = first if named else []
    if not all(names) or len(set(names)) < len(names):
        raise ValueError(
            f"{path} must have a name of its own over every column, or no names; a column of row "
            "numbers must be left out when the file is written."
        )
    column = None if group_column is None else _find_column(path, names, group_column)
    numbers, labels, complete = array("d"), [], True
    for row in rows if named or not first else chain([first], rows):
        if len(row) != len(first):
            raise ValueError(f"{path} must have the same number of cells in every line.")
        if column is not None:
            labels.append(row.pop(column))
        try:
            numbers.extend(list(map(float, row)))
        except ValueError:
            numbers.extend(list(map(_number, row)))
            complete = False
    if not complete and not replace:
        raise ValueError(
            f"{path} must contain numbers only, with a point for the decimals; --header yes takes "
            "the first line as names, --invalid replace what is no number as missing."
        )
    if not all(labels):
        raise ValueError(f"{path} must name a group in every row of the column {group_column!r}.")
    width = len(first) - (column is not None)
    table = np.array(numbers).reshape(-1, width) if width else np.empty((0, 0))
    return table, None if column is None else np.array(labels), int(named)


def _find_column(path: Path, names: list[str], group_column: str) -> int:
    if names.count(group_column) == 1:
        return names.index(group_column)
    hint = "" if names else "; --header yes says that the first line holds names"
    raise ValueError(
        f"--group-column must name one column of {path}, one of {_list(names)}, "
        f"got {group_column!r}{hint}."
    )


def _is_header(row: list[str]) -> bool:
    """Whether a first line can only hold names: no number in it, and nothing that is missing.

    A number with a comma for the decimals is one here, so that such a file is not read without its
    first record.
    """
    return not any(cell.lower() in MISSING or _is_number(cell.replace(",", ".")) for cell in row)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _number(cell: str) -> float:
    """Return what a cell holds, NaN if that is no number."""
    try:
        return float(cell)
    except ValueError:
        return nan


def _rows(path: Path, delimiter: str) -> Iterator[list[str]]:
    """Yield the cells of every line, without the space around them.

    Lines without any cell are left out, but in a file of one column they are records whose number
    is missing: there the number of lines is the number of records.
    """
    _check_file(path)
    with _open(path) as file:
        single = not any(delimiter in line for line in islice(file, _LINES))
        file.seek(0)
        for line in file:
            text = line.rstrip("\n")
            if single or text.strip() or delimiter in text:
                yield _cells(text, delimiter)


def _cells(line: str, delimiter: str) -> list[str]:
    if '"' in line:
        with suppress(csv.Error):  # such as a cell beyond the limit of its size
            return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter), [""])]
    return [cell.strip() for cell in line.split(delimiter)]


def _delimiter(path: Path) -> str:
    """Return what separates the cells: what most lines have, and the most of it.

    No single line decides it, so no record changes how another one is read.
    """
    _check_file(path)
    with _open(path) as file:
        lines = [line for line in islice(file, _LINES) if line.strip()]
    counts = {mark: [line.count(mark) for line in lines] for mark in DELIMITERS}
    common = [mark for mark in DELIMITERS if 2 * np.count_nonzero(counts[mark]) > len(lines)]
    return max(common, key=lambda mark: float(np.median(counts[mark])), default=DELIMITERS[0])


def _open(path: Path) -> TextIO:
    # Numbers are the same in every encoding; labels stay different where they were.
    return path.open(encoding="utf-8-sig", errors="surrogateescape", newline=None)


def _read_npy(path: Path) -> Array:
    def load() -> Array:
        with path.open("rb") as file:
            return np.lib.format.read_array(file, allow_pickle=False)

    return np.asarray(_load(path, load))


def _read_npz(path: Path, key: str | None) -> Array:
    _check_file(path)
    if not zipfile.is_zipfile(path):
        raise ValueError(_unreadable(path))
    names = _load(path, lambda: _names(path))
    if key is None and len(names) != 1:
        raise ValueError(f"{path} must hold one array, or --key must name one of: {_list(names)}.")
    if key is not None and key not in names:
        raise ValueError(f"--key must name an array of {path}, one of {_list(names)}, got {key!r}.")
    name = names[0] if key is None else key

    def load() -> Array:
        with np.load(path, allow_pickle=False) as arrays:
            return np.asarray(arrays[name])

    return np.asarray(_load(path, load))


def _names(path: Path) -> list[str]:
    with np.load(path, allow_pickle=False) as arrays:
        return list(arrays.files)


def _list(names: list[str]) -> str:
    return ", ".join(map(repr, names)) or "(none)"


def _load(path: Path, load: Callable[[], Any], failure: str | None = None) -> Any:
    """Call `load`, whose errors are of any kind on a damaged file, and quote what it read."""
    _check_file(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return load()
    except MemoryError:
        failure = f"{path} is larger than the memory."
    except PermissionError:
        failure = f"{path} may not be read."
    except Exception:
        failure = failure or _unreadable(path)
    raise ValueError(failure)  # outside the handler: a context would carry the original message


def _unreadable(path: Path) -> str:
    return (
        f"{path} cannot be read: it is damaged, it is not a {path.suffix.lower()} file, or it "
        "holds Python objects instead of numbers."
    )


def _check_file(path: Path) -> None:
    if not path.exists():
        raise ValueError(f"there is no file {path}.")
    if not path.is_file():
        raise ValueError(f"{path} is not a file.")
