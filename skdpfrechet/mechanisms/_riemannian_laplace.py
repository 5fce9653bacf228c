"""The Riemannian Laplace, sampled exactly."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from skdpfrechet._numerics import Array
from skdpfrechet._validation import check_nonnegative
from skdpfrechet.manifolds import (
    FlatManifold,
    Hyperbolic,
    Manifold,
    SPDAffineInvariant,
    Sphere,
)
from skdpfrechet.mechanisms import _laplace_radius as radius
from skdpfrechet.mechanisms import _spd_laplace as spd
from skdpfrechet.mechanisms._base import Mechanism, noise_guarantee, noise_scale
from skdpfrechet.mechanisms._system_generator import RandomSource
from skdpfrechet.privacy import PureDP

_FAR = 300.0  # cosh² of it still is a float64, and points beyond look the same from the origin


@dataclass(frozen=True)
class RiemannianLaplace(Mechanism):
    """Release a point with density proportional to ``exp(-ρ(x, η)/λ)``: pure ε-DP.

    Parameters
    ----------
    manifold : Sphere, flat manifold, Hyperbolic or SPDAffineInvariant
    scale : float
        λ, in the units of `Manifold.dist`. On the last two spaces volume grows exponentially and
        the density is integrable only for λ < 1/(d-1) and λ < 2√3/√(p(p²-1)); on SPD(p) the exact
        sampler covers all of this range for p ≤ 6, three quarters of it for p ≤ 10.

    Raises
    ------
    ValueError
        If the space is another one, or `scale` is out of that range.

    Notes
    -----
    Neighbouring relation: replace-one, through the sensitivity. ε-DP with ε = Δ/λ, attained, by the
    triangle inequality: on homogeneous spaces the normaliser does not depend on η. (Where it does,
    ε is up to twice that.)

    E ρ² is d(d+1)λ² on flat spaces and more where the curvature is negative: as λ = Δ/ε, the error
    grows with the square of the dimension, hence with the fourth power of p on SPD(p).

    Distances are drawn exactly, without a Markov chain: gamma variables on flat spaces, beta
    variables on hyperbolic ones, rejection from tangents on spheres, two rejection schemes for the
    eigenvalues on SPD(p). Where float64 cannot represent a release, it is moved to the nearest that
    it can, which is post-processing.

    References
    ----------
    .. [1] M. Reimherr, K. Bharath, C. Soto, "Differential privacy over Riemannian manifolds",
       NeurIPS 2021, Theorem 1 and its remark on homogeneous spaces.
    .. [2] S. Said, H. Hajri, L. Bombrun, B. C. Vemuri, "Gaussian distributions on Riemannian
       symmetric spaces", IEEE Transactions on Information Theory 64, 2018 (polar coordinates).
    .. [3] N. G. de Bruijn, "On some multiple integrals involving determinants", Journal of the
       Indian Mathematical Society 19, 1955 (normaliser on SPD).

    Examples
    --------
    >>> import numpy as np
    >>> from skdpfrechet.manifolds import SPDAffineInvariant
    >>> from skdpfrechet.mechanisms import RiemannianLaplace
    >>> from skdpfrechet.privacy import PureDP
    >>> mechanism = RiemannianLaplace.calibrate(SPDAffineInvariant(2), 0.1, PureDP(0.5))
    >>> mechanism.scale
    0.2
    >>> mechanism.release(np.eye(2), np.random.default_rng(0)).shape
    (2, 2)
    """

    manifold: Manifold
    scale: float

    def __post_init__(self) -> None:
        check_nonnegative("scale", self.scale)
        limit = _largest_scale(self.manifold)
        if self.scale >= limit:
            raise ValueError(
                f"scale, which is the sensitivity over epsilon, must be below {limit:.6g} on "
                f"{self.manifold!r}, where volume grows too fast for more noise, "
                f"got {self.scale!r}."
            )

    @classmethod
    def calibrate(
        cls, manifold: Manifold, sensitivity: float, guarantee: PureDP
    ) -> RiemannianLaplace:
        """Return the mechanism with the scale Δ/ε."""
        _largest_scale(manifold)
        if not isinstance(guarantee, PureDP):
            raise TypeError(
                f"guarantee must be a PureDP for Laplace noise, got {type(guarantee).__name__}."
            )
        return cls(manifold, noise_scale(sensitivity, "epsilon", guarantee.epsilon))

    def guarantee(self, sensitivity: float) -> PureDP:
        return PureDP(noise_guarantee(sensitivity, self.scale))

    def release(self, center: Array, rng: RandomSource) -> Array:
        center, space = np.asarray(center, dtype=float), self.manifold
        batch = center.shape[: center.ndim - len(space.point_shape)]
        count = int(np.prod(batch, dtype=int))
        if self.scale == 0:
            return space.exp_coords(center, np.zeros((*batch, space.dim)))
        if isinstance(space, SPDAffineInvariant):
            noise = spd.sample_spd_noise(space.size, self.scale, count, rng)
            return spd.add_spd_noise(center, noise.reshape(center.shape))
        z = rng.standard_normal((*batch, space.dim))
        direction = z / np.linalg.norm(z, axis=-1, keepdims=True)
        if isinstance(space, Sphere):
            s = radius.sample_sphere_distance(space.dim, self.scale, count, rng)
        elif isinstance(space, Hyperbolic):
            s = radius.sample_hyperbolic_distance(space.dim, self.scale, count, rng)
            noise = direction * np.minimum(s, _FAR).reshape(*batch, 1)
            return _representable(space, space.exp_coords(center, noise))
        else:
            s = radius.sample_flat_distance(space.dim, self.scale, count, rng)
        return space.exp_coords(center, direction * s.reshape(*batch, 1))

    def log_density(self, center: Array, x: Array) -> Array:
        distance = self.manifold.dist(center, x)
        return np.asarray(-distance / self.scale - self._log_normalizer())

    def _log_normalizer(self) -> float:
        space, dim = self.manifold, self.manifold.dim
        if isinstance(space, SPDAffineInvariant):
            return spd.log_spd_integral(space.size, self.scale)
        if isinstance(space, Sphere):
            integral = radius.log_sphere_integral(dim, self.scale)
        elif isinstance(space, Hyperbolic):
            integral = radius.log_hyperbolic_integral(dim, self.scale)
        else:
            integral = radius.log_flat_integral(dim, self.scale)
        return radius.log_unit_area(dim) + integral


def _representable(space: Hyperbolic, x: Array) -> Array:
    """Move points that are too far from the origin for float64 towards it: post-processing."""
    v = space.log(space.origin, x)
    short = space.saturate(space.origin, v)
    far = (short != v).any(axis=-1, keepdims=True)
    return np.where(far, space.exp(space.origin, short), x)


def _largest_scale(manifold: Manifold) -> float:
    """Return the scale below which the mechanism exists; raise where it has no theorem."""
    if isinstance(manifold, SPDAffineInvariant):
        if manifold.size > spd.MAX_SIZE:
            raise ValueError(
                "mechanism 'riemannian-laplace' requires matrices of at most "
                f"{spd.MAX_SIZE} rows, got {manifold!r}; use 'wrapped-gaussian' there."
            )
        return spd.largest_scale(manifold.size)
    if isinstance(manifold, Hyperbolic):
        return 1 / (manifold.dim - 1) if manifold.dim > 1 else inf
    if not isinstance(manifold, Sphere | FlatManifold):
        raise ValueError(
            "mechanism 'riemannian-laplace' requires a sphere, a flat or hyperbolic space or SPD "
            f"matrices, got {manifold!r}; use 'wrapped-gaussian' or 'riemannian-gaussian' there."
        )
    return inf
