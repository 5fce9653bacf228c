"""Every data set of the package: one suite over all loaders, then what is special to each."""

from __future__ import annotations

from functools import partial
from math import pi, sqrt
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest

from skdpfrechet import datasets
from skdpfrechet.datasets import (
    load_diffusion_tensors,
    load_muse_eeg,
    load_occupational_judgements,
    load_oct_descriptors,
    load_pneumonia_descriptors,
)

CRITERIA = ("Earnings", "Social Status", "Reward", "Social Usefulness")
ROOT = Path(__file__).parents[2]
DATA = ROOT / "skdpfrechet" / "datasets" / "data"

CASES = {
    "judgements": (load_occupational_judgements, (192, 3)),
    "earnings": (partial(load_occupational_judgements, criterion="Earnings"), (48, 3)),
    "muse_persons": (load_muse_eeg, (64, 4, 4)),
    "muse_ssvep": (partial(load_muse_eeg, kind="ssvep"), (405, 8, 8)),
    "oct": (load_oct_descriptors, (400, 5, 5)),
    "oct_images": (partial(load_oct_descriptors, images=True), (400, 5, 5)),
    "pneumonia": (load_pneumonia_descriptors, (624, 5, 5)),
    "diffusion": (load_diffusion_tensors, (968, 3, 3)),
}
LOADERS = [pytest.param(load, id=name) for name, (load, _) in CASES.items()]
SPD_LOADERS = [
    pytest.param(load, id=name) for name, (load, shape) in CASES.items() if len(shape) == 3
]


def distances(points, center):
    """Affine-invariant distances to the centre, from the eigenvalues of L⁻¹ X L⁻ᵀ."""
    root = np.linalg.cholesky(center)
    half = np.linalg.solve(root, points)
    whitened = np.linalg.solve(root, np.swapaxes(half, -1, -2))
    whitened = (whitened + np.swapaxes(whitened, -1, -2)) / 2
    return np.linalg.norm(np.log(np.linalg.eigvalsh(whitened)), axis=-1)


@pytest.mark.parametrize(("load", "shape"), CASES.values(), ids=CASES.keys())
def test_data_have_the_published_shape_in_float64(load, shape):
    data = load().data
    assert data.shape == shape
    assert data.dtype == np.float64
    assert data.flags.c_contiguous
    assert np.isfinite(data).all()


@pytest.mark.parametrize("load", SPD_LOADERS)
def test_matrices_are_exactly_symmetric_and_positive_definite(load):
    bunch = load()
    assert bunch.manifold == "spd"
    for matrices in (bunch.data, bunch.center):
        np.testing.assert_array_equal(matrices, np.swapaxes(matrices, -1, -2))
        assert np.linalg.eigvalsh(matrices).min() > 0


@pytest.mark.parametrize("load", SPD_LOADERS)
def test_public_ball_is_usable(load):
    """At least three quarters of the records: usable, not adjusted to them."""
    bunch = load()
    assert bunch.center.shape == bunch.data.shape[1:]
    assert bunch.center.dtype == np.float64
    assert isinstance(bunch.radius, float)
    assert bunch.radius > 0
    assert np.mean(distances(bunch.data, bunch.center) <= bunch.radius) > 0.75


@pytest.mark.parametrize("load", LOADERS)
def test_texts_say_where_the_data_and_the_ball_come_from(load):
    bunch = load()
    description = " ".join(bunch.DESCR.split())
    texts = (bunch.public_knowledge, bunch.unit, bunch.source, bunch.license)
    for text in texts:
        assert isinstance(text, str)
        assert text
        assert text in description
    assert "not fitted to" in bunch.public_knowledge


@pytest.mark.parametrize("load", LOADERS)
def test_filename_names_a_shipped_file_of_known_provenance(load):
    bunch = load()
    assert bunch.data_module == "skdpfrechet.datasets.data"
    assert (DATA / bunch.filename).is_file()
    assert f"`{bunch.filename}`" in (DATA / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("load", LOADERS)
def test_rows_of_all_annotations_match(load):
    bunch = load()
    n_samples = len(bunch.data)
    for name in ("target", "groups", "subject", "n_windows", "images", "fa", "s0", "voxel"):
        if name in bunch:
            assert len(bunch[name]) == n_samples, name
    assert len(bunch.feature_names) == bunch.data.shape[-1]


@pytest.mark.parametrize("load", LOADERS)
def test_two_calls_share_nothing(load):
    first, untouched = load(), load()
    for value in first.values():
        if isinstance(value, np.ndarray):
            value[...] = value.flat[-1]
    first.data[...] = 0.0
    first.radius = -1.0
    second = load()
    assert first.keys() == second.keys()
    for name, value in second.items():
        np.testing.assert_array_equal(value, untouched[name])


@pytest.mark.parametrize("load", LOADERS)
def test_every_field_is_documented(load):
    doc = getattr(load, "func", load).__doc__
    for name in load():
        assert name in doc


def test_public_names():
    assert sorted(datasets.__all__) == [name for name in dir(datasets) if name.startswith("load_")]


def test_judgements_are_unit_vectors_of_the_same_48_persons():
    bunch = load_occupational_judgements()
    np.testing.assert_allclose(np.linalg.norm(bunch.data, axis=1), 1.0, rtol=0, atol=3e-16)
    assert bunch.manifold == "sphere"
    assert bunch.center is None
    assert bunch.radius == pi / 4
    assert bunch.criteria == CRITERIA
    np.testing.assert_array_equal(bunch.target, np.repeat(CRITERIA, 48))
    np.testing.assert_array_equal(bunch.groups, np.tile(np.arange(1, 49), 4))


def test_judgements_keep_the_published_angles():
    first = load_occupational_judgements().data[0]
    colatitude = np.degrees(np.arctan2(np.hypot(first[0], first[1]), first[2]))
    longitude = np.degrees(np.arctan2(first[1], first[0])) % 360
    np.testing.assert_allclose([colatitude, longitude], [97.4, 344.9], atol=1e-12)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_one_criterion_is_its_part_of_all(criterion):
    everything = load_occupational_judgements()
    bunch = load_occupational_judgements(criterion=criterion)
    chosen = everything.target == criterion
    np.testing.assert_array_equal(bunch.data, everything.data[chosen])
    np.testing.assert_array_equal(bunch.groups, everything.groups[chosen])
    assert set(bunch.target) == {criterion}


def test_muse_persons_are_64_different_persons():
    bunch = load_muse_eeg()
    assert bunch.unit == "person"
    assert len(set(bunch.subject)) == 64
    assert bunch.n_windows.min() > 0


def test_muse_ssvep_has_two_frequencies_and_three_persons():
    bunch = load_muse_eeg(kind="ssvep")
    assert set(bunch.target) == {1, 2}
    assert bunch.target_names == ("30 Hz", "20 Hz")
    assert set(bunch.groups) == {"subject1", "subject3", "subject4"}
    # disjoint bands hardly correlate: the features are blocks of one band each
    scale = np.sqrt(np.diagonal(bunch.data, axis1=1, axis2=2))
    correlation = np.abs(bunch.data / scale[:, :, None] / scale[:, None, :]).mean(axis=0)
    assert correlation[:4, 4:].max() < 0.05
    assert correlation[:4, :4].min() > 0.1
    assert bunch.feature_names[0] == "TP9 18-22 Hz"
    assert bunch.feature_names[7] == "TP10 28-32 Hz"


def test_oct_descriptors_are_those_of_the_images():
    bunch = load_oct_descriptors(images=True)
    assert bunch.images.dtype == np.uint8
    assert bunch.images.shape == (400, 28, 28)
    grey = bunch.images / 255.0
    inner = grey[:, 1:-1, 1:-1]
    left, right = grey[:, 1:-1, :-2], grey[:, 1:-1, 2:]
    above, below = grey[:, :-2, 1:-1], grey[:, 2:, 1:-1]
    features = [
        inner,
        np.abs(right - left),
        np.abs(below - above),
        np.abs(2 * inner - left - right),
        np.abs(2 * inner - above - below),
    ]
    pixels = np.stack(features, axis=1).reshape(400, 5, -1)
    pixels -= pixels.mean(axis=-1, keepdims=True)
    expected = pixels @ np.swapaxes(pixels, 1, 2) / (26 * 26 - 1)
    np.testing.assert_allclose(bunch.data, expected, atol=1e-14)


def test_oct_images_are_left_out_by_default():
    assert "images" not in load_oct_descriptors()


def test_pneumonia_labels():
    bunch = load_pneumonia_descriptors()
    assert bunch.target_names == ("normal", "pneumonia")
    np.testing.assert_array_equal(np.bincount(bunch.target), [234, 390])  # Kermany et al. 2018


def test_diffusion_anisotropy_is_that_of_the_tensors():
    bunch = load_diffusion_tensors()
    eigenvalues = np.linalg.eigvalsh(bunch.data)
    spread = eigenvalues - eigenvalues.mean(axis=1, keepdims=True)
    expected = sqrt(1.5) * np.linalg.norm(spread, axis=1) / np.linalg.norm(eigenvalues, axis=1)
    np.testing.assert_allclose(bunch.fa, expected, atol=1e-6)
    assert len(np.unique(bunch.voxel, axis=0)) == 968
    assert "nobody" in bunch.unit


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (partial(load_occupational_judgements, criterion="earnings"), ValueError, "'Reward'"),
        (partial(load_muse_eeg, kind="trials"), ValueError, "'persons', 'ssvep'"),
        (partial(load_oct_descriptors, images="yes"), TypeError, "True or False"),
    ],
)
def test_bad_arguments_give_one_sentence(call, error, message):
    with pytest.raises(error, match=message) as caught:
        call()
    text = str(caught.value)
    (value,) = call.keywords.values()
    assert text.endswith(f"got {value!r}.")
    assert "\n" not in text


def test_the_data_stay_small():
    assert sum(path.stat().st_size for path in DATA.iterdir()) < 500_000


def test_wheel_contains_the_data_and_the_type_marker(tmp_path):
    wheel = pytest.importorskip("hatchling.builders.wheel")
    builder = wheel.WheelBuilder(str(ROOT))
    built = next(builder.build(directory=str(tmp_path), versions=["standard"]))
    with ZipFile(built) as archive:
        names = set(archive.namelist())
    assert "skdpfrechet/py.typed" in names
    shipped = {f"skdpfrechet/datasets/data/{path.name}" for path in DATA.iterdir()}
    assert shipped <= names
