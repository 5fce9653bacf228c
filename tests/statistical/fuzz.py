"""A fuzzer: random estimators, parameters and records; each a valid release or one clean sentence.

``python -m tests.statistical.fuzz --cases 100000 --jobs 2 --state folder --output docs/fuzzing.md``
goes on, after it was stopped, with the chunks that `folder` does not hold;
``python -m tests.statistical.fuzz --case 1234`` shows one case again.

A case is drawn from its number alone. Its records come twice: two data sets of the same shape, type
and kind of fault, so that a message is allowed to differ between them in no digit. Cases run in a
process of their own, which may crash or hang.
"""

from __future__ import annotations

import argparse
import multiprocessing
import pickle
import re
import tempfile
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from math import hypot, inf, isclose, nan, pi, sin, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from skdpfrechet import (
    DPMDM,
    DPFrechetMean,
    DPFrechetVariance,
    DPPrincipalGeodesics,
    _kernels,
    sensitivity,
)
from skdpfrechet.estimators._noise import has_flint
from skdpfrechet.exceptions import ConvergenceError
from skdpfrechet.manifolds import Hyperbolic, Manifold, resolve_manifold
from skdpfrechet.privacy import PrivacyLedgerError
from tests.statistical import fuzz_ledger

SEED = 20260611
SLOW = 20.0  # seconds
HUNG = 120.0
ESTIMATORS = {
    cls.__name__: cls for cls in (DPFrechetMean, DPFrechetVariance, DPMDM, DPPrincipalGeodesics)
}
MATRICES = ("spd", "riemann", "logeuclid", "logchol")
VECTORS = ("euclidean", "sphere", "hyperbolic")
REFUSALS = (ValueError, TypeError)
BROKEN_LEDGER = (PrivacyLedgerError, FileNotFoundError)
CHUNK = 2000  # cases, after which a process makes room for another
HAS_POLARS = find_spec("polars") is not None

# scikit-learn's words, which its own checks demand; none of them holds a value.
LIBRARY = (
    r"Reshape your data: X\.reshape\(1, -1\) is one sample\.$",
    r"^Unknown label type: [\w-]+\. Maybe you are trying to fit a classifier",
    r"^Input y contains NaN\.$",
    r"^Found input variables with inconsistent numbers of samples: \[\d+, \d+\]$",
    r"^y should be a 1d array, got an array of shape \([\d, ]*\) instead\.$",
    r"^Feature names are only supported if all input features have string names",
)
SUBJECTS = (  # what a message may speak of, besides parameters
    r"X|y|groups|Found array with|Complex data not supported|DPMDM requires y|"
    r"The Fréchet mean did not reach|there is no ledger|the ledger|the file"
)


# --- drawing a case ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Case:
    """Everything public about one case; `records` adds what is not."""

    number: int
    seed: int
    estimator: str
    space: str
    size: int  # of the last axis of X
    n: int
    parameters: dict[str, Any]
    scale: float
    structure: str
    fault: str
    dtype: str
    container: str
    y: Any = None
    groups: Any = None
    reuse: bool = False
    kernels: str = "numba"
    ledger: str = "none"

    @property
    def invalid(self) -> str:
        value = self.parameters.get("invalid", "raise")
        return value if value in ("raise", "replace") else "bad"

    @property
    def noise(self) -> str:
        value = self.parameters.get("noise", "auto")
        return value if value in ("auto", "float", "secure") else "bad"

    @property
    def manifold(self) -> Manifold | None:
        """The space on which the records are meant to lie."""
        shape = (self.size,) * (2 if self.space in MATRICES else 1)
        try:
            return resolve_manifold(self.space, shape)
        except ValueError:
            return None

    def __str__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.parameters.items())
        return (
            f"case {self.number}: {self.estimator}({given}), {self.kernels} kernels, n={self.n}, "
            f"size={self.size}, {self.structure} at scale {self.scale:.3g}, fault {self.fault}, "
            f"{self.dtype}, {self.container}, groups={short(self.groups)}, y={short(self.y)}, "
            f"reuse={self.reuse}, ledger {self.ledger}"
        )


def short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 80 else text[:77] + "..."


def choose(rng: np.random.Generator, options: dict[Any, float]) -> Any:
    """Return a key, drawn by its weight."""
    keys, weights = list(options), np.array(list(options.values()))
    return keys[rng.choice(len(keys), p=weights / weights.sum())]


def log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    return float(10 ** rng.uniform(low, high))


def weights(text: str) -> dict[str, float]:
    """Return keys and weights from text such as ``"many 3; few .5"``."""
    pairs = (item.rsplit(maxsplit=1) for item in text.split(";"))
    return {key.strip(): float(weight) for key, weight in pairs}


STRUCTURES = {
    "matrices": weights(
        "spread 6; conditioned 3; deficient 1; average-referenced .5; equal 1; diagonal 1; wild 1"
    ),
    "vectors": weights("spread 6; clustered 2; antipodal 1; equal 1; wild 1"),
}
NUMBER_FAULTS = ["nan", "inf", "asymmetric", "negative", "zero", "huge", "tiny"]
OBJECT_FAULTS = ["ragged", "text", "none object", "big integer", "complex object", "nested"]
SPOILT = {*NUMBER_FAULTS, *OBJECT_FAULTS} - {"ragged"}  # single records, not the shape of all
FAULTS = weights(
    "none 40; nan 1; inf 1; asymmetric 2; negative 1; zero 1; huge 1; tiny 1; one axis less .5;"
    "one axis more .5; scalar .2; not square .5; no columns .5; ragged .4; text .5; none object .5;"
    "big integer .4; complex object .4; nested .3"
)
DTYPES = weights(
    "float64 30; float32 3; float16 1; longdouble 1; >f8 1; object 1.5; int64 1; int8 .5;"
    "uint16 .5; bool .5; complex128 .5; str .5; bytes .3; datetime64[s] .2; timedelta64[s] .2"
)
CONTAINERS = weights(
    "array 10; fortran 2; strided 2; reversed 1; read-only 2; memory map .7; list 1;"
    "list of arrays 1; pandas 3; pandas, numbers as names .5; pandas, mixed names .2;"
    "pandas, nullable .5; polars 1; matrix .3"
)
LABELS = weights(
    "integers 4; strings 3; booleans 1; list 1; floats 1; series 1; one class .2; none .2;"
    "short .3; nan .2; two-dimensional .2; objects .5; none object .1; complex .1"
)
GROUPS = weights(
    "integers 5; strings 2; column .5; series 1; objects 1; short .4; nan .4; missing .4;"
    "pandas missing .3; object missing .2; two-dimensional .3; ragged .2; dates .3; no date .3;"
    "categories .5; mixed .3; scalar .2; tuples .2"
)


def draw_case(number: int, seed: int = SEED) -> Case:
    """Return a case, the same for the same number."""
    rng = np.random.default_rng([seed, number])
    estimator = choose(rng, dict.fromkeys(ESTIMATORS, 1.0))
    space = choose(rng, {**dict.fromkeys(MATRICES, 1.0), **dict.fromkeys(VECTORS, 1.3)})
    matrices = space in MATRICES
    one = 0.2 if space in ("sphere", "hyperbolic") else 2
    size = choose(rng, {1: one, 2: 5, 3: 5, 4: 2, 5: 1, 8: 0.5, 12: 0.2})
    n = choose(
        rng,
        {0: 0.2, 1: 1 if estimator != "DPMDM" else 0.1, 2: 2, 3: 2, 5: 2, 12: 3, 40: 1, 300: 0.3},
    )
    scale = log_uniform(rng, -1, 1) if rng.random() < 0.5 else log_uniform(rng, -30, 30)
    structure = choose(rng, STRUCTURES["matrices" if matrices else "vectors"])
    fault, dtype, container = choose(rng, FAULTS), choose(rng, DTYPES), choose(rng, CONTAINERS)
    if fault in OBJECT_FAULTS:
        dtype = "object"
    case = Case(
        number, seed, estimator, space, size, n, {}, scale, structure, fault, dtype, container
    )
    case.parameters.update(_parameters(rng, case))
    y = _labels(rng, n) if estimator == "DPMDM" or rng.random() < 0.1 else None
    groups = _groups(rng, n) if rng.random() < 0.25 else None
    case = replace(
        case,
        y=y,
        groups=groups,
        reuse=estimator == "DPFrechetVariance" and rng.random() < 0.2,
        kernels="numpy" if rng.random() < 0.3 else "numba",
        ledger=choose(rng, fuzz_ledger.KINDS),
    )
    given = case.parameters
    if groups is not None and (case.ledger != "none" or rng.random() < 0.5):
        given["unit"] = "person"
    given.setdefault("invalid", choose(rng, {"raise": 1, "replace": 1}))
    secure = 0.3 * has_flint()
    given.setdefault("noise", choose(rng, {"auto": 0.5, "float": 0.2, "secure": secure}))
    if case.ledger != "none" and rng.random() < 0.95:
        given["random_state"] = None
    return case


def _parameters(rng: np.random.Generator, case: Case) -> dict[str, Any]:
    given: dict[str, Any] = {
        "manifold": case.space,
        "radius": _radius(rng, case),
        "center": _center(rng, case),
        "mu": choose(rng, {"finite": 7, "inf": 1.5, "tiny": 0.3}),
        "random_state": int(rng.integers(1000)),
    }
    given["mu"] = {
        "finite": log_uniform(rng, -3, 2),
        "inf": inf,
        "tiny": log_uniform(rng, -12, -8),
    }[given["mu"]]
    private = any(isinstance(given[name], str) for name in ("center", "radius"))
    if private or rng.random() < 0.02:
        sphere = case.space == "sphere"
        if rng.random() < (0.3 if sphere else 0.95):
            given["outer_radius"] = log_uniform(rng, -0.5, 1.3)
            if case.space == "euclidean":
                given["outer_radius"] *= case.scale
            if not isinstance(given["radius"], str) and rng.random() < 0.9:
                given["outer_radius"] = max(given["outer_radius"], given["radius"])
        if rng.random() < (0.4 if isinstance(given["center"], str) else 0.05):
            given["outer_center"] = _center(rng, case)
        if rng.random() < 0.3:
            given["ball_share"] = float(rng.uniform(0, 1))
        if rng.random() < 0.3:
            given["ball_quantile"] = float(rng.uniform(0, 1))
    if rng.random() < 0.25:
        given["n_jobs"] = choose(rng, {None: 1, 1: 1, 2: 1, -1: 0.5})
    given["mechanism"] = _mechanism(rng, case.space)
    if case.estimator != "DPPrincipalGeodesics" and rng.random() < 0.25:
        given["calibration"] = "paper"
    if case.estimator in ("DPFrechetMean", "DPFrechetVariance"):
        level = choose(rng, {"default": 5, "none": 2, "other": 1})
        if level != "default":
            given["confidence_level"] = None if level == "none" else float(rng.uniform(0, 1))
    if case.estimator == "DPPrincipalGeodesics" and rng.random() < 0.5:
        given["n_components"] = choose(rng, {1: 8, 2: 2, 9: 0.3})
    if rng.random() < 0.07:
        given |= _bad_parameter(rng)
    return {name: value for name, value in given.items() if _knows(case.estimator, name)}


def _mechanism(rng: np.random.Generator, space: str) -> str:
    spherical = {"riemannian-gaussian": 1, "projected-gaussian": 1, "riemannian-gaussian-exact": 1}
    if rng.random() < 0.02:
        return choose(rng, {**spherical, "wrapped-gaussian": 1})
    sphere = space == "sphere"
    return choose(rng, {"auto": 3, **(spherical if sphere else {"wrapped-gaussian": 1})})


def _knows(estimator: str, name: str) -> bool:
    return name in ESTIMATORS[estimator]._get_param_names()


def _bad_parameter(rng: np.random.Generator) -> dict[str, Any]:
    table = {
        "radius": [0, -1.0, nan, inf, 1e300, 1e-300, "a", None, True, 1j, np.float32(0.7)],
        "mu": [0, -1.0, nan, "1", None, 1e-11, 1e-300, np.float32(0.5), 1e300],
        "confidence_level": [0, 1, nan, "a", 1 - 1e-16, 1e-300],
        "mechanism": ["laplace", None, 3],
        "calibration": ["loose", None],
        "budget_split": [{}, (0.5, 0.5), {"mean": 0.5, "second_moment": 0.5}, {"mean": 1e-30}],
        "random_state": [-1, 0.5, True, "a", np.int64(3), 2**70],
        "n_jobs": [0, 1.5, "a", -3],
        "invalid": ["drop", None, True],
        "noise": ["exact", None, 1],
        "manifold": ["torus", None, 3, Hyperbolic, Hyperbolic(2)],
        "outer_radius": [0, nan, inf, "a", 1e300],
        "ball_share": [0, 1, "b", None, 1e-300],
        "ball_quantile": [0, 1, "b", None, 1e-300],
        "n_components": [0, -1, 1.0, "a", True, 10**30],
        "center": ["north", [[1], [1, 2]], 0, None, [1j, 0]],
    }
    name = choose(rng, dict.fromkeys(table, 1.0))
    return {name: table[name][rng.integers(len(table[name]))]}


def _radius(rng: np.random.Generator, case: Case) -> Any:
    kind = choose(rng, {"usual": 8, "private": 2, "any": 0.7})
    if kind == "private":
        return "private"
    if kind == "any":
        return log_uniform(rng, -22, 22)
    if case.space == "sphere":
        return float(rng.uniform(0.05, pi / 2))
    return log_uniform(rng, -1.5, 1.2) * (case.scale if case.space == "euclidean" else 1.0)


def _center(rng: np.random.Generator, case: Case) -> Any:
    kind = choose(rng, {"fitting": 5, "none": 3, "private": 1.5, "anywhere": 1.5, "bad": 0.4})
    space = case.manifold
    if kind == "private":
        return "private"
    if space is None or (kind == "none" and case.space != "sphere"):
        return None
    if kind == "bad":
        bad = rng.normal(size=space.point_shape)
        bad[(0,) * bad.ndim] = choose(rng, {1.0: 2, nan: 1, -inf: 1, 1e300: 1})
        return bad
    if case.space == "sphere":
        v = rng.normal(size=space.point_shape)
        return v / np.linalg.norm(v)
    if case.space == "hyperbolic":
        c = rng.normal(size=space.dim) * (1.0 if kind == "fitting" else rng.uniform(0, 20))
        return space.exp_coords(space.origin, c)
    if case.space == "euclidean":
        return rng.normal(size=space.dim) * (case.scale if kind == "fitting" else 1e8 * case.scale)
    if kind == "fitting":
        return case.scale * np.eye(case.size)
    q = np.linalg.qr(rng.normal(size=(case.size, case.size)))[0]
    w = case.scale * 10 ** (rng.uniform(0, 15) * np.linspace(-0.5, 0.5, case.size))
    return (q * w) @ q.T


def _labels(rng: np.random.Generator, n: int) -> Any:
    codes = rng.permutation(np.arange(n) % 2 if rng.random() < 0.7 or n < 3 else np.arange(n) % 3)
    kind = choose(rng, LABELS)
    words = np.array(["left", "right", "rest"])[codes]
    return {
        "integers": codes,
        "strings": words,
        "booleans": codes == 1,
        "list": words.tolist(),
        "floats": codes.astype(float),
        "series": pd.Series(words),
        "one class": np.zeros(n, dtype=int),
        "none": None,
        "short": codes[1:],
        "nan": np.where(codes == 1, nan, codes),
        "two-dimensional": np.stack([codes, codes], axis=1),
        "objects": words.astype(object),
        "none object": np.array([None, *words][:n], dtype=object),
        "complex": codes * 1j,
    }[kind]


def _groups(rng: np.random.Generator, n: int) -> Any:
    codes = rng.integers(0, max(1, n // 2), size=n)
    kind = choose(rng, GROUPS)
    mixed = [f"person {code}" if code % 2 else int(code) for code in codes]
    dates = np.datetime64("2026-01-01") + codes
    return {
        "integers": lambda: codes,
        "strings": lambda: np.array([f"person {code}" for code in codes], dtype=str),
        "column": lambda: codes[:, None],
        "series": lambda: pd.Series(codes, dtype="Int64"),
        "objects": lambda: codes.astype(object),
        "short": lambda: codes[1:],
        "nan": lambda: np.where(codes == 0, nan, codes),
        "missing": lambda: np.array([None, *codes[1:]][:n], dtype=object),
        "pandas missing": lambda: pd.Series([pd.NA, *codes[1:]][:n], dtype="Int64"),
        "object missing": lambda: pd.Series([pd.NA, *codes[1:]][:n], dtype=object),
        "two-dimensional": lambda: np.stack([codes, codes], axis=1),
        "ragged": lambda: [[1], [1, 2], *codes[2:]][:n],
        "dates": lambda: dates,
        "no date": lambda: np.where(codes == 0, np.datetime64("NaT"), dates),
        "categories": lambda: pd.Series(pd.Categorical(codes)),
        "mixed": lambda: np.array(mixed, dtype=object),
        "scalar": lambda: 3,
        "tuples": lambda: [(int(code), "a") for code in codes],
    }[kind]()


# --- its records ---------------------------------------------------------------------------------


def records(case: Case, stream: int, directory: Path) -> Any:
    """Return X in its container. Only what a record may hide depends on `stream`."""
    rng = np.random.default_rng([case.seed, case.number, 1 + stream])
    X = _matrices(rng, case) if case.space in MATRICES else _vectors(rng, case)
    X = _with_fault(rng, case, X)
    return _contain(case, X, directory)


def _matrices(rng: np.random.Generator, case: Case) -> np.ndarray:
    n, p = case.n, case.size
    if case.dtype[:3] in ("int", "uin") or case.dtype == "bool":
        return np.eye(p) * rng.integers(1, 2 if case.dtype == "bool" else 9, size=(n, 1, p))
    q = np.linalg.qr(rng.normal(size=(n, p, p)))[0]
    logs = rng.normal(scale=case.number % 7 / 3, size=(n, p))
    if case.structure == "conditioned":
        logs += np.log(10) * rng.uniform(0, 15, size=(n, 1)) * np.linspace(-0.5, 0.5, p)
    if case.structure == "diagonal":
        q = np.broadcast_to(np.eye(p), q.shape)
    if case.structure == "wild":
        logs += rng.uniform(-650, 650, size=(n, 1))
    with np.errstate(all="ignore"):
        X = (q * np.exp(logs)[:, None, :]) @ np.swapaxes(q, 1, 2)
        if case.structure == "deficient":
            half = rng.normal(size=(n, p, max(p - 1, 1)))
            X = half @ np.swapaxes(half, 1, 2)
        if case.structure == "average-referenced":
            reference = np.eye(p) - 1 / p
            X = reference @ X @ reference
        if case.structure == "equal":
            X[:] = X[:1]
        X = X * case.scale
        return (X + np.swapaxes(X, 1, 2)) / 2


def _vectors(rng: np.random.Generator, case: Case) -> np.ndarray:
    n, size = case.n, case.size
    spread = {"clustered": 1e-9, "wild": 1e5}.get(case.structure, 1.0)
    z = rng.normal(size=(n, size)) * spread
    if case.dtype[:3] in ("int", "uin") or case.dtype == "bool":
        if case.space == "euclidean":
            return rng.integers(0, 2, size=(n, size)).astype(float)
        place = 0 if case.space == "hyperbolic" else rng.integers(size, size=n)
        z = np.zeros((n, size))
        z[np.arange(n), place] = 1.0
        return z
    if case.structure == "equal":
        z[:] = z[:1]
    if case.space == "euclidean":
        if case.structure == "antipodal":
            z[1::2] = -z[: n - n % 2 : 2]
        return z * case.scale
    if case.space == "hyperbolic":
        return _hyperbolic(z, case)
    z += rng.normal(size=size) * (case.structure == "clustered")
    X = z / np.linalg.norm(z, axis=-1, keepdims=True)
    if case.structure == "antipodal":
        X[1::2] = -X[: n - n % 2 : 2]
    return X * (1 + 3e-7 * rng.uniform(-1, 1, size=(n, 1)))


def _hyperbolic(z: np.ndarray, case: Case) -> np.ndarray:
    if case.size == 1:
        return z
    distance = np.minimum(np.linalg.norm(z[:, 1:], axis=1), 16) / np.linalg.norm(z[:, 1:], axis=1)
    space = Hyperbolic(case.size - 1)
    return space.exp_coords(space.origin, z[:, 1:] * distance[:, None])


def _with_fault(rng: np.random.Generator, case: Case, X: np.ndarray) -> Any:
    """Spoil some records, which and how many only `rng` knows, or the shape of all."""
    shapes: dict[str, Callable[[], Any]] = {
        "one axis less": lambda: X[..., 0],
        "one axis more": lambda: X[..., None],
        "scalar": lambda: rng.normal(),
        "not square": lambda: np.concatenate([X, X[..., :1]], axis=-1),
        "no columns": lambda: X[..., :0],
    }
    if case.fault in shapes:
        return shapes[case.fault]()
    if case.fault == "none" or case.n == 0:
        return X
    bad = rng.random(case.n) < rng.uniform()
    bad[rng.integers(case.n)] = True
    if case.fault in OBJECT_FAULTS:
        return _with_objects(rng, case, X, bad)
    X = X.copy()
    entry = (bad, *rng.integers(case.size, size=X.ndim - 1))
    with np.errstate(all="ignore"):
        if case.fault == "nan":
            X[entry] = nan
        elif case.fault == "inf":
            X[entry] = inf
        elif case.fault == "asymmetric":
            X[bad] *= 1 + log_uniform(rng, -18, 0) * rng.normal(size=X[bad].shape)
        else:
            X[bad] *= {"negative": -1.0, "zero": 0.0, "huge": 1e290, "tiny": 1e-290}[case.fault]
    return X


def _with_objects(rng: np.random.Generator, case: Case, X: np.ndarray, bad: np.ndarray) -> Any:
    if case.fault == "ragged":
        return [row[:1] if wrong else row for row, wrong in zip(X.tolist(), bad, strict=True)]
    things: dict[str, Callable[[], Any]] = {
        "text": lambda: f"secret {rng.normal()}",
        "none object": lambda: None,
        "big integer": lambda: int(rng.integers(2, 100)) ** 999,
        "complex object": lambda: rng.normal() * 1j,
        "nested": lambda: {"secret": rng.normal()},
    }
    X = X.astype(object)
    for i in np.flatnonzero(bad):
        X[(i, *rng.integers(case.size, size=X.ndim - 1))] = things[case.fault]()
    return X


def _contain(case: Case, X: Any, directory: Path) -> Any:
    if isinstance(X, list):
        return X
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        X = np.asarray(X)
        if X.dtype != object or case.dtype in ("str", "bytes"):
            kind = {"str": "U", "bytes": "S"}.get(case.dtype, case.dtype)
            middle = X.astype("int64") if kind[1:] == "atetime64[s]" else X
            X = middle.astype(kind)
    container = case.container
    if X.ndim != 2 and (container.startswith("pandas") or container in ("polars", "matrix")):
        container = "array"
    return _CONTAINERS[container](X, directory)


def _strided(X: np.ndarray, directory: Path) -> np.ndarray:
    wide = np.zeros((2 * len(X), *X.shape[1:]), dtype=X.dtype) if X.ndim else X
    if X.ndim:
        wide[::2] = X
        return wide[::2]
    return X


def _read_only(X: np.ndarray, directory: Path) -> np.ndarray:
    X = X.copy()
    X.flags.writeable = False
    return X


def _memory_map(X: np.ndarray, directory: Path) -> np.ndarray:
    if X.dtype == object or X.size == 0:
        return X
    path = directory / f"{time.monotonic_ns()}.npy"
    np.save(path, X)
    mapped = np.load(path, mmap_mode="r")
    path.unlink()
    return mapped


def _frame(names: Callable[[int], Any]) -> Callable[[np.ndarray, Path], Any]:
    return lambda X, directory: pd.DataFrame(X, columns=[names(j) for j in range(X.shape[1])])


def _nullable(X: np.ndarray, directory: Path) -> Any:
    return _frame("x{}".format)(X, directory).convert_dtypes()


def _polars(X: np.ndarray, directory: Path) -> Any:
    if not HAS_POLARS or X.dtype.kind not in "iuf" or X.dtype.itemsize > 8:
        return _frame("x{}".format)(X, directory)
    import polars

    return polars.DataFrame(np.array(X, dtype=X.dtype.newbyteorder("=")))


def _matrix(X: np.ndarray, directory: Path) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        return np.asmatrix(X)


_CONTAINERS: dict[str, Callable[[np.ndarray, Path], Any]] = {
    "array": lambda X, _: X,
    "fortran": lambda X, _: np.asfortranarray(X),
    "strided": _strided,
    "reversed": lambda X, _: X[::-1] if X.ndim else X,
    "read-only": _read_only,
    "memory map": _memory_map,
    "list": lambda X, _: X.tolist(),
    "list of arrays": lambda X, _: list(X) if X.ndim else X,
    "pandas": _frame("x{}".format),
    "pandas, numbers as names": _frame(int),
    "pandas, mixed names": _frame(lambda j: f"x{j}" if j else j),
    "pandas, nullable": _nullable,
    "polars": _polars,
    "matrix": _matrix,
}


# --- running it ----------------------------------------------------------------------------------


@dataclass
class Outcome:
    """What became of a case: "released" or "refused", and every defect that was seen."""

    case: Case
    kind: str
    message: str = ""
    defects: list[str] = field(default_factory=list)
    seconds: float = 0.0


def run_case(case: Case, directory: Path) -> Outcome:
    """Fit and use the estimator of a case; note whatever should not be."""
    outcome = run_records(case, records(case, 0, directory), directory)
    if outcome.kind == "refused":
        twin = run_records(case, records(case, 1, directory), directory)
        same = twin.kind == "refused" and template(twin.message) == template(outcome.message)
        if same and twin.message != outcome.message:
            outcome.defects.append(f"leak: {outcome.message!r} or {twin.message!r}")
    if case.invalid == "replace" and case.fault in SPOILT:
        clean = run_records(case, records(replace(case, fault="none"), 0, directory), directory)
        if (clean.kind, clean.message) != (outcome.kind, outcome.message):
            outcome.defects.append(
                f"replace: {outcome.kind} {outcome.message}; clean records: {clean.kind} "
                f"{clean.message}"
            )
    return outcome


def run_records(case: Case, X: Any, directory: Path | None = None) -> Outcome:
    """The same for given records, without the comparison with others."""
    before = fingerprint(X)
    start = time.perf_counter()
    outcome, caught = _attempt(case, X, directory)
    outcome.seconds = time.perf_counter() - start
    kinds = dict.fromkeys(f"warning: {w.category.__name__}: {w.message}" for w in caught)
    outcome.defects += kinds
    if outcome.seconds > SLOW:
        outcome.defects.append(f"slow: {outcome.seconds:.0f} s")
    if fingerprint(X) != before:
        outcome.defects.append("input: X was changed")
    return outcome


def _attempt(
    case: Case, X: Any, directory: Path | None
) -> tuple[Outcome, list[warnings.WarningMessage]]:
    outcome = Outcome(case, "released")
    ledger = None if directory is None else fuzz_ledger.open_ledger(case, directory)
    entries = fuzz_ledger.entries(case, ledger)
    refusals: tuple[type[Exception], ...] = REFUSALS
    refusals += BROKEN_LEDGER if case.ledger in fuzz_ledger.BROKEN else ()
    refusals += (ConvergenceError,) if case.parameters.get("mu") == np.inf else ()
    estimator, failure = ESTIMATORS[case.estimator](**case.parameters, ledger=ledger), None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with _kernels.kernels(case.kernels):
            try:
                fit(case, estimator, X)
            except refusals as error:
                failure = error
                outcome.kind, outcome.message = "refused", chain(error)
                outcome.defects += check_message(error)
                outcome.defects += check_refusal(case, error, estimator)
            except Exception as error:
                outcome.kind = "crashed"
                outcome.defects.append(f"exception: {type(error).__name__}: {error}")
            else:
                outcome.defects += _all(check_release(case, estimator))
                outcome.defects += _all(check_use(case, estimator, X))
    if outcome.kind != "crashed":
        new = fuzz_ledger.entries(case, ledger)[len(entries) :]
        values = fuzz_ledger.VALUES
        if not (isinstance(X, np.ndarray) and X.dtype.kind == "c"):
            values += "|Complex data not supported: X"  # one of a list, say
        about_values = re.match(values, outcome.message) is not None
        outcome.defects += fuzz_ledger.check_ledger(case, new, failure, about_values)
    outcome.message = outcome.message.replace(str(directory), "folder")
    return outcome, caught


def _all(defects: Iterator[str]) -> list[str]:
    """Return what a check finds, or how looking at the release fails."""
    found = []
    try:
        found.extend(defects)
    except Exception as error:
        found.append(f"release: {type(error).__name__}: {error}")
    return found


def fit(case: Case, estimator: Any, X: Any) -> None:
    """Fit the estimator, on a mean that was released before if the case says so."""
    if case.reuse:
        known = {
            name: value
            for name, value in estimator.get_params(deep=False).items()
            if _knows("DPFrechetMean", name)
        }
        mean = DPFrechetMean(**{**known, "budget_split": None}).fit(X, groups=case.groups)
        estimator.set_params(mean=mean.release_)
    estimator.fit(X, case.y, groups=case.groups)


def fingerprint(X: Any) -> Any:
    """Return something that changes when X does."""
    if isinstance(X, np.ndarray) and X.dtype != object:
        return X.tobytes(), X.shape, X.dtype, X.flags.writeable, X.strides
    if hasattr(X, "to_numpy"):
        return repr(X.to_numpy().tolist()), list(X.columns)
    return repr(X)


def chain(error: BaseException) -> str:
    """Return the message with those of whatever is chained to the error."""
    parts = []
    while error is not None:
        parts.append(str(error))
        error = error.__cause__ or error.__context__
    return " <- ".join(parts)


def template(message: str) -> str:
    """Return the beginning of a message, without its numbers."""
    plain = re.sub(r"[-+]?\d[\d.]*(e[-+]?\d+)?j?|\b(nan|inf)\b", "#", " ".join(message.split()))
    return plain if len(plain) < 200 else plain[:197] + "..."


def check_message(error: BaseException) -> Iterator[str]:
    """A clean error is one sentence about a parameter or the records, and carries no other."""
    text = str(error)
    if any(re.search(pattern, text) for pattern in LIBRARY):
        return
    names = "|".join({name for cls in ESTIMATORS.values() for name in cls._get_param_names()})
    if not re.match(rf"({SUBJECTS}|{names})\b", text):
        yield f"internal: {type(error).__name__}: {text}"
        return
    ends = len(re.findall(r"[.!?](?=\s+[A-Z]|\s*$)", text))
    if not text.endswith(".") or ends != 1 or "\n\n" in text:
        yield f"sentence: {type(error).__name__}: {text}"
    elif error.__cause__ is not None or (error.__context__ and not error.__suppress_context__):
        yield f"chained: {text}"
    elif "secret" in chain(error):
        yield f"leak: {chain(error)!r}"


def check_refusal(case: Case, error: BaseException, estimator: Any) -> Iterator[str]:
    """Nothing is left of a failed fit, and with "replace" no value makes one fail."""
    learnt = {name for name in vars(estimator) if name.endswith("_")}
    learnt -= {"n_features_in_", "feature_names_in_"}
    if learnt:
        yield f"refused: {sorted(learnt)} are there"
    if case.invalid == "replace" and re.match("X must contain (?!square)", str(error)):
        yield f"replace: {error}"


def check_release(case: Case, fitted: Any) -> Iterator[str]:
    """Everything released is finite and possible, and the account is right."""
    for name, value in released_numbers(fitted):
        if not np.isfinite(np.asarray(value, dtype=float)).all():
            yield f"not finite: {name}"
            return
    space = fitted.manifold_
    for name in ("mean_", "means_", "center_"):
        value = getattr(fitted, name, None)
        if value is None:
            continue
        if not space.contains(value).all():
            yield f"off the manifold: {name}"
            return
        if case.space in MATRICES and not np.array_equal(value, np.swapaxes(value, -1, -2)):
            yield f"not symmetric: {name}"
    yield from _check_spread(fitted)
    yield from _check_account(case, fitted)
    if case.number % 10 == 0:
        pickle.loads(pickle.dumps(fitted))
        str(fitted.privacy_), repr(fitted), fitted._repr_html_()


def released_numbers(fitted: Any) -> Iterator[tuple[str, Any]]:
    names = "mean_ means_ center_ radius_ variance_ interval_ components_ explained_variance_ "
    names += "explained_variance_ratio_ noise_scale_ noise_floor_"
    for name in names.split():
        if hasattr(fitted, name):
            yield name, getattr(fitted, name)
    if isinstance(fitted, DPFrechetMean) and fitted.confidence_level is not None:
        region = fitted.confidence_region_
        yield "covariance_", fitted.covariance_
        yield "effective_radius", region.effective_radius
        if region.critical_value < inf:
            yield "boundary", region.boundary(3)
    for row in fitted.privacy_.releases:
        yield f"noise of {row.statistic}", row.noise_scale


def _check_spread(fitted: Any) -> Iterator[str]:
    if isinstance(fitted, DPFrechetVariance):
        limit = (2 * fitted.radius_) ** 2 * (1 + 1e-9)
        low, high = getattr(fitted, "interval_", (0.0, limit))
        if not (0 <= fitted.variance_ <= limit and 0 <= low <= high <= limit):
            yield "impossible: variance_ or interval_"
    if isinstance(fitted, DPFrechetMean) and fitted.confidence_level is not None:
        values = fitted.confidence_region_.eigenvalues
        if values.min() < -1e-9 * abs(values).max():
            yield "impossible: covariance_ is indefinite"
        if not fitted.confidence_region_.contains(fitted.mean_):
            yield "impossible: mean_ outside its region"
    if hasattr(fitted, "explained_variance_") and (fitted.explained_variance_ < 0).any():
        yield "impossible: negative explained_variance_"


def _check_account(case: Case, fitted: Any) -> Iterator[str]:
    report = fitted.privacy_
    sets = len(fitted.classes_) if isinstance(fitted, DPMDM) and case.groups is None else 1
    spent = hypot(*(row.mu for row in report.releases)) / sqrt(sets)
    if not (isclose(spent, fitted.mu, rel_tol=1e-8) and report.guarantee.mu == fitted.mu):
        yield f"account: spent {spent!r} of mu={fitted.mu!r}"
    if fitted.mu < inf and any(row.noise_scale <= 0 for row in report.releases):
        yield "account: a release without noise"
    limit = sensitivity.radius_limit(fitted.manifold_)
    if getattr(fitted, "radius_", 0.0) >= limit:
        yield "account: radius_ beyond the limit of the sensitivity"
    least = min(2 * getattr(fitted, "radius_", 0.0) / fitted.n_samples_, fitted.manifold_.diameter)
    for row in report.releases:
        chord = row.mechanism == "projected-gaussian"  # its noise is added in the ambient space
        if row.statistic == "mean" and row.sensitivity < 0.999 * (
            2 * sin(least / 2) if chord else least
        ):
            yield "account: less than the sensitivity of the mean of a flat space"
    sound = fitted.random_state is None and fitted.mu < inf
    private = sound and all(row.float_safe for row in report.releases)
    if report.unit != fuzz_ledger.unit_of(case) or report.is_private != private:
        yield "account: wrong unit, or a fit that wrongly calls itself private"
    if (report.void_reason is None and report.total.mu < inf) != sound:
        yield "account: a seeded fit that is not void"


def check_use(case: Case, fitted: Any, X: Any) -> Iterator[str]:
    """What comes after a release does not fail on the records that were fitted."""
    methods = ["transform", "predict", "predict_proba"] if case.estimator == "DPMDM" else []
    for name in methods or ["transform"]:
        try:
            out = getattr(fitted, name)(X)
        except Exception as error:
            if case.invalid == "raise" or not re.match(f"{fuzz_ledger.VALUES}|Complex", str(error)):
                yield f"{name}: {type(error).__name__}: {error}"
            return
        if len(out) != case.n:
            yield f"{name}: {len(out)} rows for {case.n} records"
        squares = case.estimator == "DPFrechetVariance"  # those of 1e155 are beyond float64
        if out.dtype.kind == "f" and (np.isnan(out) | (np.isinf(out) & ~squares)).any():
            yield f"{name}: not finite"


# --- many of them --------------------------------------------------------------------------------


def _work(connection: Any, seed: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        while (number := connection.recv()) is not None:
            outcome = run_case(draw_case(number, seed), Path(directory))
            outcome.case = None  # drawn again from its number
            connection.send(outcome)


class Worker:
    """A process that runs cases and is replaced when one of them kills it."""

    def __init__(self, seed: int = SEED, work: Callable = _work, patience: float = HUNG):
        self.seed, self.work, self.patience = seed, work, patience
        self.process = None

    def run(self, number: int) -> Outcome:
        if self.process is None:
            context = multiprocessing.get_context("spawn")
            self.connection, other = context.Pipe()
            self.process = context.Process(target=self.work, args=(other, self.seed))
            self.process.start()
            other.close()
        case = draw_case(number, self.seed)
        try:
            self.connection.send(number)
            if self.connection.poll(self.patience):
                outcome = self.connection.recv()
                outcome.case = case
                return outcome
            end = f"hang: no answer in {self.patience:.0f} s"
        except (EOFError, OSError):
            self.process.join()
            end = f"crash: exit code {self.process.exitcode}"
        self.stop()
        return Outcome(case, "crashed", defects=[end])

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.process = None


@dataclass
class Summary:
    """Counts of outcomes, and the first case of every defect."""

    seed: int = SEED
    cases: int = 0
    seconds: float = 0.0
    slowest: float = 0.0
    kinds: Counter = field(default_factory=Counter)
    messages: Counter = field(default_factory=Counter)
    defects: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))

    def add(self, outcome: Outcome) -> None:
        case = outcome.case
        self.cases += 1
        self.slowest = max(self.slowest, outcome.seconds)
        defective = "defective" if outcome.defects else outcome.kind
        for axis in AXES:
            self.kinds[axis, getattr(case, axis), defective] += 1
        if outcome.kind == "refused":
            self.messages[template(outcome.message)] += 1
        for defect in outcome.defects:
            self.defects[template(defect)].append(case.number)

    def merge(self, other: Summary) -> None:
        self.cases += other.cases
        self.seconds += other.seconds
        self.slowest = max(self.slowest, other.slowest)
        self.kinds.update(other.kinds)
        self.messages.update(other.messages)
        for defect, numbers in other.defects.items():
            self.defects[defect].extend(numbers)


def run_cases(
    numbers: range, seed: int = SEED, budget: float = inf, verbose: bool = False
) -> Summary:
    """Run cases in a process of their own until the time is up."""
    summary, worker, start = Summary(seed), Worker(seed), time.perf_counter()
    for number in numbers:
        outcome = worker.run(number)
        summary.add(outcome)
        if verbose and outcome.defects:
            print(f"{outcome.defects}\n  {outcome.case}", flush=True)
        summary.seconds = time.perf_counter() - start
        if summary.seconds > budget:
            break
    worker.stop()
    return summary


def run_chunks(
    numbers: range, seed: int, jobs: int, budget: float = inf, folder: Path | None = None
) -> Summary:
    """Run cases in chunks, `jobs` at a time; a `folder` keeps the finished ones."""
    start, total, asked = time.perf_counter(), Summary(seed), 0
    chunks = [numbers[i : i + CHUNK] for i in range(0, len(numbers), CHUNK)]

    def run(chunk: range) -> tuple[Summary, bool]:
        path = folder and folder / f"{seed}-{chunk.start}-{chunk.stop}.pickle"
        if path and path.exists():
            return pickle.loads(path.read_bytes()), False
        left = budget - (time.perf_counter() - start)
        summary = run_cases(chunk, seed, left, verbose=True) if left > 0 else Summary(seed)
        if path and summary.cases == len(chunk):
            path.write_bytes(pickle.dumps(summary))
        return summary, True

    if folder is not None:
        folder.mkdir(exist_ok=True)
    with ThreadPoolExecutor(jobs) as pool:
        for future in as_completed([pool.submit(run, chunk) for chunk in chunks]):
            summary, new = future.result()
            total.merge(summary)
            asked += summary.cases * new
            rate = asked / (time.perf_counter() - start)
            left = (len(numbers) - total.cases) / rate / 60 if rate else inf
            print(
                f"{total.cases:,} of {len(numbers):,} cases, {rate:.0f} per second, "
                f"{len(total.defects)} kinds of defects, {left:.0f} min left",
                flush=True,
            )
    return total


# --- the page ------------------------------------------------------------------------------------


AXES = {
    "estimator": "Estimator",
    "space": "Space",
    "fault": "What is wrong with the records",
    "structure": "Structure of the records",
    "dtype": "Type",
    "container": "Container",
    "kernels": "Kernels",
    "invalid": "Parameter invalid",
    "noise": "Parameter noise",
    "ledger": "Ledger",
}
OUTCOMES = ("released", "refused", "defective")


def page(summary: Summary) -> str:
    """Return the report in Markdown."""
    total = dict.fromkeys(OUTCOMES, 0)
    for (axis, _, outcome), count in summary.kinds.items():
        total[outcome] += count if axis == "estimator" else 0
    lines = [
        "# Fuzzing",
        "",
        "Random estimators, parameters and records. Every case has to end in a valid release or in",
        "one clean sentence. Written by",
        "",
        "```",
        f"python -m tests.statistical.fuzz --cases {summary.cases} --output docs/fuzzing.md",
        "```",
        "",
        f"**{summary.cases:,} cases: {total['released']:,} valid releases, {total['refused']:,} "
        f"clean errors, {total['defective']:,} defects.** {summary.cases / summary.seconds:.0f} "
        f"cases per second on one core; the slowest fit took {summary.slowest:.1f} s.",
        "",
        CHECKS,
    ]
    for axis, title in AXES.items():
        lines += [f"## {title}", "", f"| | {' | '.join(OUTCOMES)} |", "|---" * 4 + "|"]
        for value in dict.fromkeys(value for name, value, _ in summary.kinds if name == axis):
            counts = (f"{summary.kinds[axis, value, outcome]:,}" for outcome in OUTCOMES)
            lines.append(f"| {value} | {' | '.join(counts)} |")
        lines.append("")
    lines += ["## Defects", ""]
    lines += [
        f"* {len(cases)} times, first in case {cases[0]}: `{defect}`"
        for defect, cases in sorted(summary.defects.items(), key=lambda item: -len(item[1]))
    ] or ["None."]
    lines += ["", "## Messages", "", "Numbers, all public, as #.", ""]
    lines += [f"* {count:,} × `{message}`" for message, count in summary.messages.most_common()]
    return "\n".join(lines) + "\n"


CHECKS = """\
A case is drawn from its number: estimator, space, size from 1 to 12, n from 0 to 300, radius and
centre (public, private, ill-conditioned or wrong), μ from 1e-3 to ∞, mechanism, calibration, noise,
`invalid`, groups, threads, kernels, a ledger (rich, with just enough, poor, missing, damaged);
records at scales from 1e-30 to 1e30 with condition numbers to 1e15. Where polars is not installed
its frames are pandas frames. It is a defect if

* anything but `ValueError` or `TypeError` is raised, `ConvergenceError` for μ = ∞, `OSError` for a
  broken ledger, the process dies, or a fit takes more than 20 s;
* a message has more than one sentence (but for a few of scikit-learn's, which its checks demand),
  speaks of neither a parameter nor the records, carries another error along, or has a digit that
  differs for other records with the same shape and the same kind of fault;
* there is a warning of any kind;
* a released number is not finite or not possible, a mean is not a point of the space, or a matrix
  is not exactly symmetric;
* a release is not in its ledger, a fit that fails before it pays is charged, or one that fails for
  the values of its records is not; without budget anything but `PrivacyBudgetError` tells of them;
* with `invalid="replace"` a value is refused, or spoilt records end otherwise than clean ones;
* anything is left of a failed fit;
* the releases do not compose to μ, or state less than the sensitivity of the mean in flat space;
* X has changed;
* `transform` or `predict` fails, warns, or is not finite on the records that were fitted.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--case", type=int, help="run this case alone, and show it")
    parser.add_argument("--seconds", type=float, default=inf, help="stop after this time")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--state", type=Path, help="folder that keeps finished chunks")
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    if arguments.case is not None:
        with tempfile.TemporaryDirectory() as directory:
            outcome = run_case(draw_case(arguments.case, arguments.seed), Path(directory))
        print(f"{outcome.case}\n{outcome.kind} {outcome.message}\n{outcome.defects}")
        return
    numbers = range(arguments.first, arguments.first + arguments.cases)
    summary = run_chunks(
        numbers, arguments.seed, arguments.jobs, arguments.seconds, arguments.state
    )
    if arguments.output is not None:
        arguments.output.write_text(page(summary), encoding="utf-8")
    else:
        print(page(summary))


if __name__ == "__main__":
    main()
