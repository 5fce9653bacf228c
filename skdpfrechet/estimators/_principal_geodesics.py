"""`DPPrincipalGeodesics`."""

from __future__ import annotations

from math import sqrt
from numbers import Integral

import numpy as np
from sklearn.utils.validation import check_array, check_is_fitted

from skdpfrechet._numerics import Array, eigh
from skdpfrechet.estimators._base import _DPEstimator, fit_threads
from skdpfrechet.estimators._groups import check_unit, without_counts
from skdpfrechet.estimators._mean import DPFrechetMean
from skdpfrechet.estimators._plan import check_blocks, pay, read_into_ball
from skdpfrechet.estimators._records import look, real_numbers
from skdpfrechet.inference import MeanInference
from skdpfrechet.manifolds import resolve_manifold

SPLIT = {"mean": 0.3, "second_moment": 0.7}  # see docs/classifiers.md


class DPPrincipalGeodesics(_DPEstimator):
    """Differentially private principal geodesic analysis.

    The Fréchet mean is released, then the second moment of the logarithms of the records at the
    released mean. The principal geodesics leave the mean along the eigenvectors of that matrix,
    which cost nothing more.

    Parameters
    ----------
    manifold : str or Manifold, default="spd"
        As for `DPFrechetMean`.
    n_components : int or None, default=None
        Number of geodesics kept; None keeps all. It must be chosen without the records.
    radius : float
        Radius of the public ball.
    center : array-like of shape point_shape, default=None
        Public centre of the ball. None is the identity or 0: covariances then need units in which
        they are of order one, as those in V² would all be moved to the boundary. Required on
        spheres.
    mu : float, default=1.0
        Budget of the whole fit in Gaussian differential privacy. ``np.inf`` gives the exact
        analysis of the moved records, and no privacy.
    mechanism : str, default="auto"
        Mechanism for the mean, as for `DPFrechetMean`.
    budget_split : dict or None, default=None
        Shares of μ² of ``"mean"`` and ``"second_moment"``. None gives the second moment 70 %: it
        has dim (dim + 1) / 2 noisy entries, and the mean needs little.
    random_state : int or None, default=None
        None draws from the operating system's entropy. An integer is for tests: it voids the
        guarantee, and `privacy_` says so.
    n_jobs : int or None, default=None
        Threads for the passes over the records, as for `DPFrechetMean`.
    outer_radius, outer_center, ball_share, ball_quantile
        How a ``"private"`` centre or radius is found, as for `DPFrechetMean`.
    noise : {"auto", "float", "secure"}, default="auto"
        Whether noise is float-safe, as for `DPFrechetMean`.
    unit : str or None, default=None
        Name of the partition in `groups`, such as ``"person"``, as for `DPFrechetMean`.
    ledger : PrivacyLedger, str or PathLike, default=None
        Where every fit records its `mu` before it reads the value of a record, as for
        `DPFrechetMean`.
    invalid : {"raise", "replace"}, default="raise"
        What `fit` does with a record that is not finite or not on the manifold: raise, which lies
        outside the guarantee, or put the public centre in its place, as for `DPFrechetMean`.

    Attributes
    ----------
    mean_ : ndarray of shape point_shape
        The released mean, where the geodesics start.
    components_ : ndarray of shape (n_components, dim)
        Their directions in the orthonormal frame at `mean_`, of unit length, by decreasing
        variance; the largest coordinate of each is positive.
    explained_variance_ : ndarray of shape (n_components,)
        Mean squares of the records' coordinates along them (divided by n, not n - 1).
    explained_variance_ratio_ : ndarray of shape (n_components,)
        The same, divided by the released mean square distance to `mean_`; zero if that is.
    noise_scale_ : float
        Scale σ of the noise in the second moment, in the units of `explained_variance_`. Public.
    noise_floor_ : float
        σ √(2 dim), where the eigenvalues of the noise on its own would end. A component whose
        variance is not well above it points where the noise does. Public.
    privacy_ : PrivacyReport
        What the fit spent; prints as a table.
    manifold_ : Manifold
        The space.
    center_ : ndarray of shape point_shape
        The centre of the ball, public or released.
    radius_ : float
        The radius of the ball, public or released.
    n_samples_ : int
        Number of records, public.
    n_features_in_ : int
        Number of columns seen in `fit`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, when X has string names.

    See Also
    --------
    DPFrechetMean : The mean with a confidence region; `transform` gives all coordinates.

    Notes
    -----
    Neighbouring relation: replace one record, n public. `transform` is not a release: scores are
    as sensitive as the records.

    The second moment is **uncentred**: it is taken at the released mean and not at the exact one,
    so it holds the squared error of `mean_` too, in one direction.

    The noise in it is a symmetric Gaussian matrix of scale σ, whose eigenvalues fill
    ±σ √(2 dim). It is repaired by the nearest positive semidefinite matrix **of the same trace**:
    one number is taken off all eigenvalues and what falls below zero becomes zero. Clipping alone
    would keep the positive half of the noise, which inflates the small eigenvalues and the total
    (docs/classifiers.md). The directions are those of the noisy matrix either way.

    References
    ----------
    .. [1] Fletcher, Lu, Pizer, Joshi, "Principal geodesic analysis for the study of nonlinear
       statistics of shape", IEEE Trans. Med. Imaging 23(8), 2004.
    .. [2] Dwork, Talwar, Thakurta, Zhang, "Analyze Gauss", STOC 2014 (the flat case).

    Examples
    --------
    >>> import numpy as np
    >>> from skdpfrechet import DPPrincipalGeodesics
    >>> rng = np.random.default_rng(0)
    >>> X = np.exp(rng.normal(scale=[0.6, 0.2], size=(2000, 2)))[:, :, None] * np.eye(2)
    >>> pga = DPPrincipalGeodesics(n_components=1, radius=2.0, mu=1.0, random_state=0).fit(X)
    >>> bool(abs(pga.components_[0, 0]) > 0.9)
    True
    >>> pga.transform(X).shape
    (2000, 1)
    """

    def __init__(
        self,
        manifold="spd",
        *,
        n_components=None,
        radius,
        center=None,
        mu=1.0,
        mechanism="auto",
        budget_split=None,
        random_state=None,
        n_jobs=None,
        outer_radius=None,
        outer_center=None,
        ball_share="auto",
        ball_quantile="auto",
        noise="auto",
        unit=None,
        ledger=None,
        invalid="raise",
    ):
        self.manifold = manifold
        self.n_components = n_components
        self.radius = radius
        self.center = center
        self.mu = mu
        self.mechanism = mechanism
        self.budget_split = budget_split
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.outer_radius = outer_radius
        self.outer_center = outer_center
        self.ball_share = ball_share
        self.ball_quantile = ball_quantile
        self.noise = noise
        self.unit = unit
        self.ledger = ledger
        self.invalid = invalid

    def fit(self, X, y=None, *, groups=None):
        """Release the mean and the second moment, and decompose it.

        Parameters
        ----------
        X : array-like of shape ``(n_samples, *point_shape)``
            Records, as for `DPFrechetMean`.
        y : None
            Ignored.
        groups : array-like of shape (n_samples,), default=None
            The person, or other unit, that each record belongs to, as for `DPFrechetMean`.

        Returns
        -------
        self : DPPrincipalGeodesics

        Raises
        ------
        ValueError, TypeError
            If a parameter is out of range or X is not an array of points of the manifold.
        PrivacyBudgetError
            If the ledger has less than `mu` left. Nothing was read, nothing is released.
        PrivacyLedgerError, FileNotFoundError
            If the ledger cannot be used. Nothing was read, nothing is released.
        ConvergenceError
            If `mu` is infinite and the exact mean is not found. No private fit raises it.
        """
        with fit_threads(self.n_jobs):
            return without_counts(self._fit, groups, X)

    def _fit(self, X, groups):
        self._forget()
        unread = look(self, X, reset=True, blocks=True, grouped=groups is not None)
        check_unit(self, groups)
        manifold = resolve_manifold(self.manifold, unread.shape[1:])
        k = _check_n_components(self.n_components, manifold.dim)
        mean = DPFrechetMean(
            manifold,
            radius=self.radius,
            center=self.center,
            mu=self.mu,
            mechanism=self.mechanism,
            budget_split=SPLIT if self.budget_split is None else self.budget_split,
            random_state=self.random_state,
            outer_radius=self.outer_radius,
            outer_center=self.outer_center,
            ball_share=self.ball_share,
            ball_quantile=self.ball_quantile,
            noise=self.noise,
            invalid=self.invalid,
            unit=self.unit,
        )
        plan = mean._plan(unread.shape, groups)
        check_blocks(mean, plan, unread)
        paid = pay(self, plan.mu, plan.unit, plan.statistics)
        mean._release(plan, read_into_ball(mean, plan, unread), paid)
        inference = mean._inference
        assert inference is not None  # the mean has a confidence level
        variances, directions = eigh(released_second_moment(inference))
        directions = directions[:, ::-1].T
        variances = repair_variances(variances[::-1], inference.reach**2)
        total = variances.sum()
        self.mean_ = mean.mean_
        self.components_ = _fix_signs(directions[:k])
        self.explained_variance_ = variances[:k].copy()
        self.explained_variance_ratio_ = variances[:k] / (total if total > 0 else 1.0)
        self.noise_scale_ = inference.moment_scale
        self.noise_floor_ = inference.moment_scale * sqrt(2 * manifold.dim)
        self.manifold_ = manifold
        self.center_ = mean.center_
        self.radius_ = mean.radius_
        self.n_samples_ = mean.n_samples_
        self.privacy_ = mean.privacy_
        self._n_features_out = k
        return self

    def transform(self, X):
        """Return the coordinates of records along the principal geodesics.

        Parameters
        ----------
        X : array-like of shape ``(n_samples, *point_shape)``

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            Not a release.
        """
        X = self._read_for_transform(X)
        with np.errstate(all="ignore"):  # no overflow warning may tell that some record is huge
            return self.manifold_.log_coords(self.mean_, X) @ self.components_.T

    def inverse_transform(self, X):
        """Return the points with the given coordinates along the principal geodesics.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)

        Returns
        -------
        ndarray of shape ``(n_samples, *point_shape)``
        """
        check_is_fitted(self)
        X, k = real_numbers(X), len(self.components_)
        if np.ndim(X) != 2 or np.shape(X)[1] != k:
            raise ValueError(f"X must have shape (n_samples, {k}), got {np.shape(X)}.")
        c = check_array(X, dtype=np.float64, ensure_min_samples=0, input_name="X")
        return self.manifold_.exp_coords(self.mean_, c @ self.components_)


def released_second_moment(inference: MeanInference) -> Array:
    """Return the released second moment, unrepaired, in the user's frame at the released mean."""
    rotation = inference._frame_rotation()  # it was taken in the model of the space
    return np.asarray(rotation.T @ inference.moment @ rotation)


def repair_variances(variances: Array, limit: float) -> Array:
    """Return the nearest non-negative numbers with the same sum, or `limit` if that is smaller.

    Parameters
    ----------
    variances : ndarray, shape (dim,)
        Eigenvalues of the released second moment, decreasing.
    limit : float
        Public bound R² on the trace.

    Returns
    -------
    ndarray, shape (dim,)
        The Euclidean projection to the simplex: for the matrix, the projection to the positive
        semidefinite matrices of that trace.
    """
    total = min(max(float(variances.sum()), 0.0), limit)
    excess = (np.cumsum(variances) - total) / np.arange(1, len(variances) + 1)
    kept = np.flatnonzero(variances > excess)
    shift = excess[kept[-1]] if len(kept) else variances[0]
    return np.asarray(np.maximum(variances - shift, 0.0))


def _fix_signs(components: Array) -> Array:
    """Return the rows with their largest coordinate positive."""
    largest = np.abs(components).argmax(axis=1)
    signs = np.sign(components[np.arange(len(components)), largest])
    return np.asarray(components * signs[:, None])


def _check_n_components(n_components, dim: int) -> int:
    if n_components is None:
        return dim
    if isinstance(n_components, bool) or not isinstance(n_components, Integral):
        raise TypeError(
            f"n_components must be an integer or None, got {type(n_components).__name__}."
        )
    if not 1 <= int(n_components) <= dim:
        raise ValueError(
            f"n_components must be between 1 and the dimension {dim}, got {n_components!r}."
        )
    return int(n_components)
