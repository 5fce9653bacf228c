"""Loaders: each reads its file anew, so that two calls share nothing."""

from __future__ import annotations

from importlib.resources import files
from math import pi
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Bunch

from skdpfrechet.datasets import _descriptions
from skdpfrechet.datasets._descriptions import Description

Array = NDArray[np.float64]

_MODULE = "skdpfrechet.datasets"
_CRITERIA = ("Earnings", "Social Status", "Reward", "Social Usefulness")
_KINDS = ("persons", "ssvep")
_CHANNELS = ("TP9", "AF7", "AF8", "TP10")
_DESCRIPTOR_FEATURES = ("I", "|Ix|", "|Iy|", "|Ixx|", "|Iyy|")
_DESCRIPTOR_CENTER = (0.04, 0.003, 0.003, 0.003, 0.003)


def load_occupational_judgements(*, criterion: str | None = None) -> Bunch:
    """Load the judgements of occupations by 48 persons on four criteria, points of S².

    Data set B20 of Fisher, Lewis and Embleton (1987).

    Parameters
    ----------
    criterion : {"Earnings", "Social Status", "Reward", "Social Usefulness"}, default=None
        Load the judgements by this criterion only; None loads all four, one after the other.

    Returns
    -------
    bunch : :class:`~sklearn.utils.Bunch`
        data : ndarray of shape (192, 3), or (48, 3) with a `criterion`
            Unit vectors.
        target : ndarray of str, shape (n_samples,)
            Criterion of each judgement.
        groups : ndarray of int, shape (n_samples,)
            Person, 1 to 48; the same persons judge by every criterion.
        criteria : tuple of str
            The four criteria, in the order of publication.
        manifold : str
            ``"sphere"``.
        center : None
            Nobody knows the centre beforehand; `public_knowledge` says how to buy one.
        radius : float
            Suggested public radius, π/4.
        public_knowledge : str
            Where the radius comes from.
        unit : str
            Unit of privacy.
        feature_names : tuple of str
            Names of the coordinates of a direction.
        DESCR, license, source, filename, data_module : str
            Full description, licence, source, name of the file and module that holds it.

    Raises
    ------
    ValueError
        If `criterion` is none of the four.

    Examples
    --------
    >>> from skdpfrechet.datasets import load_occupational_judgements
    >>> earnings = load_occupational_judgements(criterion="Earnings")
    >>> earnings.data.shape
    (48, 3)
    >>> earnings.center is None
    True
    """
    if criterion is not None and criterion not in _CRITERIA:
        raise ValueError(f"criterion must be None or one of {_CRITERIA}, got {criterion!r}.")
    filename = "occupational_judgements.csv"
    with _resource(filename).open("r", encoding="utf-8") as stream:
        table = np.loadtxt(stream, dtype=str, delimiter=",", skiprows=1)
    if criterion is not None:
        table = table[table[:, 1] == criterion]
    bunch = _bunch(
        _descriptions.OCCUPATIONAL_JUDGEMENTS,
        filename,
        data=_unit_vectors(*np.radians(table[:, 2:].astype(float)).T),
        manifold="sphere",
        center=None,
        radius=pi / 4,
    )
    bunch.target = np.array(table[:, 1])
    bunch.groups = table[:, 0].astype(int)
    bunch.criteria = _CRITERIA
    bunch.feature_names = ("x", "y", "z")
    return bunch


def load_muse_eeg(*, kind: Literal["persons", "ssvep"] = "persons") -> Bunch:
    """Load covariance matrices, in µV², of four-channel EEG from a Muse headband.

    Parameters
    ----------
    kind : {"persons", "ssvep"}, default="persons"
        ``"persons"``: one matrix for each of 64 persons, 1-30 Hz. ``"ssvep"``: one matrix for each
        of 405 trials of three persons, in the bands of two flicker frequencies.

    Returns
    -------
    bunch : :class:`~sklearn.utils.Bunch`
        data : ndarray of shape (64, 4, 4) or (405, 8, 8)
            Symmetric positive definite matrices.
        subject : ndarray of str, shape (64,)
            Person of each matrix (kind ``"persons"``).
        n_windows : ndarray of int, shape (64,)
            Number of windows behind each matrix (kind ``"persons"``).
        target : ndarray of int, shape (405,)
            1 for a flicker at 30 Hz, 2 at 20 Hz (kind ``"ssvep"``).
        target_names : tuple of str
            Meaning of targets 1 and 2 (kind ``"ssvep"``).
        groups : ndarray of str, shape (405,)
            Person of each trial (kind ``"ssvep"``).
        manifold : str
            ``"spd"``.
        center : ndarray of shape (4, 4) or (8, 8)
            Suggested public centre, 100 µV² · I or 5 µV² · I.
        radius : float
            Suggested public radius, 4.5 or 6.5.
        public_knowledge : str
            Where the centre and the radius come from.
        unit : str
            Unit of privacy.
        feature_names : tuple of str
            Channels, or channels and bands.
        DESCR, license, source, filename, data_module : str
            Full description, licence, source, name of the file and module that holds it.

    Raises
    ------
    ValueError
        If `kind` is neither of the two.

    Examples
    --------
    >>> from skdpfrechet.datasets import load_muse_eeg
    >>> persons = load_muse_eeg()
    >>> persons.data.shape, persons.unit
    ((64, 4, 4), 'person')
    >>> load_muse_eeg(kind="ssvep").data.shape
    (405, 8, 8)
    """
    if kind not in _KINDS:
        raise ValueError(f"kind must be one of {_KINDS}, got {kind!r}.")
    return _muse_persons() if kind == "persons" else _muse_ssvep()


def load_oct_descriptors(*, images: bool = False) -> Bunch:
    """Load the region covariance descriptors of 400 OCTMNIST retinal images.

    Parameters
    ----------
    images : bool, default=False
        Load the images as well.

    Returns
    -------
    bunch : :class:`~sklearn.utils.Bunch`
        data : ndarray of shape (400, 5, 5)
            Symmetric positive definite matrices.
        images : ndarray of uint8, shape (400, 28, 28)
            Grey images, only with ``images=True``.
        manifold : str
            ``"spd"``.
        center : ndarray of shape (5, 5)
            Suggested public centre, diag(0.04, 0.003, 0.003, 0.003, 0.003).
        radius : float
            Suggested public radius, 5.
        public_knowledge : str
            Where the centre and the radius come from.
        unit : str
            Unit of privacy.
        feature_names : tuple of str
            The five features of a pixel.
        DESCR, license, source, filename, data_module : str
            Full description, licence, source, name of the file and module that holds it.

    Raises
    ------
    TypeError
        If `images` is not a bool.

    Examples
    --------
    >>> from skdpfrechet.datasets import load_oct_descriptors
    >>> oct = load_oct_descriptors(images=True)
    >>> oct.data.shape, oct.images.shape
    ((400, 5, 5), (400, 28, 28))
    """
    if not isinstance(images, bool):
        raise TypeError(f"images must be True or False, got {images!r}.")
    bunch = _descriptors(
        _descriptions.OCT_DESCRIPTORS, "oct_descriptors.npz", _read("oct_descriptors.npz")["covs"]
    )
    if images:
        bunch.images = _read("oct_images.npz")["images"]
    return bunch


def load_pneumonia_descriptors() -> Bunch:
    """Load the region covariance descriptors of the 624 PneumoniaMNIST test images.

    Returns
    -------
    bunch : :class:`~sklearn.utils.Bunch`
        data : ndarray of shape (624, 5, 5)
            Symmetric positive definite matrices.
        target : ndarray of int, shape (624,)
            0 for normal, 1 for pneumonia.
        target_names : tuple of str
            Meaning of targets 0 and 1.
        manifold : str
            ``"spd"``.
        center : ndarray of shape (5, 5)
            Suggested public centre, diag(0.04, 0.003, 0.003, 0.003, 0.003).
        radius : float
            Suggested public radius, 5.
        public_knowledge : str
            Where the centre and the radius come from.
        unit : str
            Unit of privacy.
        feature_names : tuple of str
            The five features of a pixel.
        DESCR, license, source, filename, data_module : str
            Full description, licence, source, name of the file and module that holds it.

    Examples
    --------
    >>> from skdpfrechet.datasets import load_pneumonia_descriptors
    >>> pneumonia = load_pneumonia_descriptors()
    >>> pneumonia.data.shape, pneumonia.target_names
    ((624, 5, 5), ('normal', 'pneumonia'))
    """
    filename = "pneumonia_descriptors.npz"
    arrays = _read(filename)
    bunch = _descriptors(_descriptions.PNEUMONIA_DESCRIPTORS, filename, arrays["covs"])
    bunch.target = arrays["labels"].astype(int)
    bunch.target_names = ("normal", "pneumonia")
    return bunch


def load_diffusion_tensors() -> Bunch:
    """Load the diffusion tensors, in 10⁻³ mm²/s, of 968 brain voxels.

    All voxels are of one person: privacy of a voxel protects nobody.

    Returns
    -------
    bunch : :class:`~sklearn.utils.Bunch`
        data : ndarray of shape (968, 3, 3)
            Symmetric positive definite matrices.
        fa : ndarray of shape (968,)
            Fractional anisotropy, between 0 and 1.
        s0 : ndarray of shape (968,)
            Signal without diffusion weighting.
        voxel : ndarray of int, shape (968, 3)
            Position in the 10 × 10 × 10 block.
        manifold : str
            ``"spd"``.
        center : ndarray of shape (3, 3)
            Suggested public centre, I.
        radius : float
            Suggested public radius, 2.
        public_knowledge : str
            Where the centre and the radius come from.
        unit : str
            Unit of privacy.
        feature_names : tuple of str
            Axes of the diffusion directions.
        DESCR, license, source, filename, data_module : str
            Full description, licence, source, name of the file and module that holds it.

    Examples
    --------
    >>> from skdpfrechet.datasets import load_diffusion_tensors
    >>> tensors = load_diffusion_tensors()
    >>> tensors.data.shape, tensors.radius
    ((968, 3, 3), 2.0)
    """
    filename = "diffusion_tensors.npz"
    arrays = _read(filename)
    bunch = _bunch(
        _descriptions.DIFFUSION_TENSORS,
        filename,
        data=_symmetric(arrays["tensors"]),
        manifold="spd",
        center=np.eye(3),
        radius=2.0,
    )
    bunch.fa = arrays["fa"]
    bunch.s0 = arrays["s0"]
    bunch.voxel = arrays["voxel"].astype(int)
    bunch.feature_names = ("x", "y", "z")
    return bunch


def _muse_persons() -> Bunch:
    filename = "muse_persons.npz"
    arrays = _read(filename)
    bunch = _bunch(
        _descriptions.MUSE_PERSONS,
        filename,
        data=_symmetric(arrays["covs"]),
        manifold="spd",
        center=100.0 * np.eye(4),
        radius=4.5,
    )
    bunch.subject = arrays["subject"]
    bunch.n_windows = arrays["n_windows"]
    bunch.feature_names = _CHANNELS
    return bunch


def _muse_ssvep() -> Bunch:
    filename = "muse_ssvep.npz"
    arrays = _read(filename)
    bunch = _bunch(
        _descriptions.MUSE_SSVEP,
        filename,
        data=_symmetric(arrays["covs"]),
        manifold="spd",
        center=5.0 * np.eye(8),
        radius=6.5,
    )
    bunch.target = arrays["label"].astype(int)
    bunch.target_names = ("30 Hz", "20 Hz")
    bunch.groups = arrays["subject"]
    bunch.feature_names = tuple(
        f"{channel} {band} Hz" for band in ("18-22", "28-32") for channel in _CHANNELS
    )
    return bunch


def _descriptors(description: Description, filename: str, matrices: ArrayLike) -> Bunch:
    bunch = _bunch(
        description,
        filename,
        data=_symmetric(matrices),
        manifold="spd",
        center=np.diag(_DESCRIPTOR_CENTER),
        radius=5.0,
    )
    bunch.feature_names = _DESCRIPTOR_FEATURES
    return bunch


def _bunch(
    description: Description,
    filename: str,
    *,
    data: Array,
    manifold: str,
    center: Array | None,
    radius: float,
) -> Bunch:
    return Bunch(
        data=data,
        manifold=manifold,
        center=center,
        radius=radius,
        public_knowledge=description.public_knowledge,
        unit=description.unit,
        DESCR=description.text,
        license=description.license,
        source=description.source,
        filename=filename,
        data_module=f"{_MODULE}.data",
    )


def _resource(filename: str) -> Any:
    return files(_MODULE) / "data" / filename


def _read(filename: str) -> dict[str, NDArray[Any]]:
    with (
        _resource(filename).open("rb") as stream,
        np.load(stream, allow_pickle=False) as archive,
    ):
        return {name: archive[name] for name in archive.files}


def _unit_vectors(colatitude: Array, longitude: Array) -> Array:
    """Return the unit vectors of spherical angles in radians, normalised to the last digit."""
    points = np.stack(
        [
            np.sin(colatitude) * np.cos(longitude),
            np.sin(colatitude) * np.sin(longitude),
            np.cos(colatitude),
        ],
        axis=-1,
    )
    norms: Array = np.linalg.norm(points, axis=-1, keepdims=True)
    return points / norms


def _symmetric(matrices: ArrayLike) -> Array:
    """Return the matrices in float64, C-contiguous and exactly symmetric."""
    wide = np.ascontiguousarray(matrices, dtype=np.float64)
    return np.ascontiguousarray((wide + np.swapaxes(wide, -1, -2)) / 2)
