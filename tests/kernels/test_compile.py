"""Kernels where numba finds no folder for its cache."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("numba")

_PROGRAM = """
import numpy as np
from skdpfrechet._kernels import _norms
import skdpfrechet._solvers._compiled  # all kernels are declared here
print(_norms.row_norms(np.array([[3.0, 4.0]])), len(_norms._row_norms.signatures))
"""


def test_without_a_writable_folder_kernels_are_compiled_anew(tmp_path):
    """Not even the superuser can make folders below a file."""
    (tmp_path / "file").touch()
    environment = os.environ | {
        "NUMBA_CACHE_LOCATOR_CLASSES": "UserProvidedCacheLocator",  # no other folder counts
        "NUMBA_CACHE_DIR": str(tmp_path / "file" / "cache"),
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "SKDPFRECHET_KERNELS": "numba",
    }
    outcomes = []
    for change in ({}, {"NUMBA_CACHE_DIR": str(tmp_path / "folder")}):
        run = [sys.executable, "-W", "error", "-c", _PROGRAM]
        done = subprocess.run(run, env=environment | change, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        outcomes.append(done.stdout)
    assert outcomes == ["[5.] 1\n"] * 2
    assert list((tmp_path / "folder").rglob("*_row_norms*.nbc"))
