"""Runs of the command line in this process."""

from __future__ import annotations

import json

import numpy as np
import pytest

from skdpfrechet._cli import main

SECRET = "0.7345"  # how every telling number in a bad file begins
N = 40


def _refuse(constant):
    raise AssertionError(f"JSON has no {constant}")


@pytest.fixture
def spd():
    """Records whose numbers have all their digits, so that a copy of one would be seen."""
    v = np.random.default_rng(3).normal(scale=0.3, size=(N, 2, 2))
    return v @ v.swapaxes(1, 2) + np.eye(2)


@pytest.fixture
def directions():
    v = np.random.default_rng(4).normal(size=(N, 3)) * 0.3 + [0.4, -0.2, 1.0]
    return v / np.linalg.norm(v, axis=1, keepdims=True)


@pytest.fixture
def pole(tmp_path):
    path = tmp_path / "pole.csv"
    path.write_text("0,0,1\n")
    return path


@pytest.fixture
def release(tmp_path):
    """Release from a file; return the JSON document and the page."""

    def run(file, *arguments, output="out.json"):
        path = tmp_path / output
        argv = ["release", file, "--mu", "1", "--output", path, *arguments]
        assert main([str(word) for word in argv]) == 0
        page = path.with_suffix(".html").read_text(encoding="utf-8")
        return json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse), page

    return run


@pytest.fixture
def fail(capsys):
    """Run what must fail; return the one line of its error."""

    def run(*argv):
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            main([str(word) for word in argv])
        shown = capsys.readouterr()
        assert stop.value.code == 2
        assert shown.out == ""
        assert shown.err.startswith("skdpfrechet")
        assert shown.err.count("\n") == 1
        assert shown.err.endswith("\n")
        assert SECRET not in shown.err
        return shown.err

    return run


@pytest.fixture
def fail_release(fail, tmp_path):
    """Run a release that must fail and leave nothing behind."""

    def run(file, *arguments):
        before = sorted(tmp_path.iterdir())
        output = tmp_path / "out.json"
        argv = {"--manifold": "spd", "--radius": "2", "--mu": "1", "--output": output}
        given = dict(zip(arguments[::2], arguments[1::2], strict=True))
        words = [word for pair in {**argv, **given}.items() for word in pair]
        message = fail("release", file, *words)
        assert sorted(tmp_path.iterdir()) == before
        return message

    return run
