"""Files of records, groups and points.

No message quotes a value or tells where it stands: whoever reads the screen may not know the
records. Messages of other libraries do both, so none of them comes through.
"""

from __future__ import annotations

import csv
import warnings
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import isqrt
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from skdpfrechet._numerics import Array
from skdpfrechet.manifolds._resolve import point_ndim

DELIMITERS = (",", ";", "\t")


@dataclass(frozen=True, eq=False)
class RecordFile:
    """What a file of records holds: records of shape (n, *point_shape), perhaps their groups."""

    records: Array
    groups: Array | None = None


def read_records(
    path: Path, manifold: str, key: str | None, group_column: str | None
) -> RecordFile:
    """Return the records of a file, matrices in their shape.

    Raises
    ------
    ValueError
        If the file is not what it should be.
    """
    if group_column is not None and path.suffix.lower() != ".csv":
        raise ValueError(f"--group-column needs a .csv file of records, got {path}.")
    table, groups = _read_table(path, key, group_column)
    return RecordFile(_shape_records(path, table, manifold), groups)


def read_groups(path: Path) -> Array:
    """Return the labels of a file that holds one for each record."""
    if path.suffix.lower() == ".npy":
        return _read_npy(path)
    if path.suffix.lower() not in (".csv", ".txt"):
        raise ValueError(f"groups must be in a .npy, .csv or .txt file, got {path}.")
    rows = list(_rows(path, _delimiter(path)))
    if not rows or any(len(row) != 1 or not row[0].strip() for row in rows):
        raise ValueError(f"{path} must have one label in each line, in a single column.")
    return np.array([row[0].strip() for row in rows])


def read_point(path: Path, manifold: str) -> Array:
    """Return the one point that a file holds."""
    table, _ = _read_table(path, None, None)
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


def _read_table(
    path: Path, key: str | None, group_column: str | None
) -> tuple[Array, Array | None]:
    kind = path.suffix.lower()
    if key is not None and kind != ".npz":
        raise ValueError(f"--key needs a .npz file of records, got {path}.")
    if kind == ".csv":
        return _read_csv(path, group_column)
    if kind not in (".npy", ".npz"):
        raise ValueError(f"the file must end in .csv, .npy or .npz, got {path}.")
    table = _read_npy(path) if kind == ".npy" else _read_npz(path, key)
    if table.dtype.kind not in "buif":
        raise ValueError(f"{path} must hold real numbers only.")
    return table, None


def _read_csv(path: Path, group_column: str | None) -> tuple[Array, Array | None]:
    """Return the numbers of a table, and the labels in one of its columns.

    A first row without a single number is one of names. A row of numbers is always a record:
    whether a record is one must not depend on its value.
    """
    delimiter = _delimiter(path)
    first = next(_rows(path, delimiter), [])
    named = bool(first) and not any(map(_is_number, first))
    names = [name.strip() for name in first] if named else []
    if not all(names) or len(set(names)) < len(names):
        raise ValueError(
            f"{path} must have a name of its own over every column, or no names; a column of row "
            "numbers must be left out when the file is written."
        )
    if group_column is None:
        return _read_numbers(path, delimiter, named, None), None
    if names.count(group_column) != 1:
        raise ValueError(
            f"--group-column must name one column of {path}, one of {_list(names)}, "
            f"got {group_column!r}."
        )
    column = names.index(group_column)
    table = _read_numbers(path, delimiter, named, [i for i in range(len(names)) if i != column])
    rows = list(_rows(path, delimiter))[1:]
    if len(rows) != len(table) or any(len(row) != len(names) for row in rows):
        raise ValueError(_not_numbers(path))
    labels = [row[column].strip() for row in rows]
    if not all(labels):
        raise ValueError(f"{path} must name a group in every row of the column {group_column!r}.")
    return table, np.array(labels)


def _read_numbers(path: Path, delimiter: str, named: bool, columns: list[int] | None) -> Array:
    def load() -> Array:
        with _open(path) as file:
            while named and not file.readline().strip():
                pass
            return np.loadtxt(
                file, delimiter=delimiter, comments=None, quotechar='"', usecols=columns, ndmin=2
            )

    return np.asarray(_load(path, load, _not_numbers(path)))


def _not_numbers(path: Path) -> str:
    return (
        f"{path} must contain numbers only, with a point for the decimals, and the same number of "
        "them in every row."
    )


def _rows(path: Path, delimiter: str) -> Iterator[list[str]]:
    """Yield the cells of every line that is not empty."""
    with _open(path) as file:
        try:
            yield from (row for row in csv.reader(file, delimiter=delimiter) if row)
            return
        except csv.Error:
            pass
    raise ValueError(_unreadable(path))


def _delimiter(path: Path) -> str:
    """Return what separates the cells of the first line that is not empty."""
    _check_file(path)
    with _open(path) as file:
        line = next((line for line in file if line.strip()), "")
    return max(DELIMITERS, key=line.count)


def _open(path: Path) -> TextIO:
    # Numbers are the same in every encoding; labels stay different where they were.
    return path.open(encoding="utf-8-sig", errors="surrogateescape")


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


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
