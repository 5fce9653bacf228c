"""One mutant, one process: a fork of a parent that has imported all but the package and its tests.

The child puts the mutated module in the place of the module before anything imports it, runs the
tests in its own process until one fails, and says which. It is killed when it takes too long.
"""

from __future__ import annotations

import ast
import gc
import importlib
import json
import os
import resource
import select
import shutil
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from time import monotonic
from types import CodeType, ModuleType

import pytest

_MEMORY = 8 << 30  # bytes of address space
_WALL = 4  # seconds on the clock for each second of the processor, on a machine with other work


@dataclass(frozen=True)
class Trial:
    """Tests to run against a module, whose tree is None for the module as it is."""

    name: str  # of the module
    file: Path
    tree: ast.Module | None
    tests: Sequence[str]
    match: str  # as pytest's -k
    order: Callable[[str], float]  # tests with smaller values first
    limits: Callable[[str], float]  # seconds of the processor that a test may take
    seconds: int  # of the processor, for all


@dataclass(frozen=True)
class Outcome:
    """What the tests said.

    Parameters
    ----------
    verdict : {"green", "red", "slow", "dead", "empty", "broken"}
        All passed, one failed, the time was up, the process died, there was none, or pytest itself
        failed.
    test : str
        The first that failed or did not end.
    seconds : float
        Of the processor.
    durations : dict
        Seconds of each test that ran.
    modules : list of str
        All that were imported.
    """

    verdict: str
    test: str = ""
    seconds: float = 0.0
    durations: dict[str, float] = field(default_factory=dict)
    modules: list[str] = field(default_factory=list)


def outcomes(
    trials: Iterator[Trial], root: Path, scratch: Path, jobs: int
) -> Iterator[tuple[Trial, Outcome]]:
    """Run trials in `jobs` processes at a time and yield each with its outcome when it is over."""
    running: dict[int, _Child] = {}
    try:
        while True:
            while len(running) < jobs and (trial := next(trials, None)) is not None:
                child = _start(trial, root, scratch)
                running[child.pipe] = child
            if not running:
                return
            ready, _, _ = select.select(list(running), [], [], 0.5)
            for child in list(running.values()):
                late = monotonic() > child.deadline
                if child.pipe in ready and (data := os.read(child.pipe, 1 << 20)):
                    child.data += data
                elif child.pipe in ready or late:
                    del running[child.pipe]
                    yield child.trial, _finish(child, late)
    finally:
        for child in running.values():
            _finish(child, late=True)


def preload(modules: Sequence[str]) -> None:
    """Import what is not of this project, so that children find it done."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in modules:
            try:
                importlib.import_module(name)
            except Exception:
                continue
    gc.freeze()


def settle_hypothesis() -> None:
    """Make hypothesis draw the same examples every time, and stop at the first that fails."""
    try:
        from hypothesis import HealthCheck, Phase, settings
    except ImportError:
        return
    settings.register_profile(
        "mutation",
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    settings.load_profile("mutation")


# --- the child -----------------------------------------------------------------------------------


@dataclass
class _Child:
    trial: Trial
    process: int
    pipe: int
    deadline: float
    folder: Path
    data: bytes = b""


def _start(trial: Trial, root: Path, scratch: Path) -> _Child:
    if trial.name in sys.modules:
        raise RuntimeError(f"{trial.name} was imported before its mutants.")
    reader, writer = os.pipe()
    folder = scratch / f"trial-{monotonic():.6f}"
    sys.stdout.flush()
    sys.stderr.flush()
    process = os.fork()
    if process:
        os.close(writer)
        return _Child(trial, process, reader, monotonic() + _WALL * trial.seconds, folder)
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.setpgid(0, 0)
        os.close(reader)
        try:
            outcome = _run(trial, root, folder, lambda outcome: _tell(writer, outcome))
        except BaseException as error:
            outcome = Outcome("broken", repr(error))
        _tell(writer, outcome)
    finally:
        os._exit(0)


def _tell(writer: int, outcome: Outcome) -> None:
    with os.fdopen(writer, "wb") as stream:
        stream.write(json.dumps(vars(outcome)).encode())


def _run(trial: Trial, root: Path, folder: Path, tell: Callable[[Outcome], None]) -> Outcome:
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    resource.setrlimit(resource.RLIMIT_CPU, (trial.seconds, trial.seconds + 5))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.chdir(root)
    if trial.tree is not None:
        code = compile(trial.tree, str(trial.file), "exec", dont_inherit=True)
        sys.meta_path.insert(0, _Finder(trial.name, trial.file, code))
    recorder = _Recorder(trial.order)
    if trial.tree is not None:

        def give_up(verdict: str, test: str) -> None:
            tell(Outcome(verdict, test))
            os._exit(0)

        signal.signal(signal.SIGVTALRM, lambda *_: give_up("slow", recorder.current))
        recorder.give_up, recorder.limits = give_up, trial.limits
    options = ["-q", "-m", "not slow", "--tb=no", "-p", "no:cacheprovider", "-p", "no:xdist"]
    options += ["--assert=plain", "-o", "addopts=--import-mode=importlib"]  # quick, no doctests
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning", f"--rootdir={root}"]
    options += [f"--basetemp={folder}"]
    options += ["-k", trial.match] if trial.match else []
    status = int(pytest.main([*options, *trial.tests], plugins=[recorder]))
    verdict = {0: "green", 1: "red", 2: "red", 5: "empty"}.get(status, "broken")
    if trial.tree is not None:  # a conftest.py that cannot import the module is no usage error
        return Outcome("red" if verdict == "broken" else verdict)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    seconds = usage.ru_utime + usage.ru_stime
    return Outcome(verdict, recorder.failed, seconds, recorder.durations, _foreign_modules(root))


def _finish(child: _Child, late: bool) -> Outcome:
    os.close(child.pipe)
    with suppress(ProcessLookupError):
        os.killpg(child.process, signal.SIGKILL)  # with whatever it started
    _, status = os.waitpid(child.process, 0)
    shutil.rmtree(child.folder, ignore_errors=True)
    if child.data:
        return Outcome(**json.loads(child.data))
    over = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU
    return Outcome("slow" if late or over else "dead")


class _Recorder:
    """A plugin of pytest: the likely killers first, and which test failed."""

    def __init__(self, order: Callable[[str], float]) -> None:
        self.order, self.failed, self.current = order, "", ""
        self.durations: dict[str, float] = {}
        self.limits: Callable[[str], float] | None = None
        self.give_up: Callable[[str, str], None] | None = None

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        items.sort(key=lambda item: self.order(item.nodeid))

    def pytest_runtest_logstart(self, nodeid):
        self.current = nodeid
        if self.limits is not None:
            signal.setitimer(signal.ITIMER_VIRTUAL, self.limits(nodeid))

    def pytest_runtest_logfinish(self, nodeid):
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)

    def pytest_runtest_logreport(self, report):
        self.durations[report.nodeid] = self.durations.get(report.nodeid, 0.0) + report.duration
        self._note(report)

    def pytest_collectreport(self, report):
        self._note(report)

    def _note(self, report):
        if report.failed and not self.failed:
            self.failed = report.nodeid
            if self.give_up is not None:  # the end of a session takes longer than many a test
                self.give_up("red", report.nodeid)


class _Finder:
    """Finds one module, with other code."""

    def __init__(self, name: str, file: Path, code: CodeType) -> None:
        self.name, self.file, self.code = name, file, code

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name != self.name:
            return None
        loader = _Loader(self.name, str(self.file), self.code)
        return spec_from_file_location(name, self.file, loader=loader)


class _Loader(SourceFileLoader):
    def __init__(self, name: str, file: str, code: CodeType) -> None:
        super().__init__(name, file)
        self._mutated = code

    def get_code(self, fullname: str) -> CodeType:
        return self._mutated


def _foreign_modules(root: Path) -> list[str]:
    return [name for name, module in list(sys.modules.items()) if not _is_below(module, root)]


def _is_below(module: ModuleType, root: Path) -> bool:
    file = getattr(module, "__file__", None)
    return file is not None and Path(file).is_relative_to(root)
