"""Time and peak memory of fits that read their records in blocks, next to fits in memory.

``python -m tests.benchmarks.out_of_core --output docs/out_of_core.md`` writes the records to a
file, fits them in every way, each in a fresh process, prints a table and writes the page.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from skdpfrechet import DPFrechetMean
from skdpfrechet.estimators import _records

SIZE = 5
CHUNK = 20_000  # records
WAYS = {
    "array": "in memory, an array",
    "map": "in memory, a memory map below the limit",
    "blocks": "memory map, in blocks",
    "threads": "dask, two threads",
    "cluster": "dask, two worker processes",
}


def main() -> None:
    """Measure every way and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.way is not None:
        print(json.dumps(measure(arguments.way, arguments.file)))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "records.npy"
        write_records(path, arguments.records)
        rows = [(way, run_apart(way, path)) for way in WAYS]
    page = report(rows, arguments.records)
    print(page)
    if arguments.output is not None:
        arguments.output.write_text(page, encoding="utf-8")


def write_records(path: Path, n: int) -> None:
    """Write n covariance matrices of ten standard normal vectors, a chunk at a time."""
    shape = (n, SIZE, SIZE)
    records = np.lib.format.open_memmap(path, mode="w+", dtype=float, shape=shape)
    for start in range(0, n, CHUNK):
        count = min(CHUNK, n - start)
        factors = np.random.default_rng(start).normal(size=(count, SIZE, 10))
        records[start : start + count] = factors @ factors.swapaxes(-1, -2) / 10
    records.flush()


def run_apart(way: str, path: Path) -> dict[str, Any]:
    """Measure one way in a process of its own."""
    command = [sys.executable, "-m", "tests.benchmarks.out_of_core"]
    output = subprocess.run(
        [*command, "--way", way, "--file", str(path)],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    result: dict[str, Any] = json.loads(output.stdout.splitlines()[-1])
    return result


def measure(way: str, path: Path) -> dict[str, Any]:
    """Return the seconds of a fit and the megabytes it adds to the peak of the busiest process."""
    estimator = DPFrechetMean("spd", radius=3.0, random_state=0, noise="float")
    with opened(way, path) as (X, peaks):
        estimator.fit(X[:1000])  # compiles, and imports what is needed
        before, start = peaks(), perf_counter()
        estimator.fit(X)
        seconds = perf_counter() - start
        growth = max(b - a for a, b in zip(before, peaks(), strict=True))
    return {"seconds": seconds, "before": max(before), "growth": growth}


@contextmanager
def opened(way: str, path: Path) -> Iterator[tuple[Any, Any]]:
    """Yield the records and a function for the peak memory of every process that computes."""
    if way == "array":
        # From the disk while the clock runs, as for the others.
        yield _Loaded(path), lambda: [peak()]
        return
    X = np.load(path, mmap_mode="r")
    if way in ("map", "blocks"):
        _records.LARGE = 1 if way == "blocks" else sys.maxsize
        yield X, lambda: [peak()]
        return
    import dask
    import dask.array as da
    from distributed import Client, LocalCluster

    parts = []
    for start in range(0, len(X), CHUNK):  # da.from_array would copy the map into memory
        shape = (min(CHUNK, len(X) - start), SIZE, SIZE)
        part = dask.delayed(read)(str(path), start, shape[0])
        parts.append(da.from_delayed(part, shape, dtype=float))
    records = da.concatenate(parts)
    if way == "threads":
        with dask.config.set(scheduler="threads", num_workers=2):
            yield records, lambda: [peak()]
        return
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit="600MB", dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        yield records, lambda: list(client.run(peak).values())


class _Loaded:
    """A file that is loaded when a slice of it, or the whole, is converted to an array."""

    def __init__(self, path: Path, rows: slice = slice(None)) -> None:
        self.path, self.rows = path, rows

    def __getitem__(self, rows: slice) -> _Loaded:
        return _Loaded(self.path, rows)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.array(np.load(self.path, mmap_mode="r")[self.rows])


def read(path: str, start: int, count: int) -> np.ndarray:
    """Return records of the file."""
    return np.array(np.load(path, mmap_mode="r")[start : start + count])


def peak() -> float:
    """Return the largest memory of this process so far, in MB, on Linux.

    That of `resource.getrusage` would include the process that started this one.
    """
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) * 1024 / 1e6


def report(rows: list[tuple[str, dict[str, Any]]], n: int) -> str:
    """Return the page."""
    lines = [
        "# Data beyond memory",
        "",
        f"A private fit of the mean of {n:,} SPD({SIZE}) matrices, {n * SIZE**2 * 8 / 1e6:,.0f} MB "
        f"in a file, with its second moment; blocks of 8 MB of the memory map, "
        f"chunks of {CHUNK:,} records for dask. "
        "Memory is what the fit adds to the peak of the process (of the busiest worker) after a "
        "first fit of 1,000 records; with a memory map it counts the pages of the file, up "
        "to all of them, which the system drops when it needs the memory. Written by",
        "",
        "```",
        "python -m tests.benchmarks.out_of_core --output docs/out_of_core.md",
        "```",
        "",
        "| records | seconds | peak before, MB | added by the fit, MB |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {WAYS[way]} | {row['seconds']:.2f} | {row['before']:.0f} | {row['growth']:.0f} |"
        for way, row in rows
    ]
    lines += [
        "",
        "In blocks the file is read, checked and packed again for each of about ten passes; that "
        "is the price of memory that does not grow with n.",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
