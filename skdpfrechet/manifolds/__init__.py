"""The spaces: exponential and logarithm, frames, curvature, all batched over leading axes."""

from skdpfrechet.manifolds._base import Localization, Manifold
from skdpfrechet.manifolds._flat import Euclidean, FlatManifold
from skdpfrechet.manifolds._hyperbolic import Hyperbolic
from skdpfrechet.manifolds._resolve import resolve_manifold
from skdpfrechet.manifolds._spd import SPDAffineInvariant, SPDLogCholesky, SPDLogEuclidean
from skdpfrechet.manifolds._sphere import Sphere

__all__ = [
    "Euclidean",
    "FlatManifold",
    "Hyperbolic",
    "Localization",
    "Manifold",
    "SPDAffineInvariant",
    "SPDLogCholesky",
    "SPDLogEuclidean",
    "Sphere",
    "resolve_manifold",
]
