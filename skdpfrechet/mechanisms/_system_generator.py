"""Random numbers from the operating system's cryptographic generator."""

from __future__ import annotations

import os
from math import prod

import numpy as np
from scipy.special import ndtri

from skdpfrechet._numerics import Array
from skdpfrechet.mechanisms._rejection import collect

Size = int | tuple[int, ...]


class SystemGenerator:
    """Draws that come from `os.urandom`, every one anew.

    It has those methods of `numpy.random.Generator` that the mechanisms use, and no others. There
    is no state: nothing to fork, to share between threads, to pickle or to rewind, and no draw
    tells anything of another one. A seed does not exist either; tests use
    `numpy.random.default_rng`, whose PCG64 can be predicted from its output and is no generator for
    a release.

    Notes
    -----
    Numbers are rounded to float64 as those of numpy are; the mechanisms with a `Grid` use `bytes`
    alone and are exact.

    Examples
    --------
    >>> from skdpfrechet.mechanisms import Gaussian, SystemGenerator
    >>> Gaussian(0.1).release([1.0, 2.0], SystemGenerator()).shape
    (2,)
    """

    def bytes(self, length: int) -> bytes:
        """Return random bytes."""
        return os.urandom(length)

    def random(self, size: Size = ()) -> Array:
        """Draw multiples of 2^-53 uniform on [0, 1)."""
        return np.asarray((self._words(size) >> np.uint64(11)) * 2.0**-53)

    def standard_normal(self, size: Size = ()) -> Array:
        """Draw standard normal numbers, by inversion of a sign and a tail of 63 bits."""
        words = self._words(size)
        z = ndtri(((words >> np.uint64(1)) + 0.5) * 2.0**-64)
        return np.asarray(np.where(words & np.uint64(1), z, -z))

    def gamma(self, shape: float, size: Size = ()) -> Array:
        """Draw gamma variables of scale 1, by rejection [1]_.

        References
        ----------
        .. [1] G. Marsaglia, W. W. Tsang, "A simple method for generating gamma variables", ACM
           Transactions on Mathematical Software 26, 2000.
        """
        if shape < 1:  # the power may underflow to 0, as in numpy
            return np.asarray(self.gamma(shape + 1, size) * self.random(size) ** (1 / shape))
        d = shape - 1 / 3

        def propose(number: int) -> Array:
            x = self.standard_normal(number)
            v = (1 + x / (3 * np.sqrt(d))) ** 3
            with np.errstate(divide="ignore", invalid="ignore"):
                accept = np.log(self.random(number)) < x * x / 2 + d - d * v + d * np.log(v)
            return np.asarray(d * v[(v > 0) & accept])

        count = size if isinstance(size, int) else prod(size)
        return collect(propose, count).reshape(size)

    def chisquare(self, df: float, size: Size = ()) -> Array:
        """Draw chi-squared variables."""
        return np.asarray(2 * self.gamma(df / 2, size))

    def laplace(self, *, scale: float = 1.0, size: Size = ()) -> Array:
        """Draw Laplace variables around 0."""
        words = self._words(size)
        exponential = -np.log(((words >> np.uint64(1)) + 0.5) * 2.0**-63)
        return np.asarray(scale * np.where(words & np.uint64(1), exponential, -exponential))

    def _words(self, size: Size) -> Array:
        count = size if isinstance(size, int) else prod(size)
        return np.frombuffer(self.bytes(8 * count), dtype=np.uint64).reshape(size)


RandomSource = np.random.Generator | SystemGenerator
