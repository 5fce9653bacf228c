"""The generator of a fit, and the mechanism for its mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral

import numpy as np

from skdpfrechet._numerics import Array
from skdpfrechet.manifolds import Manifold, Sphere
from skdpfrechet.mechanisms import (
    ProjectedGaussian,
    RandomSource,
    RiemannianGaussian,
    SystemGenerator,
    WrappedGaussian,
)
from skdpfrechet.privacy import GDP

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


@dataclass(frozen=True)
class MeanLaw:
    """How the estimators use one mechanism for the mean.

    Parameters
    ----------
    rebuild : callable
        Makes it from a space, a foot and a scale; raises where no theorem covers the space.
    calibrate : callable
        Makes it from a space, a foot, a sensitivity and a guarantee.
    calibrate_secure : callable or None
        The same with float-safe noise, where the mechanism has such a form.
    in_chart : bool
        Whether the noise is normal in the chart at the foot, so that regions live there.
    """

    rebuild: Callable[[Manifold, Array, float], MeanMechanism]
    calibrate: Callable[[Manifold, Array, float, GDP], MeanMechanism]
    calibrate_secure: Callable[[Manifold, Array, float, GDP], MeanMechanism] | None = None
    in_chart: bool = False


_LAWS = {
    "riemannian-gaussian": MeanLaw(
        rebuild=lambda space, foot, sigma: RiemannianGaussian(space, sigma),
        calibrate=lambda space, foot, *promise: RiemannianGaussian.calibrate(space, *promise),
    ),
    "riemannian-gaussian-exact": MeanLaw(
        rebuild=lambda space, foot, sigma: RiemannianGaussian(space, sigma),
        calibrate=lambda space, foot, *promise: RiemannianGaussian.calibrate_exact(space, *promise),
    ),
    "wrapped-gaussian": MeanLaw(
        rebuild=WrappedGaussian,
        calibrate=lambda space, foot, change, promise: WrappedGaussian.calibrate(
            space, change, promise, foot
        ),
        calibrate_secure=lambda space, foot, change, promise: WrappedGaussian.calibrate_secure(
            space, change, promise, foot
        ),
        in_chart=True,
    ),
    "projected-gaussian": MeanLaw(
        rebuild=lambda space, foot, sigma: ProjectedGaussian(space, sigma),
        calibrate=lambda space, foot, *promise: ProjectedGaussian.calibrate(space, *promise),
        calibrate_secure=lambda space, foot, *promise: ProjectedGaussian.calibrate_secure(
            space, *promise
        ),
    ),
}
MECHANISMS = ("auto", *_LAWS)


def mean_law(name: str) -> MeanLaw:
    """Return how the named mechanism is used; unknown names are refused, not guessed."""
    if not isinstance(name, str) or name not in _LAWS:
        names = ", ".join(repr(known) for known in _LAWS)
        raise ValueError(f"the mechanism of a mean must be one of {names}, got {name!r}.")
    return _LAWS[name]


def resolve_mechanism(name: str, manifold: Manifold, exact: bool) -> str:
    """Return the mechanism's full name.

    What ``"auto"`` means depends on the curvature and, on spheres, on whether `exact` noise is to
    be had (`exact_noise`): the Riemannian Gaussian has none.
    """
    if not isinstance(name, str) or name not in MECHANISMS:
        names = ", ".join(repr(known) for known in MECHANISMS)
        raise ValueError(f"mechanism must be one of {names}, got {name!r}.")
    if name != "auto":
        return name
    hadamard = manifold.sectional_curvature_bounds[1] <= 0 and np.isinf(manifold.injectivity_radius)
    if hadamard:
        return "wrapped-gaussian"
    return "projected-gaussian" if exact and isinstance(manifold, Sphere) else "riemannian-gaussian"


def calibrate(
    name: str,
    manifold: Manifold,
    foot: Array,
    sensitivity: float,
    guarantee: GDP,
    secure: bool = False,
) -> MeanMechanism:
    """Return the named mechanism; raise where no theorem covers it on this space."""
    law = mean_law(name)
    if not secure:
        return law.calibrate(manifold, foot, sensitivity, guarantee)
    if law.calibrate_secure is None:
        raise ValueError(f"float-safe noise requires a mechanism that has it, got {name!r}.")
    return law.calibrate_secure(manifold, foot, sensitivity, guarantee)


def rebuild(name: str, manifold: Manifold, foot: Array, sigma: float) -> MeanMechanism:
    """Return the mechanism that made an earlier release."""
    return mean_law(name).rebuild(manifold, foot, sigma)
