"""The run finds what it should: mutants that tests miss, and only these."""

import ast
import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from tests.mutation.mutants import mutants, parse

ROOT = Path(__file__).parents[2]

PLANTED = '''
"""A module with a clip, a loop and a comparison."""


def clipped(x, bound):
    """Return x within its bound."""
    return min(x, bound) / 2


def larger(a, b):
    return a if a > b else b


def count(n):
    total = 0
    while total < n:
        total += 1
    return total
'''
STRONG = """
from planted.module import clipped, count, larger

def test_clipped():
    assert [clipped(x, 4) for x in (0, 1, 3, 9)] == [0.0, 0.5, 1.5, 2.0]

def test_larger():
    assert [larger(1, 2), larger(2, 1), larger(0, 0)] == [2, 2, 0]

def test_count():
    assert [count(n) for n in (0, 1, 5)] == [0, 1, 5]
"""
EQUIVALENT = "larger: return a if a > b else b -> return a if a >= b else b"


def _keys(source):
    return [mutant.key for mutant in mutants(parse(source))]


@pytest.mark.parametrize(
    ("expression", "changes"),
    [
        ("a + b", {"a - b", "a", "b"}),
        ("a - b", {"a + b", "a"}),
        ("a * b", {"a / b", "a", "b"}),
        ("a / b", {"a * b", "a"}),
        ("a ** b", {"a * b", "a"}),
        ("a < b", {"a <= b", "a > b"}),
        ("a == b", {"a != b"}),
        ("a and b", {"a or b", "a", "b"}),
        ("not a", {"a"}),
        ("-a", {"a"}),
        ("a if b else c", {"a if not b else c"}),
        ("min(a, b)", {"max(a, b)", "a", "b"}),
        ("np.maximum(a, b)", {"np.minimum(a, b)", "a", "b"}),
        ("np.clip(a, b, c)", {"a"}),
        ("(a - b).clip(b, c)", {"(a + b).clip(b, c)", "a.clip(b, c)", "a - b"}),
        ("clip_norm(a, r)", {"a"}),
        ("space.project_to_ball(a, b, r)", {"a"}),
        ("sqrt(a)", {"a"}),
        ("np.where(a, b, c)", {"b", "c"}),
        ("a.all()", {"a.any()"}),
        ("3.0", {"6.0", "4.0", "0.0"}),
        ("1", {"2", "0"}),
        ("a[-1]", {"a[1]", "a[-2]"}),
        ("f(a, axis=-1)", {"f(a, axis=1)", "f(a, axis=-2)"}),
        ("isinstance(a, b | c)", set()),
        ("f'{2 + a}'", set()),
        ("True", set()),
        ("GDP | PureDP | None", set()),
        ("a | b", {"a & b", "a", "b"}),
    ],
)
def test_changes_of_an_expression(expression, changes):
    found = _keys(f"x = {expression}")
    assert set(found) == {f"<module>: x = {expression} -> x = {change}" for change in changes}
    assert len(found) == len(changes)


def test_changes_of_statements():
    source = """
    class A:
        def f(self, a: 'int | None' = 0) -> 'list[3]':
            '''Docstrings are not code.'''
            check_positive(a)
            a += b
            if not a:
                raise ValueError(f"{a + 1}" + "a" + str(2 * a))
    """
    keys = _keys(dedent(source))
    assert keys == [
        "A.f: 0 -> 1",
        "A.f: check_positive(a) -> pass",
        "A.f: a += b -> a -= b",
        "A.f: a += b -> pass",
        "A.f: not a -> a",
    ]


def test_equal_changes_of_a_function_are_numbered():
    keys = _keys("def f(x):\n    if x:\n        return x + 1\n    return x + 1\n")
    assert "f: return x + 1 -> return x - 1" in keys
    assert "f: return x + 1 -> return x - 1 (#2)" in keys
    assert len(set(keys)) == len(keys)


def test_every_mutant_is_another_program():
    tree = parse((ROOT / "skdpfrechet" / "privacy" / "_composition.py").read_text())
    before = ast.unparse(tree)
    sources = [ast.unparse(mutant.applied(tree)) for mutant in mutants(tree)]
    assert before not in sources
    assert len(set(sources)) == len(sources)
    assert ast.unparse(tree) == before


@pytest.fixture
def project(tmp_path):
    """A function that runs the command on a planted project."""
    (tmp_path / "planted").mkdir()
    (tmp_path / "planted" / "__init__.py").touch()
    (tmp_path / "planted" / "module.py").write_text(PLANTED)
    (tmp_path / "targets.toml").write_text('["planted/module.py"]\ntests = ["test_planted.py"]\n')
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\nmarkers = slow\npythonpath = .\naddopts = --import-mode=importlib\n"
    )

    def run(tests, arguments="", *options):
        (tmp_path / "test_planted.py").write_text(tests)
        (tmp_path / "equivalent.toml").write_text(arguments)
        command = [sys.executable, "-m", "tests.mutation.run", "--root", str(tmp_path)]
        command += [f"--{name}={tmp_path / name}.toml" for name in ("targets", "equivalent")]
        command += [f"--cache={tmp_path / 'cache'}", *options]
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        return subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300
        )

    return run


def test_reports_an_equivalent_mutant_until_it_is_argued(project, tmp_path):
    first = project(STRONG)
    assert first.returncode == 1, first.stderr
    survivors = [line for line in first.stdout.splitlines() if "survives" in line]
    assert survivors == [f"planted/module.py:11: survives: {EQUIVALENT}"]

    argued = f'["planted/module.py"]\n"{EQUIVALENT}" = "Equal values are the same."\n'
    page = tmp_path / "page.md"
    second = project(STRONG, argued, f"--output={page}")
    assert second.returncode == 0, second.stdout + second.stderr
    assert "survives" not in second.stdout
    assert "Equal values are the same." in page.read_text()
    assert "module.py: 1 of 1" not in second.stderr  # nothing ran again

    stale = argued + '"larger: a -> b" = "Nothing."\n'
    third = project(STRONG, stale)
    assert third.returncode == 1
    assert "argued, but no survivor: larger: a -> b" in third.stdout


def test_finds_a_clip_that_no_test_looks_at(project):
    weak = STRONG.replace("(0, 1, 3, 9)", "(0, 1, 3)").replace("1.5, 2.0]", "1.5]")
    run = project(weak, "", "--operator", "extreme")
    assert run.returncode == 1, run.stderr
    assert "clipped: return min(x, bound) / 2 -> return x / 2" in run.stdout
    assert "-> return bound / 2" not in run.stdout


def test_only_the_lines_that_changed(project, tmp_path):
    def git(*arguments):
        who = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
        subprocess.run(["git", *who, *arguments], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-q")
    git("add", "planted")
    git("commit", "-qm", "before")
    file = tmp_path / "planted" / "module.py"
    file.write_text(PLANTED.replace("a if a > b else b", "b if b > a else a"))
    run = project(STRONG, "", "--changed", "HEAD", "--list")
    lines = run.stdout.splitlines()
    assert lines
    assert all(line.startswith("planted/module.py:11: ") for line in lines)


def test_refuses_tests_that_fail_without_a_change(project):
    run = project(STRONG.replace("[2, 2, 0]", "[2, 2, 1]"))
    assert run.returncode == 2
    assert "without any change its tests are red: test_planted.py::test_larger" in run.stderr
