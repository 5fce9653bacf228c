"""Change the code in every place that privacy rests on, one at a time, and see whether tests fail.

    python -m tests.mutation.run
    python -m tests.mutation.run --output docs/mutations.md
    python -m tests.mutation.run --file 'sensitivity|_noise' --line 120-160 --operator guard
    python -m tests.mutation.run --changed main

Files and their tests are in targets.toml. Mutants that no test kills are survivors; those in
equivalent.toml are argued to do no harm, with the reason. The command fails if a survivor is not
argued, or an argument is about no survivor. What was seen of a mutant is kept for the next run, as
long as neither the package nor the tests have changed.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from tests.mutation.mutants import Mutant, mutants, parse
from tests.mutation.trial import Outcome, Trial, outcomes, preload, settle_hypothesis

_HERE = Path(__file__).parent
_ENVIRONMENT = {
    "SKDPFRECHET_KERNELS": "numpy",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}
_PAGE = """\
# Mutations

Every operator, comparison, condition, number, minimum, clip and root in the code that privacy rests
on was changed, one at a time, and the tests named in tests/mutation/targets.toml ran against each
change. Written by

```
python -m tests.mutation.run --output docs/mutations.md
```

A mutant is killed when a test fails, or when it takes more than {factor} times its usual time. A
mutant that no test kills is a survivor. Below is the reason why each of them does no harm.

"""
_FACTOR = 5  # of the time that a test takes, after which a mutant counts as killed
_GRACE = 2.0  # seconds more, of the processor


@dataclass
class Target:
    """A file, the tests that shall kill its mutants, and what became of them."""

    file: str
    tests: list[str]
    match: str
    arguments: dict[str, str]
    tree: ast.Module
    mutants: list[Mutant]
    complete: bool
    digest: str = ""
    seconds: float = 0.0
    order: dict[str, float] = field(default_factory=dict)
    kills: Counter[str] = field(default_factory=Counter)
    outcomes: dict[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def survivors(self) -> list[Mutant]:
        """Mutants that no test killed."""
        return [m for m in self.mutants if self.outcomes.get(m.key, ("red",))[0] == "green"]

    @property
    def unargued(self) -> list[Mutant]:
        """Survivors without a reason."""
        return [mutant for mutant in self.survivors if mutant.key not in self.arguments]

    @property
    def stale(self) -> list[str]:
        """Reasons for what is no survivor."""
        surviving = {mutant.key for mutant in self.survivors}
        return [key for key in self.arguments if self.complete and key not in surviving]


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit status: 0 if every survivor is argued."""
    options = _parser().parse_args(arguments)
    root = options.root.resolve()
    os.chdir(root)
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that no child is left behind
    targets = _targets(root, options)
    if options.list:
        for target in targets:
            for mutant in target.mutants:
                print(f"{target.file}:{mutant.line}: {mutant.operator}: {mutant.key}")
        return 0
    preload(["pytest", "numpy", "hypothesis"])
    settle_hypothesis()
    store = _Store(options.cache, options.fresh)
    code = _digest(*(ast.unparse(parse(f.read_text())) for f in _modules(root, targets)))
    with tempfile.TemporaryDirectory(prefix="mutation-", ignore_cleanup_errors=True) as scratch:
        sys.pycache_prefix, sys.dont_write_bytecode = f"{scratch}/bytecode", False
        os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", scratch)
        for target in targets:
            if target.mutants and not _baseline(target, root, Path(scratch), code):
                return 2
            _try(target, root, Path(scratch), options.jobs, store)
            _print_survivors(target)
    print(_table(targets))
    if options.output is not None:
        options.output.write_text(_page(targets))
    failed = any(target.unargued or target.stale for target in targets)
    return 1 if failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutation.run",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--root", type=Path, default=Path("."), help="folder of the project")
    parser.add_argument("--targets", type=Path, default=_HERE / "targets.toml")
    parser.add_argument("--equivalent", type=Path, default=_HERE / "equivalent.toml")
    parser.add_argument("--file", default="", help="only files whose path matches this")
    parser.add_argument("--function", default="", help="only functions whose name contains this")
    parser.add_argument("--line", default="", help="only these lines: 12 or 12-20")
    parser.add_argument("--operator", default="", help="only this kind of change")
    parser.add_argument("--changed", metavar="COMMIT", help="only lines changed since a commit")
    parser.add_argument("--list", action="store_true", help="list the mutants and run none")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    parser.add_argument("--cache", type=Path, default=_cache_folder())
    parser.add_argument("--fresh", action="store_true", help="run again what was seen before")
    parser.add_argument("--output", type=Path, help="write the table and the survivors as a page")
    return parser


def _cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "skdpfrechet-mutation"


# --- what to run ---------------------------------------------------------------------------------


def _targets(root: Path, options: argparse.Namespace) -> list[Target]:
    table = tomllib.loads(options.targets.read_text())
    argued = tomllib.loads(options.equivalent.read_text()) if options.equivalent.exists() else {}
    lines = _line_range(options.line)
    found = []
    for file, entry in table.items():
        if not re.search(options.file, file):
            continue
        tree = parse((root / file).read_text())
        everything = [m for m in mutants(tree) if _is_wanted(m.function, entry)]
        changed = None if options.changed is None else _changed_lines(root, file, options.changed)
        chosen = [
            mutant
            for mutant in everything
            if options.function in mutant.function
            and options.operator in ("", mutant.operator)
            and (lines is None or _overlap(mutant, lines))
            and (changed is None or any(_overlap(mutant, hunk) for hunk in changed))
        ]
        found.append(
            Target(
                file,
                entry["tests"],
                entry.get("match", ""),
                argued.get(file, {}),
                tree,
                chosen,
                complete=len(chosen) == len(everything),
            )
        )
    unknown = set(argued) - set(table)
    if unknown:
        raise SystemExit(f"equivalent.toml names files without tests: {sorted(unknown)}.")
    return found


def _is_wanted(function: str, entry: dict[str, list[str]]) -> bool:
    """Return whether a function, or one around it, is among those of a target."""

    def within(names: list[str]) -> bool:
        return any(f".{function}.".find(f".{name}.") >= 0 for name in names)

    return ("only" not in entry or within(entry["only"])) and not within(entry.get("skip", []))


def _line_range(text: str) -> tuple[int, int] | None:
    if not text:
        return None
    first, _, last = text.partition("-")
    return int(first), int(last or first)


def _overlap(mutant: Mutant, lines: tuple[int, int]) -> bool:
    return mutant.line <= lines[1] and lines[0] <= mutant.last_line


def _changed_lines(root: Path, file: str, commit: str) -> list[tuple[int, int]]:
    command = ["git", "diff", "-U0", commit, "--", file]
    text = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout
    hunks = re.findall(r"^@@ -\S+ \+(\d+)(?:,(\d+))? @@", text, flags=re.MULTILINE)
    return [(int(start), int(start) + int(count or 1) - 1) for start, count in hunks]


# --- running -------------------------------------------------------------------------------------


def _baseline(target: Target, root: Path, scratch: Path, code: str) -> bool:
    """Run the tests against the file as it is; tell what is wrong if they are not green."""
    trial = _trial(target, root, None, lambda test: 0.0, 1200)
    for _ in range(2):  # the second finds all imported
        [(_, outcome)] = outcomes(iter([trial]), root, scratch, 1)
        target.seconds = outcome.seconds
        if outcome.verdict != "green":
            print(
                f"{target.file}: without any change its tests are {outcome.verdict}: "
                f"{outcome.test}",
                file=sys.stderr,
            )
            return False
        preload(outcome.modules)
    target.order = outcome.durations
    tests = {test.partition("::")[0] for test in target.tests}
    files = {
        f
        for name in tests
        for f in ([root / name] if (root / name).is_file() else sorted((root / name).rglob("*.py")))
    }
    files |= {folder / "conftest.py" for f in files for folder in f.parents}
    target.digest = _digest(
        code, *target.tests, target.match, *(f.read_text() for f in sorted(files) if f.is_file())
    )
    return True


def _trial(target: Target, root: Path, tree: ast.Module | None, order, seconds: int) -> Trial:
    name = target.file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    def limit(test: str) -> float:
        return _FACTOR * target.order.get(test, 0.0) + _GRACE

    return Trial(name, root / target.file, tree, target.tests, target.match, order, limit, seconds)


def _try(target: Target, root: Path, scratch: Path, jobs: int, store: _Store) -> None:
    start, todo = monotonic(), []
    for mutant in target.mutants:
        known = store.outcome(target.digest, target.file, mutant.key)
        if known is None:
            todo.append(mutant)
        else:
            target.outcomes[mutant.key] = known
    names: dict[int, Mutant] = {}

    def trials() -> Iterator[Trial]:
        for mutant in todo:
            hint = store.killer(target.file, mutant.key)

            def order(test: str, hint: str = hint) -> float:
                """Return minus the kills that a second of this test has made so far."""
                seconds = target.order.get(test, 1.0) + 0.002
                return -1e9 if test == hint else -(target.kills[test] + 0.02) / seconds

            seconds = int(_FACTOR * target.seconds + 5 * _GRACE)
            trial = _trial(target, root, mutant.applied(target.tree), order, seconds)
            names[id(trial)] = mutant
            yield trial

    for number, (trial, outcome) in enumerate(outcomes(trials(), root, scratch, jobs), start=1):
        mutant = names.pop(id(trial))
        if outcome.verdict in ("empty", "broken"):
            raise SystemExit(f"{target.file}: the tests could not run against {mutant.key}.")
        target.kills[outcome.test] += 1
        target.outcomes[mutant.key] = outcome.verdict, outcome.test
        store.keep(target.digest, target.file, mutant.key, outcome)
        if number % 50 == 0 or number == len(todo):
            spent = monotonic() - start
            print(
                f"{target.file}: {number} of {len(todo)} in {spent:.0f} s, "
                f"{len(target.survivors)} survive",
                file=sys.stderr,
            )


class _Store:
    """What earlier runs saw, a line of JSON for each mutant."""

    def __init__(self, folder: Path, fresh: bool) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = folder / "outcomes.jsonl"
        self._known: dict[str, tuple[str, str]] = {}
        self._killers: dict[str, str] = {}
        if self._file.exists():
            for line in self._file.read_text().splitlines():
                digest, name, verdict, test = json.loads(line)
                if not fresh:
                    self._known[digest] = verdict, test
                if test:
                    self._killers[name] = test

    def outcome(self, digest: str, file: str, key: str) -> tuple[str, str] | None:
        """Return what was seen of this mutant in this package with these tests."""
        return self._known.get(_digest(digest, file, key))

    def killer(self, file: str, key: str) -> str:
        """Return the test that last killed a mutant that looked the same."""
        return self._killers.get(_digest(file, key), "")

    def keep(self, digest: str, file: str, key: str, outcome: Outcome) -> None:
        """Remember what was seen."""
        line = _digest(digest, file, key), _digest(file, key), outcome.verdict, outcome.test
        with self._file.open("a") as stream:
            stream.write(json.dumps(line) + "\n")


def _modules(root: Path, targets: list[Target]) -> list[Path]:
    packages = {root / target.file.split("/")[0] for target in targets}
    return [f for p in sorted(packages) for f in ([p] if p.is_file() else sorted(p.rglob("*.py")))]


def _digest(*texts: str) -> str:
    state = hashlib.sha256()
    for text in texts:
        state.update(f"{len(text)}:{text}".encode())
    return state.hexdigest()


# --- what came out -------------------------------------------------------------------------------


def _print_survivors(target: Target) -> None:
    for mutant in target.unargued:
        print(f"{target.file}:{mutant.line}: survives: {mutant.key}")
    for key in target.stale:
        print(f"{target.file}: argued, but no survivor: {key}")


def _table(targets: list[Target]) -> str:
    rows = [
        (
            t.file,
            len(t.mutants),
            len(t.mutants) - len(t.survivors),
            len(t.survivors),
            len(t.survivors) - len(t.unargued),
        )
        for t in targets
        if t.mutants
    ]
    sums = ("all", *(sum(row[i] for row in rows) for i in range(1, 5)))
    lines = ["| file | mutants | killed | survivors | argued |", "|---|---|---|---|---|"]
    lines += [f"| {' | '.join(map(str, row))} |" for row in [*rows, sums]]
    return "\n".join(lines)


def _page(targets: list[Target]) -> str:
    parts = [_PAGE.format(factor=_FACTOR), _table(targets), "\n"]
    for target in targets:
        if target.survivors:
            parts.append(f"\n## {target.file}\n\n")
        for mutant in target.survivors:
            reason = target.arguments.get(mutant.key, "**Not argued.**")
            before, after = _code(mutant.before), _code(mutant.after)
            parts.append(f"- `{mutant.function}`: {before} → {after}. {reason}\n")
    return "".join(parts)


def _code(text: str) -> str:
    return f"`{' '.join(text.split())}`"


if __name__ == "__main__":
    sys.exit(main())
