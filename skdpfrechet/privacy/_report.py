"""What a fit spent, release by release: the printable privacy statement of an estimator."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from html import escape
from typing import Any, overload

from numpy.typing import ArrayLike

from skdpfrechet._validation import check_nonnegative
from skdpfrechet.privacy._composition import compose
from skdpfrechet.privacy._gaussian_profile import FloatArray
from skdpfrechet.privacy._guarantees import GDP
from skdpfrechet.privacy._units import RECORD, Unit

_SHOWN_DELTA = 1e-5
_BUDGET_RTOL = 1e-9
FLOAT_NOISE = (
    "drawn and added in float64, whose last bits can tell more of a record than mu says; exact "
    "noise needs the extra 'secure', and noise='secure' makes sure of it."
)
_COLUMNS = ("statistic", "mu", "share of mu²", "sensitivity", "noise scale", "mechanism", "noise")


def round_up(value: float) -> str:
    """Four significant digits, never less than the value."""
    if math.isinf(value):
        return "inf"
    return f"{Context(prec=4, rounding=ROUND_CEILING).create_decimal(repr(value)):g}"


def noise_kind(release: Release) -> str:
    """Return in a word whether the noise of a release is exact on a computer."""
    if release.noise_scale == 0:
        return "none"
    return "exact" if release.float_safe else "float"


def _json_number(value: float) -> float | str:
    return "inf" if math.isinf(value) else value


def _html_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table whose cells are plain text."""
    lines = ["".join(f"<th>{escape(name)}</th>" for name in head)] if head else []
    lines += ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f'<table style="text-align: left; border-spacing: 1em 0">{body}</table>'


@dataclass(frozen=True)
class Release:
    """One noisy statistic: what it cost and how it was made. All fields are public numbers.

    Parameters
    ----------
    statistic : str
        What was released, such as "mean".
    mu : float
        The μ spent on it, in [0, ∞].
    sensitivity : float
        Largest change of the statistic between neighbours, in the norm of the mechanism.
    noise_scale : float
        Scale of the noise, in the units of the statistic.
    mechanism : str
        Name of the mechanism.
    float_safe : bool, default=False
        Whether the noise is exact on a computer: drawn on a public grid with the law of the
        theorem. Otherwise it was drawn and added in float64, whose last bits can tell more than
        `mu` says.

    Attributes
    ----------
    is_private : bool
        Whether `mu` is finite and holds for all digits of the statistic.

    Raises
    ------
    ValueError, TypeError
        If a number is negative or NaN, or is not a real number.

    Examples
    --------
    >>> from skdpfrechet.privacy import Release
    >>> Release("mean", mu=1.0, sensitivity=0.02, noise_scale=0.02, mechanism="wrapped-gaussian").mu
    1.0
    """

    statistic: str
    mu: float
    sensitivity: float
    noise_scale: float
    mechanism: str
    float_safe: bool = False

    def __post_init__(self) -> None:
        for name in ("mu", "sensitivity", "noise_scale"):
            value = check_nonnegative(name, getattr(self, name), allow_inf=True)
            object.__setattr__(self, name, value)

    @property
    def is_private(self) -> bool:
        """Whether `mu` is finite and holds for all digits of the statistic."""
        return math.isfinite(self.mu) and (self.float_safe or self.mu == 0)


@dataclass(frozen=True)
class PrivacyReport:
    """What one fit spent and what a record risks in total.

    Parameters
    ----------
    guarantee : GDP
        What this fit spent; the number that a ledger adds.
    releases : tuple of Release
        Its releases, whose μ² add up to that of `guarantee`.
    unit : Unit, default=Record()
        What a neighbour replaces.
    notes : tuple of str, default=()
        Sentences printed below the table.
    void_reason : str, optional
        Why the guarantee does not hold although noise was added, such as a fixed seed.
    reused : GDP, optional
        What an earlier fit spent on a release that this one builds on.
    reused_float_safe : bool, default=False
        Whether the noise of that release is exact on a computer.

    Attributes
    ----------
    neighbouring : str
        The neighbouring relation, that of `unit`, in words.
    total : GDP
        `guarantee` composed with `reused`; `delta`, `epsilon` and `rho` speak of it.
    is_private : bool
        Whether the guarantee is finite and holds for all digits of what was released: exactly
        where `caveats` is empty.
    caveats : tuple of str
        What is missing, one sentence each: a reason why the guarantee is void, an infinite μ, the
        statistics whose noise is not float-safe and what to do about it.

    Raises
    ------
    ValueError
        If the releases do not add up to `guarantee`.
    TypeError
        If `guarantee` or `reused` is not a GDP, or `unit` no unit.

    Notes
    -----
    With a `void_reason` the numbers describe the fit as it would have been without that fault.
    With float noise they hold in real numbers; what the last bits of a float tell beyond is outside
    the theorem (docs/security.md), so such a report never says that it is private without a caveat.

    Examples
    --------
    >>> from skdpfrechet.privacy import GDP, PrivacyReport, Release
    >>> rows = (
    ...     Release("mean", 0.8, 0.02, 0.025, "wrapped-gaussian", float_safe=True),
    ...     Release("second moment", 0.6, 0.03, 0.05, "gaussian", float_safe=True),
    ... )
    >>> report = PrivacyReport(GDP(1.0), rows, reused=GDP(0.75), reused_float_safe=True)
    >>> report.is_private, report.caveats
    (True, ())
    >>> report.total
    GDP(mu=1.25)
    >>> round(report.epsilon(1e-5), 4)
    5.6796
    """

    guarantee: GDP
    releases: tuple[Release, ...]
    unit: Unit = RECORD
    notes: tuple[str, ...] = ()
    void_reason: str | None = None
    reused: GDP | None = None
    reused_float_safe: bool = False

    def __post_init__(self) -> None:
        for name, value in (("guarantee", self.guarantee), ("reused", self.reused)):
            if not isinstance(value, GDP) and (name == "guarantee" or value is not None):
                raise TypeError(f"{name} must be a GDP, got {value!r}.")
        if not isinstance(self.unit, Unit):
            raise TypeError(f"unit must be a unit, such as Group('person'), got {self.unit!r}.")
        object.__setattr__(self, "releases", tuple(self.releases))
        object.__setattr__(self, "notes", tuple(self.notes))
        spent = math.hypot(*(release.mu for release in self.releases))
        if self.releases and not math.isclose(spent, self.guarantee.mu, rel_tol=_BUDGET_RTOL / 2):
            raise ValueError(
                f"the mu of the releases must compose to {self.guarantee.mu!r}, got {spent!r}."
            )

    @property
    def neighbouring(self) -> str:
        """The neighbouring relation in words."""
        return self.unit.neighbours

    @property
    def total(self) -> GDP:
        """`guarantee` composed with `reused`."""
        return self.guarantee if self.reused is None else compose(self.guarantee, self.reused)

    @property
    def is_private(self) -> bool:
        """Whether the guarantee is finite and holds for all digits of what was released."""
        return not self.caveats

    @property
    def caveats(self) -> tuple[str, ...]:
        """What is missing for `is_private`, one sentence each."""
        found = []
        if self.void_reason is not None:
            found.append(f"VOID, the guarantee below does not hold: {self.void_reason}")
        if math.isinf(self.total.mu):
            found.append("NOT PRIVATE: mu is infinite, so nothing is promised.")
        rounded = [
            row.statistic for row in self.releases if 0 < row.mu < math.inf and not row.float_safe
        ]
        if self.reused is not None and 0 < self.reused.mu < math.inf and not self.reused_float_safe:
            rounded.append("the reused release")
        if rounded:
            found.append(f"FLOAT NOISE in {', '.join(rounded)}: {FLOAT_NOISE}")
        return tuple(found)

    @property
    def rho(self) -> float:
        """ρ of the zero-concentrated differential privacy implied by `total`."""
        return self.total.rho

    @overload
    def delta(self, epsilon: float) -> float: ...
    @overload
    def delta(self, epsilon: ArrayLike) -> float | FloatArray: ...
    def delta(self, epsilon: ArrayLike) -> float | FloatArray:
        """Smallest δ of `total` at this ε; see `gdp_delta`."""
        return self.total.delta(epsilon)

    @overload
    def epsilon(self, delta: float) -> float: ...
    @overload
    def epsilon(self, delta: ArrayLike) -> float | FloatArray: ...
    def epsilon(self, delta: ArrayLike) -> float | FloatArray:
        """Smallest ε of `total` at this δ, rounded up; see `gdp_epsilon`."""
        return self.total.epsilon(delta)

    def to_dict(self) -> dict[str, Any]:
        """Return strings, booleans, None and finite numbers only; infinity is the string "inf"."""
        return {
            "mu": _json_number(self.guarantee.mu),
            "reused_mu": None if self.reused is None else _json_number(self.reused.mu),
            "total_mu": _json_number(self.total.mu),
            "rho": _json_number(self.rho),
            "reused_float_safe": None if self.reused is None else self.reused_float_safe,
            "is_private": self.is_private,
            "caveats": list(self.caveats),
            "void_reason": self.void_reason,
            "unit": self.unit.to_dict(),
            "neighbouring": self.neighbouring,
            "releases": [
                {
                    key: _json_number(value) if isinstance(value, float) else value
                    for key, value in vars(release).items()
                }
                | {"is_private": self.void_reason is None and release.is_private}
                for release in self.releases
            ],
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        lines = [*self.caveats, *(f"{name:<16}{value}" for name, value in self._facts())]
        if self.releases:
            rows = self._rows()
            widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
            lines += ["", *("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)]
        if self.notes:
            lines += ["", *(f"- {note}" for note in self.notes)]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return the same for notebooks."""
        parts = [f"<p><strong>{escape(alarm)}</strong></p>" for alarm in self.caveats]
        parts.append(_html_table([], self._facts()))
        if self.releases:
            head, *rows = self._rows()
            parts.append(_html_table(head, rows))
        if self.notes:
            items = "".join(f"<li>{escape(note)}</li>" for note in self.notes)
            parts.append(f"<ul>{items}</ul>")
        return f'<div style="padding: 0 1em">Privacy report{"".join(parts)}</div>'

    def _facts(self) -> list[tuple[str, ...]]:
        facts: list[tuple[str, ...]] = [("guarantee", str(self.guarantee))]
        if self.reused is not None:
            facts += [("reused release", str(self.reused)), ("total", str(self.total))]
        epsilon = round_up(self.epsilon(_SHOWN_DELTA))
        return [
            *facts,
            ("epsilon", f"{epsilon} at delta = {_SHOWN_DELTA:g}"),
            ("unit", str(self.unit)),
            ("neighbours", self.neighbouring),
        ]

    def _rows(self) -> list[tuple[str, ...]]:
        return [
            _COLUMNS,
            *(
                (
                    release.statistic,
                    f"{release.mu:.4g}",
                    self._share(release),
                    f"{release.sensitivity:.4g}",
                    f"{release.noise_scale:.4g}",
                    release.mechanism,
                    noise_kind(release),
                )
                for release in self.releases
            ),
        ]

    def _share(self, release: Release) -> str:
        if self.guarantee.mu == 0 or math.isinf(self.guarantee.mu):
            return "-"
        return f"{100 * (release.mu / self.guarantee.mu) ** 2:.1f} %"
