"""Names of manifolds, as users type them."""

from __future__ import annotations

from collections.abc import Callable

from skdpfrechet.manifolds._base import Manifold
from skdpfrechet.manifolds._flat import Euclidean
from skdpfrechet.manifolds._hyperbolic import Hyperbolic
from skdpfrechet.manifolds._spd import SPDAffineInvariant, SPDLogCholesky, SPDLogEuclidean
from skdpfrechet.manifolds._sphere import Sphere

_MATRIX_SPACES: dict[str, Callable[[int], Manifold]] = {
    "spd": SPDAffineInvariant,
    "riemann": SPDAffineInvariant,
    "logeuclid": SPDLogEuclidean,
    "logchol": SPDLogCholesky,
}
_VECTOR_SPACES: dict[str, tuple[Callable[[int], Manifold], int]] = {
    "euclidean": (Euclidean, 0),
    "sphere": (Sphere, 1),
    "hyperbolic": (Hyperbolic, 1),
}


def point_ndim(manifold: str | Manifold) -> int:
    """Return the number of axes of one point: 1 for vectors, 2 for matrices."""
    if isinstance(manifold, Manifold):
        return len(manifold.point_shape)
    if not isinstance(manifold, str):
        raise TypeError(f"manifold must be a string or a Manifold, got {type(manifold).__name__}.")
    if manifold in _MATRIX_SPACES:
        return 2
    if manifold in _VECTOR_SPACES:
        return 1
    names = ", ".join(repr(name) for name in (*_VECTOR_SPACES, *_MATRIX_SPACES))
    raise ValueError(f"manifold must be one of {names} or a Manifold, got {manifold!r}.")


def resolve_manifold(manifold: str | Manifold, point_shape: tuple[int, ...]) -> Manifold:
    """Return the manifold of the given name whose points have shape `point_shape`.

    Parameters
    ----------
    manifold : str or Manifold
        ``"euclidean"``, ``"sphere"``, ``"hyperbolic"``, ``"spd"`` (or ``"riemann"``),
        ``"logeuclid"``, ``"logchol"``, or an instance, which is returned if the shape fits.
    point_shape : tuple of int

    Examples
    --------
    >>> from skdpfrechet.manifolds import resolve_manifold
    >>> resolve_manifold("sphere", (3,))
    Sphere(dim=2)
    >>> resolve_manifold("spd", (4, 4))
    SPDAffineInvariant(size=4)
    """
    ndim = point_ndim(manifold)
    if isinstance(manifold, Manifold):
        if manifold.point_shape != point_shape:
            raise ValueError(
                f"X must have shape {manifold.shape_for('n_samples')} on {manifold!r}, "
                f"got points of shape {point_shape}."
            )
        return manifold
    if len(point_shape) != ndim:
        wanted = "(n_samples, p, p)" if ndim == 2 else "(n_samples, n_features)"
        raise ValueError(
            f"X must have shape {wanted} for manifold={manifold!r}, "
            f"got an array with {len(point_shape) + 1} dimensions."
        )
    if ndim == 2:
        if point_shape[0] != point_shape[1]:
            raise ValueError(
                f"X must contain square matrices for manifold={manifold!r}, "
                f"got matrices of shape {point_shape}."
            )
        return _MATRIX_SPACES[manifold](point_shape[0])
    space, extra = _VECTOR_SPACES[manifold]
    if point_shape[0] <= extra:
        raise ValueError(
            f"X must have at least {extra + 1} columns for manifold={manifold!r}, "
            f"got {point_shape[0]}."
        )
    return space(point_shape[0] - extra)
