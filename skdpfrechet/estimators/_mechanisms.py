"""The generator of a fit, and the mechanism for its mean."""

from __future__ import annotations

from numbers import Integral

import numpy as np

from skdpfrechet._numerics import Array
from skdpfrechet.manifolds import Manifold
from skdpfrechet.mechanisms import (
    ProjectedGaussian,
    RandomSource,
    RiemannianGaussian,
    SystemGenerator,
    WrappedGaussian,
)
from skdpfrechet.privacy import GDP

MECHANISMS = (
    "auto",
    "riemannian-gaussian",
    "riemannian-gaussian-exact",
    "wrapped-gaussian",
    "projected-gaussian",
)
MeanMechanism = ProjectedGaussian | RiemannianGaussian | WrappedGaussian
SEEDED = "random_state is an integer: whoever knows or guesses it can take the noise off again"


def make_generator(random_state) -> tuple[RandomSource, str | None]:
    """Return the one generator of a fit, and why it voids the guarantee, if it does.

    None takes every number from the operating system's cryptographic generator. Generators are
    refused: their state can be rewound to the very noise that was added.
    """
    if random_state is None:
        return SystemGenerator(), None
    if isinstance(random_state, bool) or not isinstance(random_state, Integral):
        raise TypeError(
            "random_state must be None or an integer (for tests only), "
            f"got {type(random_state).__name__}."
        )
    if random_state < 0:
        raise ValueError(f"random_state must not be negative, got {random_state!r}.")
    return np.random.default_rng(int(random_state)), SEEDED


def resolve_mechanism(name: str, manifold: Manifold, noise: str) -> str:
    """Return the mechanism's full name: what ``"auto"`` means depends on the curvature."""
    if not isinstance(name, str) or name not in MECHANISMS:
        names = ", ".join(repr(known) for known in MECHANISMS)
        raise ValueError(f"mechanism must be one of {names}, got {name!r}.")
    if name != "auto":
        return name
    hadamard = manifold.sectional_curvature_bounds[1] <= 0 and np.isinf(manifold.injectivity_radius)
    if hadamard:
        return "wrapped-gaussian"
    return "projected-gaussian" if noise == "secure" else "riemannian-gaussian"


def calibrate(
    name: str,
    manifold: Manifold,
    foot: Array,
    sensitivity: float,
    guarantee: GDP,
    secure: bool = False,
) -> MeanMechanism:
    """Return the named mechanism; raise where no theorem covers it on this space."""
    if name == "wrapped-gaussian":
        wrapped = WrappedGaussian.calibrate_secure if secure else WrappedGaussian.calibrate
        return wrapped(manifold, sensitivity, guarantee, foot)
    if name == "projected-gaussian":
        projected = ProjectedGaussian.calibrate_secure if secure else ProjectedGaussian.calibrate
        return projected(manifold, sensitivity, guarantee)
    if name == "riemannian-gaussian-exact":
        return RiemannianGaussian.calibrate_exact(manifold, sensitivity, guarantee)
    return RiemannianGaussian.calibrate(manifold, sensitivity, guarantee)


def rebuild(name: str, manifold: Manifold, foot: Array, sigma: float) -> MeanMechanism:
    """Return the mechanism that made an earlier release."""
    if name == "wrapped-gaussian":
        return WrappedGaussian(manifold, foot, sigma)
    if name == "projected-gaussian":
        return ProjectedGaussian(manifold, sigma)
    return RiemannianGaussian(manifold, sigma)
