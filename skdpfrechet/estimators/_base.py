"""What both estimators share: parameters, tags, the prelude of `fit`, names of outputs."""

from __future__ import annotations

from math import inf
from numbers import Integral, Real

from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from skdpfrechet import _kernels, sensitivity
from skdpfrechet._numerics import Array
from skdpfrechet._validation import check_open_unit
from skdpfrechet.estimators._plan import BallProblem
from skdpfrechet.estimators._records import admit, look
from skdpfrechet.manifolds import Manifold
from skdpfrechet.manifolds._resolve import point_ndim
from skdpfrechet.privacy import GDP, PrivacyReport, Release, Unit
from skdpfrechet.privacy._units import RECORD

CALIBRATIONS = ("sharp", "paper")
INVALID = ("raise", "replace")
CLIPPING_NOTE = "the estimand is that of the law of the records projected to the ball"


class _DPEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Base of the private estimators."""

    manifold: str | Manifold

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        matrices = _safe_point_ndim(self.manifold) == 2
        tags.input_tags.two_d_array = not matrices
        tags.input_tags.three_d_array = matrices
        exact = isinstance(self.mu, Real) and self.mu == inf
        tags.non_deterministic = self.random_state is None and not exact
        return tags

    def _get_fitted_attr_html(self, doc_link=""):
        """Show the privacy report whole below scikit-learn's table (1.9 and later).

        Lazy attributes stay out of the table, which reads them all: a notebook that displays the
        estimator would wait for its region, a minute at dimension 2,080.
        """
        stored = BaseEstimator()
        vars(stored).update({name: v for name, v in vars(self).items() if name != "privacy_"})
        table = stored._get_fitted_attr_html(doc_link)
        table.estimator_class = type(self)
        rendered = table._repr_html_inner()
        table._repr_html_inner = lambda: rendered + self.privacy_._repr_html_()
        return table

    def _repr_html_inner(self):
        return self._with_report(super()._repr_html_inner())

    def _repr_mimebundle_(self, **kwargs):
        bundle = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] = self._with_report(bundle["text/html"])
        return bundle

    def _with_report(self, html):
        """Return scikit-learn's diagram with the report, where it has no table to put it below."""
        if hasattr(BaseEstimator, "_get_fitted_attr_html") or not hasattr(self, "privacy_"):
            return html
        return html + self.privacy_._repr_html_()

    def __sklearn_is_fitted__(self) -> bool:
        """After a failed fit the number of features remains, which does not make it fitted."""
        return hasattr(self, "privacy_")

    def _forget(self) -> None:
        """Drop what an earlier fit left: after a failed fit nothing may pass for its result."""
        for name in list(vars(self)):
            fitted = name.endswith("_") and not name.startswith("_")
            if fitted or name in ("_inference", "_n_features_out"):
                delattr(self, name)

    def _check_choices(self) -> float | None:
        """Validate the parameters that need no data; return the confidence level."""
        if not isinstance(self.calibration, str) or self.calibration not in CALIBRATIONS:
            names = ", ".join(repr(name) for name in CALIBRATIONS)
            raise ValueError(f"calibration must be one of {names}, got {self.calibration!r}.")
        if not isinstance(self.invalid, str) or self.invalid not in INVALID:
            names = " or ".join(repr(name) for name in INVALID)
            raise ValueError(f"invalid must be {names}, got {self.invalid!r}.")
        if self.confidence_level is None:
            return None
        return check_open_unit("confidence_level", self.confidence_level)

    def _read_for_transform(self, X) -> Array:
        """Return records on the fitted manifold."""
        check_is_fitted(self)
        points, epsilon = look(self, X, reset=False).numbers()
        return admit(self.manifold_, points, epsilon).points


def fit_threads(n_jobs):
    """Return a context in which passes over the records use threads, in scikit-learn's sense."""
    if n_jobs is not None and (not isinstance(n_jobs, Integral) or n_jobs == 0):
        raise ValueError(f"n_jobs must be None or an integer other than 0, got {n_jobs!r}.")
    return _kernels.threads(effective_n_jobs(n_jobs))


def fit_notes(problem: BallProblem, mechanism: str) -> tuple[str, ...]:
    """Return what a reader of the report must know beyond the numbers, from public numbers only."""
    notes = list(problem.notes)
    cap = sensitivity.float_log_cap(problem.local.model, problem.radius, problem.n)
    if problem.radius > cap:
        notes.append(
            f"eigenvalues were moved to within a factor exp(±{cap:.3g}) of the centre, all that "
            "float64 can follow; if the records are not there, rescale X or give a center"
        )
    if mechanism == "riemannian-gaussian-exact":
        notes.append(
            "the exact budget rests on numerical evidence, not on a proof, that the loss is worst "
            "at epsilon = 0 and at the largest distance"
        )
    return tuple(notes)


def make_report(
    mu: float,
    releases: list[Release],
    void_reason: str | None,
    notes: tuple[str, ...] = (),
    unit: Unit = RECORD,
    reused: GDP | None = None,
    reused_float_safe: bool = False,
) -> PrivacyReport:
    """Return the privacy report of one fit."""
    return PrivacyReport(
        guarantee=GDP(mu),
        releases=tuple(releases),
        unit=unit,
        notes=(*notes, CLIPPING_NOTE),
        void_reason=None if mu == inf else void_reason,
        reused=reused,
        reused_float_safe=reused is not None and reused_float_safe,
    )


def _safe_point_ndim(manifold: object) -> int:
    """Tags are read before parameters are validated, so a bad one counts as vectors here."""
    try:
        return point_ndim(manifold)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return 1
