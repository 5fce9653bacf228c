"""The exponential-wrapped Gaussian on Hadamard spaces."""

from __future__ import annotations

from dataclasses import dataclass
from math import log, pi, sqrt

import numpy as np

from skdpfrechet._numerics import Array
from skdpfrechet._validation import check_nonnegative
from skdpfrechet.manifolds import Manifold
from skdpfrechet.mechanisms._base import (
    Mechanism,
    gaussian_guarantee,
    gaussian_scale,
    noise_scale,
)
from skdpfrechet.mechanisms._grid import Grid, add_gaussian, gaussian_grid
from skdpfrechet.mechanisms._system_generator import RandomSource
from skdpfrechet.privacy import GDP, ApproxDP


@dataclass(frozen=True, eq=False)
class WrappedGaussian(Mechanism):
    """Gaussian noise in the tangent space of a public foot, carried to the space by exp.

    Releases ``exp_m0(log_m0(η) + N(0, σ² I))``. On flat spaces this is the tangent Gaussian [2]_.

    Parameters
    ----------
    manifold : Manifold
        A Hadamard space: simply connected, curvature ≤ 0.
    foot : ndarray, shape point_shape
        m0, public. A foot that depends on the records voids the guarantee.
    sigma : float
        Standard deviation of each coordinate, in the units of `Manifold.dist`.
    grid : Grid or None
        Where not None, the noisy coordinates are on that grid and the guarantee holds on a computer
        too; made by `calibrate_secure`.

    Notes
    -----
    Neighbouring relation: replace-one, through the sensitivity. μ-GDP with μ = Δ/σ: log_m0 does
    not stretch distances on a Hadamard space, so the coordinates have Euclidean sensitivity at most
    Δ, and exp is post-processing. Where float64 cannot represent exp of the noisy coordinates they
    are shortened first (`Manifold.saturate`), post-processing too. On a grid the rounding of the
    coordinates adds to Δ.

    References
    ----------
    .. [1] Jiang, Chang, Hu, arXiv 2605.14762.
    .. [2] S. Utpala, P. Vepakomma, N. Miolane, "Differentially private Fréchet mean on the manifold
       of symmetric positive definite matrices with log-Euclidean metric", TMLR, 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from skdpfrechet.manifolds import SPDAffineInvariant
    >>> from skdpfrechet.mechanisms import WrappedGaussian
    >>> from skdpfrechet.privacy import GDP
    >>> mechanism = WrappedGaussian.calibrate(SPDAffineInvariant(2), 0.1, GDP(0.5))
    >>> mechanism.sigma
    0.2
    >>> mechanism.release(np.eye(2), np.random.default_rng(0)).shape
    (2, 2)
    """

    manifold: Manifold
    foot: Array
    sigma: float
    grid: Grid | None = None

    def __post_init__(self) -> None:
        check_nonnegative("sigma", self.sigma)
        require_hadamard(self.manifold)
        foot = np.array(self.foot, dtype=float)
        if foot.shape != self.manifold.point_shape:
            raise ValueError(
                f"foot must have shape {self.manifold.point_shape} on {self.manifold!r}, "
                f"got {foot.shape}."
            )
        foot.flags.writeable = False
        object.__setattr__(self, "foot", foot)

    @classmethod
    def calibrate(
        cls,
        manifold: Manifold,
        sensitivity: float,
        guarantee: GDP | ApproxDP,
        foot: Array | None = None,
    ) -> WrappedGaussian:
        """Return the mechanism with the least noise that gives `guarantee`.

        `sensitivity` is in the geodesic distance; `foot` is the origin of the space by default.
        """
        require_hadamard(manifold)
        foot = _origin(manifold) if foot is None else foot
        return cls(manifold, foot, gaussian_scale(sensitivity, guarantee))

    @classmethod
    def calibrate_secure(
        cls,
        manifold: Manifold,
        sensitivity: float,
        guarantee: GDP | ApproxDP,
        foot: Array | None = None,
    ) -> WrappedGaussian:
        """Return the mechanism with the least float-safe noise that gives `guarantee`."""
        require_hadamard(manifold)
        foot = _origin(manifold) if foot is None else foot
        return cls(manifold, foot, *gaussian_grid(sensitivity, guarantee, manifold.dim))

    @classmethod
    def calibrate_classical(
        cls,
        manifold: Manifold,
        sensitivity: float,
        guarantee: ApproxDP,
        foot: Array | None = None,
    ) -> WrappedGaussian:
        """Return the mechanism with the textbook scale ``Δ √(2 log(1.25/δ))/ε``, for ε ≤ 1.

        The baseline of [2]_: never less noise than `calibrate`, and false for large ε, where it is
        refused.

        References
        ----------
        .. [1] C. Dwork, A. Roth, "The algorithmic foundations of differential privacy",
           Foundations and Trends in Theoretical Computer Science 9, 2014, Theorem A.1.
        .. [2] S. Utpala, P. Vepakomma, N. Miolane, "Differentially private Fréchet mean on the
           manifold of symmetric positive definite matrices with log-Euclidean metric", TMLR, 2023.
        """
        require_hadamard(manifold)
        if not isinstance(guarantee, ApproxDP):
            raise TypeError(
                "guarantee must be an ApproxDP for the classical calibration, "
                f"got {type(guarantee).__name__}."
            )
        if not 0 < guarantee.epsilon <= 1:
            raise ValueError(
                "guarantee must have 0 < epsilon ≤ 1 for the classical calibration, "
                f"got {guarantee.epsilon!r}; calibrate has no such limit."
            )
        if guarantee.delta == 0:
            raise ValueError("guarantee must have delta > 0, got 0.0.")
        foot = _origin(manifold) if foot is None else foot
        # A few roundings, towards more noise.
        mu = guarantee.epsilon / sqrt(2 * log(1.25 / guarantee.delta)) * (1 - 2.0**-49)
        return cls(manifold, foot, noise_scale(sensitivity, "epsilon", mu))

    def effective_sensitivity(self, sensitivity: float) -> float:
        """Return that of what the noise is added to, the coordinates on their grid."""
        return sensitivity if self.grid is None else self.grid.sensitivity(sensitivity)

    def guarantee(self, sensitivity: float) -> GDP:
        return gaussian_guarantee(self.effective_sensitivity(sensitivity), self.sigma)

    def normal_scale(self, level: float) -> float:
        """Return `sigma`: in the chart at the foot the noise is normal."""
        return self.sigma

    def release(self, center: Array, rng: RandomSource) -> Array:
        return self._around(self.manifold.log_coords(self.foot, center), rng)

    def simulate(self, center: Array, count: int, rng: RandomSource) -> Array:
        c = self.manifold.log_coords(self.foot, center)  # once, not `count` times
        return self._around(np.broadcast_to(c, (count, *c.shape)), rng)

    def _around(self, c: Array, rng: RandomSource) -> Array:
        return self.manifold.saturated_exp(self.foot, add_gaussian(c, self.sigma, self.grid, rng))

    def log_density(self, center: Array, x: Array) -> Array:
        v = self.manifold.log(self.foot, x)
        c = self.manifold.coords(self.foot, v)
        z = (c - self.manifold.log_coords(self.foot, center)) / self.sigma
        normal = -(z * z).sum(axis=-1) / 2 - z.shape[-1] * (log(self.sigma) + log(2 * pi) / 2)
        return np.asarray(normal - self.manifold.log_volume_density(self.foot, v))


def _origin(manifold: Manifold) -> Array:
    if manifold.origin is None:
        raise ValueError(f"foot must be given on {manifold!r}, which has no origin.")
    return manifold.origin


def require_hadamard(manifold: Manifold) -> None:
    """Raise unless the wrapped Gaussian's theorem covers `manifold`."""
    if manifold.sectional_curvature_bounds[1] > 0 or np.isfinite(manifold.injectivity_radius):
        raise ValueError(
            "mechanism 'wrapped-gaussian' requires a simply connected space of curvature ≤ 0, "
            f"got {manifold!r}; use 'riemannian-gaussian' there."
        )
