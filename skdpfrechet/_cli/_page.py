"""The page of a release: one file without scripts or outside resources, for screens and paper."""

from __future__ import annotations

from html import escape
from math import ceil, erf, sqrt
from string import Template

import numpy as np

from skdpfrechet._cli._picture import LARGEST_RANGES, draw, entry_ranges, shade
from skdpfrechet._cli._released import SHOWN_DELTA, Released
from skdpfrechet._numerics import Array
from skdpfrechet.privacy import Unit
from skdpfrechet.privacy._report import noise_kind, round_up
from skdpfrechet.privacy._units import partition_of

SPACES = {
    "SPDAffineInvariant": "positive definite matrices, affine-invariant distance",
    "SPDLogEuclidean": "positive definite matrices, log-Euclidean distance",
    "SPDLogCholesky": "positive definite matrices, log-Cholesky distance",
    "Sphere": "directions, vectors of length 1; the distance is the angle in radians",
    "Euclidean": "vectors, Euclidean distance",
    "Hyperbolic": "points of hyperbolic space on the hyperboloid",
}

PAGE = Template("""\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Private mean of $n $units</title>
<style>
body { font: 1.0625rem/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff;
  max-width: 44rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: .5rem 0; }
h2 { font-size: 1.2rem; margin: 2rem 0 .5rem; }
figure { margin: 1rem 0; }
svg { display: block; width: 100%; max-width: 34rem; height: auto;
  font: 13px system-ui, sans-serif; }
figure svg + svg { margin-top: 1rem; }
figcaption, .note { font-size: .9rem; color: #444; margin: .5rem 0; }
.whole { white-space: nowrap; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; }
th, td { border: 1px solid #b8b8b8; padding: .3rem .5rem; text-align: right;
  font-variant-numeric: tabular-nums;
  print-color-adjust: exact; -webkit-print-color-adjust: exact; }
th { font-weight: 600; background: #f3f3f3; }
th.words, td.words { text-align: left; }
td small { display: block; font-size: .8rem; color: #333; }
dt { font-weight: 600; }
dd { margin: 0 0 .5rem; overflow-wrap: anywhere; }
@media print {
  body { max-width: none; padding: 0; font-size: 10.5pt; }
  svg { max-width: 11cm; }
  svg, tr, li, dd { break-inside: avoid; }
  h2, .note { break-after: avoid; }
}
</style>
</head>
<body>
<main>
<h1>Private mean of $n $units</h1>
<p>Released on $date with noise that protects every single $unit. This page and the file with the
same name that ends in .json may be published; the records behind them may not.</p>
$caveats

<h2>The mean</h2>
$estimate
$figure
$spread
<h2>What it means</h2>
<ul>
<li><strong>How sure is it?</strong> With $level% confidence the mean of the population lies in the
confidence region. The region counts two errors: that only $n $units were collected, and the noise
that was added for privacy.</li>
<li><strong>The mean of what?</strong> Of records within a distance of $radius from the center under
Details. Records farther away were moved to that distance first; how many were moved is not
revealed.</li>
<li><strong>How private is it?</strong> Say somebody knows all $units_in_general but one, and has
two equally likely guesses about that one. Without this release the better guess is right in 50 of
100 cases. With it, nobody can be right in more than $right of 100.</li>
<li><strong>It adds up.</strong> Each further release from the same records costs more privacy.
Costs add up as squares: two releases with mu = 1 cost mu = 1.41 together.</li>
<li><strong>What is not protected?</strong> That there are $n $units, and what was chosen
without looking at them, such as the space and mu.</li>
</ul>

<h2>What the privacy was spent on</h2>
<p>In technical terms: Gaussian differential privacy ($guarantee), which implies
<span class="whole">($epsilon, $delta)-differential</span> privacy, against the replacement of one
$unit.</p>
<div class="scroll" role="region" aria-label="Privacy spent" tabindex="0">
<table>
<thead><tr><th class="words" scope="col">statistic</th><th scope="col">share of budget</th>
<th scope="col">mu</th><th scope="col">sensitivity</th><th scope="col">noise scale</th>
<th class="words" scope="col">mechanism</th><th class="words" scope="col">noise</th></tr></thead>
<tbody>
$rows
</tbody>
</table>
</div>

<h2>Details</h2>
<dl>
<dt>Space</dt><dd>$space</dd>
<dt>Center of the ball</dt><dd>$center</dd>
<dt>Radius of the ball</dt><dd>$radius</dd>
<dt>Lines of names in the file</dt><dd>$header</dd>
<dt>Notes</dt><dd>$notes</dd>
<dt>Made by</dt><dd>skdpfrechet $version</dd>
</dl>
</main>
</body>
</html>
""")


def make_page(released: Released) -> str:
    """Return the page of a release."""
    space = released.region.manifold
    unit, one, many = map(escape, _words(released.privacy.unit))
    low = high = None
    if released.mean.size <= LARGEST_RANGES:
        low, high = entry_ranges(released.region)
    picture, caption = draw(released, low, high)
    return PAGE.substitute(
        n=released.n,
        unit=unit,
        units=one if released.n == 1 else many,
        units_in_general=many,
        date=escape(released.date),
        estimate=_estimate(released.mean, low, high),
        figure=f"<figure>{picture}<figcaption>{escape(caption)}</figcaption></figure>"
        if picture
        else "",
        spread=_spread(released),
        level=f"{100 * released.region.confidence_level:.6g}",
        radius=f"{released.radius:.4g}",
        right=_right_guesses(released.mu),
        guarantee=escape(str(released.privacy.total)),
        epsilon=round_up(released.epsilon),
        delta=f"{SHOWN_DELTA:g}",
        rows="\n".join(_rows(released)),
        space=f"{SPACES[type(space).__name__]}; dimension {space.dim}",
        center=_point(released.center),
        caveats="\n".join(
            f"<p><strong>{escape(caveat)}</strong></p>" for caveat in released.privacy.caveats
        ),
        header="the file has none" if released.header_lines is None else released.header_lines,
        notes="<br>".join(escape(note) for note in released.privacy.notes),
        version=escape(released.version),
    )


def _words(unit: Unit) -> tuple[str, str, str]:
    """Return what is protected, and what is counted, one and many, whatever a partition is."""
    partition = partition_of(unit)
    if partition is None:
        return "record", "record", "records"
    which = "" if partition == "group" else f" (one for each {partition})"
    return f"{partition} with all its records", f"group{which}", f"groups{which}"


def _estimate(mean: Array, low: Array | None, high: Array | None) -> str:
    """Return a table of the mean, each number with its range in the region."""
    if low is None or high is None:
        return f"<p>Its {mean.size} numbers are in the .json file.</p>"
    largest = float(np.abs(mean).max()) or 1.0
    if mean.ndim == 1:
        legend = "Each number of the estimate, and its range in the confidence region"
        heads = ["", "estimate", "from", "to"]
        rows = [
            "".join(f"<td>{number:.4g}</td>" for number in row)
            for row in zip(mean, low, high, strict=True)
        ]
    else:
        legend = "The estimate and, in small print, the range of each number in the region"
        heads = ["", *(str(j + 1) for j in range(len(mean)))]
        rows = [
            "".join(
                f'<td style="background:{shade(mean[i, j] / largest)}">{mean[i, j]:.4g}'
                f"<small>{_range(low[i, j], high[i, j])}</small></td>"
                for j in range(len(mean))
            )
            for i in range(len(mean))
        ]
    head = "".join(f'<th scope="col">{name}</th>' if name else "<td></td>" for name in heads)
    body = [f'<tr><th scope="row">{i + 1}</th>{row}</tr>' for i, row in enumerate(rows)]
    return (
        f'<p class="note" id="legend">{legend} (approximately).</p>\n'
        '<div class="scroll" role="region" aria-label="The mean" tabindex="0">\n'
        f'<table aria-describedby="legend">\n<thead><tr>{head}</tr></thead>\n<tbody>\n'
        + "\n".join(body)
        + "\n</tbody>\n</table>\n</div>"
    )


def _spread(released: Released) -> str:
    if released.variance is None or released.interval is None:
        return ""
    level = f"{100 * released.region.confidence_level:.6g}"
    return (
        "<h2>The variance</h2>\n<p>The variance, the mean squared distance to the mean, is "
        f"<strong>{released.variance:.4g}</strong>; with {level}% confidence that of the "
        f"population lies from {_range(*released.interval)}.</p>\n"
    )


def _rows(released: Released) -> list[str]:
    """Return the rows of the privacy table."""
    mu = released.privacy.guarantee.mu
    return [
        f'<tr><th class="words" scope="row">{escape(row.statistic.replace("_", " "))}</th>'
        f"<td>{100 * (row.mu / mu) ** 2:.1f}%</td><td>{round_up(row.mu)}</td>"
        f"<td>{row.sensitivity:.4g}</td><td>{row.noise_scale:.4g}</td>"
        f'<td class="words">{escape(row.mechanism)}</td>'
        f'<td class="words">{noise_kind(row)}</td></tr>'
        for row in released.privacy.releases
    ]


def _right_guesses(mu: float) -> str:
    """Return in how many of 100 cases the best guess between two records is right, rounded up.

    Two normal laws whose means are μ standard deviations apart are told apart with probability
    Φ(μ/2), and no test of a μ-GDP release does better.
    """
    return str(min(ceil(50 * (1 + erf(mu / sqrt(8)))), 100))


def _range(low: float, high: float) -> str:
    return f"{low:.3g} to {high:.3g}"


def _point(point: Array) -> str:
    """Return a point in words, short if it has many numbers."""
    if point.ndim == 2 and (point == point[0, 0] * np.eye(len(point))).all():
        return f"{point[0, 0]:.4g} times the identity matrix"
    if point.size > LARGEST_RANGES:
        return f"a point of {point.size} numbers, in the .json file"
    rows = point if point.ndim == 2 else point[None]
    return "<br>".join(", ".join(f"{value:.4g}" for value in row) for row in rows)
