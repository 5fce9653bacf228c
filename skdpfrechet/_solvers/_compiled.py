"""Samples whose passes are compiled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from skdpfrechet import _kernels
from skdpfrechet._kernels import (
    _hyperbolic,
    _spd,
    _spd_descent,
    _spd_load,
    _sphere,
    _sphere_descent,
    _sphere_load,
)
from skdpfrechet._kernels._log_nodes import allowed_error
from skdpfrechet._kernels._spd_small import LARGEST_SIZE
from skdpfrechet._kernels._sphere_coordinates import clipped_coordinates, rounded_moment_sum
from skdpfrechet._kernels._vector import LANES
from skdpfrechet._numerics import Array, clip_norm, identity, sqrt_pair, symmetrize, unvecd, vecd
from skdpfrechet._solvers._newton import NewtonProblem
from skdpfrechet._solvers._sample import Sample
from skdpfrechet._solvers._spd import descend
from skdpfrechet.manifolds import Hyperbolic, Localization, SPDAffineInvariant, Sphere

MARGIN = 1e-6  # relative: nearer to the boundary than this, the reference decides


class CompiledSphere(Sample):
    """Unit vectors; in few dimensions also packed into blocks."""

    manifold: Sphere
    _mine = False  # whether `_points` is a copy of what the user passed

    def __init__(self, manifold: Sphere, points: Array) -> None:
        super().__init__(manifold, points)
        flat = points.reshape(-1, *points.shape[-2:])
        self._packed = _sphere.pack(flat, _kernels.n_threads())

    @classmethod
    def enter(
        cls, manifold: Sphere, X: Array, center: Array, radius: float
    ) -> tuple[CompiledSphere, Array]:
        """Return records, and the numbers of those not certainly unit vectors inside a ball."""
        packed, unsure = _sphere_load.enter(X, center, radius, _kernels.n_threads())
        sample = cls.__new__(cls)
        sample.manifold, sample._points, sample._packed = manifold, X, packed
        return sample, np.flatnonzero(unsure)

    def put(self, which: Array, points: Array) -> None:
        """Replace the records numbered `which`."""
        packed = self._packed
        if not self._mine:
            self._points, self._mine = np.array(self._points), True
        self._points[which] = points
        if not packed.blocked:
            self._packed = replace(packed, values=self._points.reshape(-1))
            return
        block, lane = np.divmod(which, LANES)
        blocks = packed.values.reshape(-1, packed.size, LANES)
        blocks[block, :, lane] = points
        blocks[-1, :, (packed.count - 1) % LANES + 1 :] = self._points[-1][:, None]  # the filling

    def mean(
        self, start: Array, radius: float, tolerance: float, max_iter: int
    ) -> tuple[Array, Array]:
        batch = self._points.shape[:-2]
        mean, residual = _sphere_descent.mean(
            self._packed, start, radius, tolerance, max_iter, _kernels.n_threads()
        )
        return mean.reshape(*batch, -1), residual.reshape(batch)

    def mean_log(self, base: Array) -> Array:
        """Return the mean logarithm at `base` of the records of one sample, shape (dim,)."""
        sums = _sphere.log_sums(self._packed, base[None], False, _kernels.n_threads())
        return np.asarray(self.manifold.coords(base, sums.log[0] / self._packed.count))

    def newton_problem(self, start: Array, radius: float) -> NewtonProblem:
        """Return what Newton's method needs of the records of one sample."""
        return _SphereProblem(self, start, radius)

    def squared_distances(self, base: Array) -> Array:
        d = _sphere.squared_distances(self._packed, self._bases(base), _kernels.n_threads())
        return d.reshape(self._points.shape[:-1])

    def coordinates(self, base: Array, middle: Array, radius: float) -> Array:
        if middle.any() or self._points.ndim > 2:
            return super().coordinates(base, middle, radius)
        return clipped_coordinates(self._points, base, radius, _kernels.n_threads())

    def second_moment(self, base: Array, middle: Array, radius: float) -> Array:
        if middle.any():
            return super().second_moment(base, middle, radius)
        bases = self._bases(base)
        # Row i of the frame is its i-th vector.
        frame = np.swapaxes(self.manifold.frame(bases), -1, -2)
        moment = _sphere.clipped_moment(self._packed, bases, frame, radius, _kernels.n_threads())
        return moment.reshape(*self._points.shape[:-2], *moment.shape[-2:])

    def exact_second_moment(
        self, base: Array, middle: Array, radius: float, step: float
    ) -> tuple[Array, Callable[[Array], Array]]:
        """Return what the numpy sample does of `coordinates`, which are not written to memory."""
        if middle.any():
            return super().exact_second_moment(base, middle, radius, step)
        sums = rounded_moment_sum(self._points, base, radius, step, _kernels.n_threads())
        return sums * step**2, np.asarray

    def _bases(self, base: Array) -> Array:
        batch = (*self._points.shape[:-2], self._points.shape[-1])
        return np.broadcast_to(base, batch).reshape(-1, batch[-1])


class _SphereProblem(NewtonProblem):
    def __init__(self, sample: CompiledSphere, start: Array, radius: float) -> None:
        super().__init__(sample.manifold, sample.points, start, radius)
        self.packed = sample._packed

    def evaluate(self, p: Array) -> tuple[Array, Array, Array]:
        count, frame = self.packed.count, self.manifold.frame(p)  # row i is its i-th vector
        sums = _sphere.log_sums(self.packed, p[None], True, _kernels.n_threads())
        hessian = frame @ np.asarray(sums.hessian)[0] @ frame.T
        return frame @ sums.log[0] / count, sums.squared_distance[0] / count / 2, hessian


class CompiledHyperbolic(Sample):
    """Points of the hyperboloid, read as they lie."""

    manifold: Hyperbolic

    def __init__(self, manifold: Hyperbolic, points: Array) -> None:
        super().__init__(manifold, points)
        self._packed = _hyperbolic.pack(points.reshape(-1, *points.shape[-2:]))

    def mean_log(self, base: Array) -> Array:
        """Return the mean logarithm at `base` of the records of one sample, shape (dim,)."""
        sums = _hyperbolic.log_sums(self._packed, base[None], False, _kernels.n_threads())
        return np.asarray(sums.log[0] / self._packed.count)

    def newton_problem(self, start: Array, radius: float) -> NewtonProblem:
        """Return what Newton's method needs of the records."""
        return _HyperbolicProblem(self, start, radius)

    def squared_distances(self, base: Array) -> Array:
        """Return ρ²(base, X_i), shape (n,)."""
        bases = np.broadcast_to(base, (self._packed.replications, base.shape[-1]))
        d = _hyperbolic.squared_distances(self._packed, bases, _kernels.n_threads())
        return d.reshape(self._points.shape[:-1])

    def second_moment(self, base: Array, middle: Array, radius: float) -> Array:
        """Return the uncentred second moment of `coordinates`, shape (dim, dim)."""
        if middle.any():
            return super().second_moment(base, middle, radius)
        bases = np.broadcast_to(base, (self._packed.replications, base.shape[-1]))
        moment = _hyperbolic.clipped_moment(self._packed, bases, radius, _kernels.n_threads())
        return moment.reshape(*self._points.shape[:-2], *moment.shape[-2:])


class _HyperbolicProblem(NewtonProblem):
    def __init__(self, sample: CompiledHyperbolic, start: Array, radius: float) -> None:
        super().__init__(sample.manifold, sample.points, start, radius)
        self.packed = sample._packed

    def evaluate(self, p: Array) -> tuple[Array, Array, Array]:
        count, bases = self.packed.count, p.reshape(-1, p.shape[-1])
        sums = _hyperbolic.log_sums(self.packed, bases, True, _kernels.n_threads())
        dim = self.manifold.dim
        hessian = np.asarray(sums.hessian).reshape(*self.batch, dim, dim)
        objective = (sums.squared_distance / count / 2).reshape(self.batch)
        return (sums.log / count).reshape(*self.batch, dim), objective, hessian


class CompiledSPD(Sample):
    """SPD matrices under the affine-invariant metric, packed into blocks; not kept otherwise."""

    manifold: SPDAffineInvariant

    def __init__(self, manifold: SPDAffineInvariant, points: Array) -> None:
        self.manifold = manifold
        self._batch = points.shape[:-3]
        self._packed = _spd.pack(points.reshape(-1, *points.shape[-3:]), _kernels.n_threads())

    @classmethod
    def enter(
        cls, local: Localization, X: Array, radius: float, log_cap: float
    ) -> tuple[CompiledSPD, Array]:
        """Return records in the model, and the numbers of those not certainly valid and inside.

        A record that the first look leaves undecided gets a second one, however many there are.
        """
        manifold = local.model
        assert isinstance(manifold, SPDAffineInvariant)
        assert local.carrier is not None
        blocks, outside, valid = _spd_load.enter(
            X, local.carrier, radius, log_cap, _kernels.n_threads()
        )
        sample = cls.__new__(cls)
        sample.manifold = manifold
        sample._batch = ()
        sample._packed = _spd.Packed(blocks, len(X), manifold.size)
        undecided = np.flatnonzero(outside & valid)
        if len(undecided):
            outside[undecided] = ~sample._seen_inside(undecided, min(radius, log_cap))
        return sample, np.flatnonzero(outside | ~valid)

    @property
    def points(self) -> Array:
        """The records as an array, made anew."""
        points = _spd_descent.unpack(self._packed)
        return points.reshape(*self._batch, *points.shape[1:])

    @property
    def n(self) -> int:
        """Number of records of one sample."""
        return self._packed.count

    def mean(
        self, start: Array, radius: float, tolerance: float, max_iter: int
    ) -> tuple[Array, Array]:
        """Return the Fréchet mean and its residual, as `frechet_mean` describes them."""
        if self.manifold.size <= LARGEST_SIZE:
            mean, residual = _spd_descent.mean(
                self._packed, tolerance, max_iter, _kernels.n_threads()
            )
            lost = np.isinf(residual)  # to a record that is left to ``eigh``, say
            if lost.any():
                again, rest = self._quasi_newton_mean(tolerance, max_iter)
                mean = np.where(lost[:, None, None], again, mean)
                residual = np.where(lost, rest, residual)
        else:
            mean, residual = self._quasi_newton_mean(tolerance, max_iter)
        return mean.reshape(*self._batch, *mean.shape[1:]), residual.reshape(self._batch)

    def improve(
        self, begin: Array, start: Array, radius: float, tolerance: float, max_iter: int
    ) -> tuple[Array, Array]:
        return self.reference().improve(begin, start, radius, tolerance, max_iter)

    def reference(self) -> Sample:
        return Sample(self.manifold, self.points)

    def _quasi_newton_mean(self, tolerance: float, max_iter: int) -> tuple[Array, Array]:
        size = self.manifold.size
        accuracy: _spd.Accuracy = "fast" if tolerance >= _spd_descent.FAST_FROM else "full"
        error = size**0.5 * allowed_error(accuracy, 1.0)
        try:
            factor = np.linalg.cholesky(_spd_descent.arithmetic_means(self._packed))
        except np.linalg.LinAlgError:  # lost in rounding
            nowhere = np.full((len(self._packed.blocks), size, size), np.nan)
            return nowhere, nowhere[:, 0, 0]
        inverse = np.linalg.solve(factor, np.broadcast_to(np.eye(size), factor.shape))
        mean, residual = descend(
            lambda factor, _: self._log_means(factor, accuracy),
            factor,
            inverse,
            max(tolerance - error, 0.0),
            max_iter,
        )
        return mean, residual + error

    def log_means(self, factor: Array, inverse: Array) -> tuple[Array, ...]:
        """Return what `descend` evaluates, of one sample."""
        return tuple(value[0] for value in self._log_means(factor[None], "full"))

    def _log_means(self, factor: Array, accuracy: _spd.Accuracy) -> tuple[Array, Array, Array]:
        count, freedom = self._packed.count, max(self.manifold.dim - 1, 1)
        try:
            whitener, rotation = _whiten(factor)
        except np.linalg.LinAlgError:  # a step beyond float64, to be refused
            nothing = np.full(factor.shape, np.nan)
            return nothing, nothing[:, 0, 0], nothing[:, 0, 0]
        sums = _spd.log_sums(self._packed, whitener, accuracy, _kernels.n_threads())
        gradient = np.swapaxes(rotation, -1, -2) @ sums.logs @ rotation / count
        excess = sums.spreads / count / 12 / freedom
        # x coth x - 1 = x²/3 + ... over pairs of eigenvalues, bent where it is large.
        stiffness = 1 + excess / (1 + 0.15 * excess)
        return gradient, sums.squares / count / 2, stiffness

    def squared_distances(self, base: Array) -> Array:
        """Return ρ²(base, X_i), shape (n,)."""
        whitener, _ = _whiten(self._roots(base))
        d = _spd.squared_distances(self._packed, whitener, _kernels.n_threads())
        return d.reshape(*self._batch, -1)

    def coordinates(self, base: Array, middle: Array, radius: float) -> Array:
        """Return the logarithms at `base`, shape (n, dim), each within `radius` of `middle`."""
        whitener, rotation = _whiten(self._roots(base))
        logs = unvecd(_spd.logs(self._packed, whitener, _kernels.n_threads()))
        rotation = rotation[:, None]
        c = vecd(np.swapaxes(rotation, -1, -2) @ logs @ rotation)
        c = c.reshape(*self._batch, *c.shape[1:])
        return np.asarray(middle + clip_norm(c - middle, radius))

    def second_moment(self, base: Array, middle: Array, radius: float) -> Array:
        """Return the uncentred second moment of `coordinates`, shape (dim, dim)."""
        whitener, rotation = _whiten(self._roots(base))
        middle = np.broadcast_to(middle, (len(whitener), self.manifold.dim))
        moment = _spd.clipped_moment(
            self._packed, whitener, rotation, middle, radius, _kernels.n_threads()
        )
        return moment.reshape(*self._batch, *moment.shape[1:])

    def exact_second_moment(
        self, base: Array, middle: Array, radius: float, step: float
    ) -> tuple[Array, Callable[[Array], Array]]:
        """Return what the numpy sample does, in a frame that saves rotating every record."""
        whitener, rotation = _whiten(self._roots(base))
        sums = _spd.unrotated_moment_sums(
            self._packed,
            whitener,
            rotation,
            np.broadcast_to(middle, (len(whitener), self.manifold.dim)),
            radius,
            step,
            _kernels.n_threads(),
        )
        return sums[0] * step**2, lambda moment: _spd.rotated_moment(moment[None], rotation)[0]

    def _seen_inside(self, which: Array, radius: float) -> Array:
        """Return which of the records numbered `which` certainly are in a ball around I."""
        some = _spd.take(self._packed, which)
        whitener = np.eye(self.manifold.size)[None]
        with np.errstate(all="ignore"):  # of a record that is far out nobody may hear
            squares = _spd.squared_distances(some, whitener, _kernels.n_threads())[0]
        return np.asarray(squares <= (radius * (1 - MARGIN)) ** 2)

    def put(self, which: Array, points: Array) -> None:
        """Replace the records numbered `which`."""
        lower = _spd.layout(self.manifold.size).lower
        block, lane = np.divmod(which, LANES)
        blocks = self._packed.blocks[0]
        blocks[block, :, lane] = points.reshape(len(points), -1)[:, lower]
        blocks[-1, :, self.n % LANES or LANES :] = blocks[0, :, :1]  # the filling is record 0

    def _roots(self, base: Array) -> Array:
        """Return the roots of the base points, one for each sample."""
        return np.broadcast_to(sqrt_pair(base)[0], (len(self._packed.blocks), *base.shape[-2:]))


def _whiten(factor: Array) -> tuple[Array, Array]:
    """Return the triangular whitener W of P = G Gᵀ and the rotation O = W G, from factors G."""
    lower = np.linalg.cholesky(symmetrize(factor @ factor.swapaxes(-1, -2)))
    whitener = np.tril(np.linalg.solve(lower, identity(lower.shape[-1])[None]))
    return whitener, whitener @ factor
