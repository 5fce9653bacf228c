"""`PrivacyUtilityDisplay`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from skdpfrechet import sensitivity
from skdpfrechet._numerics import Array
from skdpfrechet._validation import check_nonnegative, check_positive, check_positive_integer
from skdpfrechet.estimators import DPFrechetVariance
from skdpfrechet.estimators._base import CALIBRATIONS
from skdpfrechet.estimators._budget import mean_shares, part
from skdpfrechet.estimators._mechanisms import calibrate, resolve_mechanism
from skdpfrechet.estimators._noise import exact_noise
from skdpfrechet.manifolds import Manifold
from skdpfrechet.plotting._axes import GREY, next_styles, open_axes
from skdpfrechet.plotting._region_display import region_of
from skdpfrechet.privacy import GDP, compose

_BUDGETS = tuple(np.geomspace(0.1, 3.0, 30))


class PrivacyUtilityDisplay:
    """Curves of error against the privacy budget, from releases or from public numbers.

    `from_public` plans a fit: it takes no data. `from_estimators` shows fits that have been
    released. To draw both on the same axes pass ``ax=display.ax_``.

    Parameters
    ----------
    mu : array-like of shape (n_budgets,)
        Budgets, finite and increasing.
    curves : dict of str to array-like of shape (n_budgets,)
        Errors at these budgets, by their labels in the legend.
    quantity : str, default="effective radius"
        What the curves show.
    ball_radius : float, default=None
        Radius of the ball, drawn as a level: an estimate with a larger error says less about the
        mean than that it lies in the ball. None draws no level.
    released : bool, default=False
        Whether the values are releases; they are drawn as points.

    Attributes
    ----------
    lines_ : list of matplotlib Artist
        The curves.
    ball_ : matplotlib Artist or None
        The level of the radius.
    ax_ : matplotlib Axes
        Axes with the curves.
    figure_ : matplotlib Figure
        Figure that holds them.

    See Also
    --------
    ConfidenceRegionDisplay : Pictures of regions.

    Notes
    -----
    What may be shown without spending budget: releases, and numbers that are public in any case.
    The error of a private mean, its distance from the exact one, is computed from the records: to
    plot it is a release outside every guarantee, and nothing here does. The same holds for a
    `spread` taken from the records and for choosing `mu` by a curve of errors on them. Fits at
    several budgets are releases of their own, and all of them add up; their legend says to what.

    Examples
    --------
    >>> from skdpfrechet.manifolds import SPDAffineInvariant
    >>> from skdpfrechet.plotting import PrivacyUtilityDisplay
    >>> plan = PrivacyUtilityDisplay.from_public(
    ...     SPDAffineInvariant(2), radius=2.0, n_samples=500, mu=[0.5, 1.0, 2.0], spread=0.5
    ... )
    >>> list(plan.curves)
    ['noise and sampling', 'noise', 'sampling']
    >>> plan.curves["noise"].round(4)
    array([0.0295, 0.0148, 0.0074])
    """

    def __init__(
        self,
        mu: ArrayLike,
        curves: Mapping[str, ArrayLike],
        *,
        quantity: str = "effective radius",
        ball_radius: float | None = None,
        released: bool = False,
    ):
        self.mu = mu
        self.curves = curves
        self.quantity = quantity
        self.ball_radius = ball_radius
        self.released = released

    def plot(self, *, ax: Any = None) -> PrivacyUtilityDisplay:
        """Draw the curves, on logarithmic axes.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. None makes a figure.

        Returns
        -------
        self : PrivacyUtilityDisplay

        Raises
        ------
        ImportError
            If matplotlib is missing; it is in the extra ``plot``.
        """
        ax = open_axes(ax, "PrivacyUtilityDisplay")
        from matplotlib.ticker import LogLocator, NullFormatter

        self.lines_ = []
        for (label, values), style in zip(
            self.curves.items(), next_styles(ax, len(self.curves)), strict=True
        ):
            self.lines_ += ax.plot(
                self.mu,
                values,
                color=style.color,
                linestyle=style.linestyle,
                marker=style.marker if self.released else None,
                markeredgecolor="black",
                linewidth=1 if self.released else 2,
                label=label,
            )
        self.ball_ = None
        if self.ball_radius is not None:
            self.ball_ = ax.axhline(
                self.ball_radius, color=GREY, linewidth=1, linestyle=":", label="radius of the ball"
            )
        ax.set(xscale="log", yscale="log", xlabel="budget μ", ylabel=self.quantity)
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.set_major_formatter("{x:g}")
            axis.set_minor_formatter(NullFormatter())
        ax.legend(loc="best")
        self.ax_, self.figure_ = ax, ax.figure
        return self

    @classmethod
    def from_estimators(
        cls, estimators: Sequence[Any], *, label: str = "released", ax: Any = None
    ) -> PrivacyUtilityDisplay:
        """Draw the size of the released regions or intervals of several fits.

        Parameters
        ----------
        estimators : list of DPFrechetMean or list of DPFrechetVariance
            Fitted at finite budgets, in any order. Of means the effective radius of the region is
            shown, of variances the length of the interval.
        label : str, default="released"
            For the legend, which adds what all fits together have spent if they are of the same
            records (at most, if they have reused a mean).
        ax : matplotlib Axes, default=None
            Axes to draw on. None makes a figure.

        Returns
        -------
        display : PrivacyUtilityDisplay

        Raises
        ------
        NotFittedError
            If an estimator is not fitted.
        ValueError
            If a fit has an infinite budget. Its region is computed from the records without noise;
            draw it beside the others only if the records are public.
        TypeError
            If estimators of means and of variances are mixed.

        Examples
        --------
        >>> import numpy as np
        >>> from skdpfrechet import DPFrechetMean
        >>> from skdpfrechet.plotting import PrivacyUtilityDisplay
        >>> X = np.random.default_rng(0).normal(size=(300, 2))
        >>> fits = [DPFrechetMean(radius=4.0, mu=mu).fit(X) for mu in (0.6, 0.8)]
        >>> display = PrivacyUtilityDisplay.from_estimators(fits)
        >>> list(display.curves)
        ['released, together 1-GDP']
        """
        if not estimators:
            raise ValueError("estimators must hold at least one estimator, got none.")
        quantities, sizes, reports = zip(*map(_size, estimators), strict=True)
        if len(set(quantities)) > 1:
            raise TypeError("estimators must be all of means or all of variances, got both.")
        mu = np.array([report.total.mu for report in reports])
        if np.isinf(mu).any():
            raise ValueError(
                "estimators must have finite budgets, got mu=inf, which is no release."
            )
        together = compose(*(report.total for report in reports))
        void = "" if all(report.void_reason is None for report in reports) else ", void"
        order = np.argsort(mu)
        curves = {f"{label}, together {together}{void}": np.array(sizes)[order]}
        return cls(mu[order], curves, quantity=quantities[0], released=True).plot(ax=ax)

    @classmethod
    def from_public(
        cls,
        manifold: Manifold,
        *,
        radius: float,
        n_samples: int,
        mu: ArrayLike = _BUDGETS,
        spread: float | None = None,
        mechanism: str = "auto",
        calibration: str = "sharp",
        budget_split: Mapping[str, float] | None = None,
        ax: Any = None,
    ) -> PrivacyUtilityDisplay:
        """Draw the error to be expected of a `DPFrechetMean`, before any record is looked at.

        Parameters
        ----------
        manifold : Manifold
            An instance: names leave the dimension open.
        radius : float
            Radius of the public ball.
        n_samples : int
            Number of records, or of groups.
        mu : array-like of shape (n_budgets,), default=30 budgets from 0.1 to 3
            Budgets of the whole fit.
        spread : float, default=None
            Guess of the root of the Fréchet variance, from outside the data. It adds the curves of
            the sampling error and of both errors together.
        mechanism, calibration, budget_split
            As for `DPFrechetMean`.
        ax : matplotlib Axes, default=None
            Axes to draw on. None makes a figure.

        Returns
        -------
        display : PrivacyUtilityDisplay

        Notes
        -----
        The noise is √dim σ, with the scale σ that a fit with a region reports, up to the per mille
        that a fit adds for rounding; it steps up where the audited split gives the region more. The
        sampling error is `spread`/√n. Together they are the expected effective radius in flat space
        and for concentrated records; curvature changes it by the factors of docs/theory.md.
        """
        if not isinstance(manifold, Manifold):
            raise TypeError(
                f"manifold must be a Manifold, whose dimension is known, got {manifold!r}."
            )
        if calibration not in CALIBRATIONS:
            names = ", ".join(repr(name) for name in CALIBRATIONS)
            raise ValueError(f"calibration must be one of {names}, got {calibration!r}.")
        n = check_positive_integer("n_samples", n_samples)
        radius = check_positive("radius", radius)
        budgets = np.asarray(mu, dtype=float)
        scales = _noise_scales(manifold, radius, n, budgets, mechanism, calibration, budget_split)
        noise = sqrt(manifold.dim) * scales
        curves: dict[str, ArrayLike] = {"noise": noise}
        if spread is not None:
            sampling = np.full(len(budgets), check_nonnegative("spread", spread) / sqrt(n))
            both = np.hypot(noise, sampling)
            curves = {"noise and sampling": both, "noise": noise, "sampling": sampling}
        return cls(budgets, curves, ball_radius=radius).plot(ax=ax)


def _size(estimator: Any) -> tuple[str, float, Any]:
    """Return the quantity, its released value, and the privacy report of a fit."""
    if isinstance(estimator, DPFrechetVariance):
        check_is_fitted(estimator)
        if not hasattr(estimator, "interval_"):
            raise AttributeError("interval_ requires a confidence_level at fit, got None.")
        low, high = estimator.interval_
        return "length of the interval", high - low, estimator.privacy_
    return "effective radius", region_of(estimator).effective_radius, estimator.privacy_


def _noise_scales(
    manifold: Manifold,
    radius: float,
    n: int,
    budgets: Array,
    mechanism: str,
    calibration: str,
    budget_split: Mapping[str, float] | None,
) -> Array:
    """Return the noise scale σ of the mean at each budget of the whole fit."""
    bound = (
        sensitivity.frechet_mean_paper if calibration == "paper" else sensitivity.frechet_mean
    )(manifold, radius, n)
    name = resolve_mechanism(mechanism, manifold, exact_noise("auto", calibration, 1.0))
    foot: Any = manifold.origin  # spheres have none, and their mechanisms ask for none
    scales = []
    for mu in budgets.tolist():
        share = mean_shares(mu, n, calibration, budget_split, region=True)["mean"]
        guarantee = GDP(part(check_positive("mu", mu), share))
        scales.append(calibrate(name, manifold, foot, bound, guarantee).sigma)
    return np.array(scales)
