"""Everything a fit lets out is searched for numbers that only the records can have produced.

The records are many, so that even counts are recognisable. Noise and records have fixed seeds:
what is found is found at every run.
"""

from __future__ import annotations

import json
import logging
import pickle
import re
import warnings

import numpy as np
import pytest

from skdpfrechet import DPMDM, DPFrechetMean, DPFrechetVariance, DPPrincipalGeodesics
from skdpfrechet._cli import main
from skdpfrechet.estimators import _mechanisms
from skdpfrechet.manifolds import Euclidean, Hyperbolic, SPDAffineInvariant, Sphere
from skdpfrechet.mechanisms._rounded_gaussian import has_flint
from tests.estimators.test_firewall import leaves

N, RTOL = 20_011, 1e-9
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
LABELS = np.arange(N) % 2
SPACES = {
    "euclidean": (Euclidean(3), {"radius": 1.5}),
    "spd": (SPDAffineInvariant(2), {"radius": 1.5}),
    "hyperbolic": (Hyperbolic(2), {"radius": 1.2}),
    "sphere": (Sphere(2), {"radius": 1.0, "center": np.array([0.0, 0.0, 1.0])}),
}
ESTIMATORS = [DPFrechetMean, DPFrechetVariance, DPMDM, DPPrincipalGeodesics]
NOISES = [
    "float",
    pytest.param("secure", marks=pytest.mark.skipif(not has_flint(), reason="needs python-flint")),
]


def center_of(name):
    return SPACES[name][1].get("center", SPACES[name][0].origin)


def records(name, seed):
    space, _ = SPACES[name]
    coordinates = np.random.default_rng(seed).normal(size=(N, space.dim)) * 0.8 + 0.2
    return space.exp_coords(center_of(name), coordinates)


def build(kind, name, noise="float", **more):
    parameters = {"random_state": 0, "noise": noise, **SPACES[name][1], **more}
    if name == "sphere" and noise == "secure":
        parameters["mechanism"] = "projected-gaussian"
    return kind(name, **parameters)


def fit(kind, name, X, **more):
    estimator = build(kind, name, **more).fit(X, LABELS)
    if kind is DPFrechetMean:
        _ = estimator.confidence_region_  # fills what is computed lazily
    return estimator


# --- numbers -------------------------------------------------------------------------------------


def numbers_in_objects(*values):
    """Return every number that can be reached, also through private attributes and in text."""
    found = [np.empty(0)]
    for value in values:
        for _, leaf in leaves(value):
            if isinstance(leaf, np.ndarray) and leaf.dtype.kind in "fiu":
                found.append(leaf.astype(float).ravel())
            elif isinstance(leaf, int | float | np.number) and not isinstance(leaf, bool):
                found.append(np.array([float(leaf)]))
            elif isinstance(leaf, str):
                found.append(numbers_in_text(leaf))
    return np.concatenate(found)


def numbers_in_text(text):
    return np.array([float(word) for word in NUMBER.findall(text)])


def numbers_in_bytes(data):
    """Return what any eight bytes in a row are as float64 or as an integer, in either order."""
    found = []
    for start in range(8):
        words = data[start : start + (len(data) - start) // 8 * 8]
        for kind in ("<f8", ">f8", "<i8", ">i8"):
            found.append(np.frombuffer(words, dtype=kind).astype(float))
    return np.concatenate(found)


def common(numbers, secrets):
    """Return the secrets that are among the numbers, up to sign and RTOL."""
    numbers = np.abs(numbers)
    numbers = np.sort(numbers[np.isfinite(numbers) & (numbers > 0)])
    secrets = np.unique(np.abs(secrets[np.isfinite(secrets) & (secrets != 0)]))
    low = np.searchsorted(numbers, secrets * (1 - RTOL))
    high = np.searchsorted(numbers, secrets * (1 + RTOL))
    return secrets[high > low]


@pytest.fixture(scope="module")
def secrets():
    """Return numbers that only the records can have produced, for an estimator and a space."""
    known = {}

    def compute(kind, name):
        if (kind, name) in known:
            return known[kind, name]
        space, parameters = SPACES[name]
        X, other = records(name, 1), records(name, 2)
        distance = space.dist(center_of(name), X)
        coordinates = space.log_coords(center_of(name), X)
        outside = distance > parameters["radius"]
        parts = [X.reshape(N, -1), coordinates, distance[:, None]]
        simple = [part[:50].ravel() for part in parts]
        for part in parts:
            for chosen in (slice(None), LABELS == 0, LABELS == 1, ~outside):
                some = part[chosen]
                simple += [np.sort(some, axis=0)[:3], np.sort(some, axis=0)[-3:]]
                simple += [some.sum(0), some.mean(0), some.var(0), (some**2).sum(0)]
        simple += [[outside.sum(), (~outside).sum(), outside[LABELS == 0].sum()]]
        # What the same estimator without noise holds, and does not hold for other records.
        exact = numbers_in_objects(fit(kind, name, X, mu=np.inf))
        public = numbers_in_objects(fit(kind, name, other, mu=np.inf))
        simple += [np.setdiff1d(exact, common(public, exact))]
        everything = np.concatenate([np.ravel(part).astype(float) for part in simple])
        known[kind, name] = np.setdiff1d(np.abs(everything), [0.0, 1.0, N, N // 2, N // 2 + 1])
        return known[kind, name]

    return compute


# --- what is let out -----------------------------------------------------------------------------


def json_of(estimator):
    texts = [json.dumps(estimator.privacy_.to_dict())]
    if hasattr(estimator, "confidence_region_"):
        texts.append(json.dumps(estimator.confidence_region_.to_dict()))
    return "\n".join(texts)


OUTPUTS = {
    "state": numbers_in_objects,
    "parameters": lambda e: numbers_in_objects(
        {k: v for k, v in e.get_params().items() if k != "manifold"}
    ),
    "pickle": lambda e: numbers_in_bytes(pickle.dumps(e)),
    "text": lambda e: numbers_in_text(f"{e!r} {e.privacy_} {e.privacy_!r}"),
    "html": lambda e: numbers_in_text(e._repr_html_() + e.privacy_._repr_html_()),
    "json": lambda e: numbers_in_text(json_of(e)),
}


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_no_output_holds_a_number_of_the_records(kind, name, noise, secrets, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    caplog.clear()
    wanted = secrets(kind, name)
    caplog.clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator = fit(kind, name, records(name, 1), noise=noise)
        for output, numbers in OUTPUTS.items():
            assert common(numbers(estimator), wanted).size == 0, output
    assert caught == []
    said = " ".join(f"{record.getMessage()} {record.args}" for record in caplog.records)
    assert common(numbers_in_text(said), wanted).size == 0
    assert not [record for record in caplog.records if record.name.startswith("skdpfrechet")]
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_the_search_finds_what_has_no_noise(kind, secrets):
    """The exact fit holds exact numbers, wherever text does not round them."""
    estimator = fit(kind, "spd", records("spd", 1), mu=np.inf)
    wanted = secrets(kind, "spd")
    for output in ("state", "pickle", *(["json"] if kind is DPFrechetMean else [])):
        assert common(OUTPUTS[output](estimator), wanted).size > 0, output
    outside = SPACES["spd"][0].dist(np.eye(2), records("spd", 1)) > 1.5
    for planted in (outside.sum(), records("spd", 1)[:, 0, 1].sum(), records("spd", 1).max()):
        estimator = fit(kind, "spd", records("spd", 1))
        for output in ("state", "pickle"):
            estimator._planted = [{"here": planted}]
            assert common(OUTPUTS[output](estimator), wanted).size > 0, output
        estimator.privacy_ = estimator.privacy_.__class__(
            estimator.privacy_.guarantee, (), notes=(f"planted {float(planted)!r}",)
        )
        for output in ("text", "html", "json"):
            assert common(OUTPUTS[output](estimator), wanted).size > 0, output


# --- errors --------------------------------------------------------------------------------------


def everything_said(error):
    """Return the text of an error and of all that hang on it, also where the chain is hidden."""
    seen, waiting = [], [error]
    while waiting:
        error = waiting.pop()
        if error is None or error in seen:
            continue
        seen.append(error)
        waiting += [error.__cause__, error.__context__]
    return " ".join(f"{e!r} {e.args!r} {getattr(e, '__notes__', '')} {vars(e)}" for e in seen)


SPOILT = {
    "nan": lambda X: X.__setitem__((3, 0, 0), np.nan),
    "asymmetric": lambda X: X.__setitem__((3, 0, 1), 17.123456789),
    "indefinite": lambda X: X.__setitem__(3, -X[3]),
}


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("fault", [*SPOILT, "text", "huge integer", "ragged"])
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_no_error_holds_a_number_of_the_records(kind, fault, noise, secrets, caplog):
    caplog.set_level(logging.DEBUG)
    X, wanted = records("spd", 1), secrets(kind, "spd")
    if fault in SPOILT:
        SPOILT[fault](X)
    elif fault == "ragged":
        X = [*X[:60].tolist(), [[float(X[0, 0, 0])]], *X[61:].tolist()]
    else:
        X = X.astype(object)
        X[3, 0, 0] = f"{X[4, 0, 0]!r} is the value" if fault == "text" else 10**400
    caplog.clear()
    with pytest.raises(ValueError) as caught:
        build(kind, "spd", noise).fit(X, LABELS)
    said = everything_said(caught.value)
    assert "the value" not in said
    assert common(numbers_in_text(said), wanted).size == 0
    assert (
        common(numbers_in_text(" ".join(r.getMessage() for r in caplog.records)), wanted).size == 0
    )


def test_the_search_finds_numbers_in_hidden_errors(secrets):
    secret = records("spd", 1).max()
    try:
        try:
            raise KeyError(secret)
        except KeyError:
            raise ValueError("X must be better.") from None
    except ValueError as error:
        said = everything_said(error)
    assert common(numbers_in_text(said), secrets(DPFrechetMean, "spd")).size > 0


# --- the command line ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["euclidean", "spd", "sphere"])
def test_the_command_line_shows_no_number_of_the_records(
    name, secrets, tmp_path, monkeypatch, capsys
):
    """With a seed in place of the system's generator, so that nothing is found by chance."""
    monkeypatch.setattr(_mechanisms, "SystemGenerator", lambda: np.random.default_rng(0))
    np.save(tmp_path / "x.npy", records(name, 1))
    argv = ["release", tmp_path / "x.npy", "--manifold", name, "--mu", 1, "--variance"]
    argv += ["--radius", SPACES[name][1]["radius"], "--output", tmp_path / "out.json"]
    if name == "sphere":
        (tmp_path / "pole.csv").write_text("0,0,1\n")
        argv += ["--center", tmp_path / "pole.csv"]
    assert main([str(word) for word in argv]) == 0
    shown = "".join(capsys.readouterr())
    for text in (shown, *((tmp_path / f"out.{end}").read_text() for end in ("json", "html"))):
        numbers = numbers_in_text(text)
        assert numbers.size > 0
        for kind in (DPFrechetMean, DPFrechetVariance):
            assert common(numbers, secrets(kind, name)).size == 0
