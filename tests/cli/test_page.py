"""The page: well-formed, self-contained, accessible, and without a record."""

from __future__ import annotations

import re
import shutil
import subprocess
from html.parser import HTMLParser
from math import inf

import numpy as np
import pytest
from scipy.stats import norm

from skdpfrechet import ConfidenceRegion
from skdpfrechet._cli._page import _right_guesses, make_page
from skdpfrechet._cli._picture import LARGEST_RANGES, _ticks, entry_ranges
from skdpfrechet._cli._released import Released
from skdpfrechet.manifolds import Euclidean, Hyperbolic, SPDAffineInvariant, SPDLogCholesky, Sphere
from skdpfrechet.privacy import GDP, PrivacyReport, Release
from tests.estimators.test_firewall import blind_mechanisms  # noqa: F401

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
VOID = {"meta", "br"}
SPACES = [
    Euclidean(1),
    Euclidean(30),
    Euclidean(200),
    Sphere(1),
    Sphere(2),
    Sphere(4),
    Hyperbolic(2),
    SPDAffineInvariant(1),
    SPDAffineInvariant(3),
    SPDAffineInvariant(8),
    SPDLogCholesky(14),
]


def released(space, critical_value=6.0, scale=0.1, foot=False, notes=('<b> & "quotes"',), away=0.3):
    rng = np.random.default_rng(5)
    origin = np.eye(space.dim + 1)[-1] if isinstance(space, Sphere) else space.origin
    mean = space.exp_coords(origin, away * rng.normal(size=space.dim) / np.sqrt(space.dim))
    root = scale * rng.normal(size=(space.dim, space.dim + 2)) / np.sqrt(space.dim)
    region = ConfidenceRegion(
        space, mean, root @ root.T, critical_value, 0.95, origin if foot else None
    )
    rows = (
        Release("mean", 0.8, 0.1, 0.125, "gaussian"),
        Release("variance", 0.6, 1, 2, "gaussian"),
    )
    return Released(
        date="2026-01-31",
        version="1.0",
        n=50,
        center=origin,
        radius=1.0,
        region=region,
        privacy=PrivacyReport(GDP(1.0), rows, notes=notes),
    )


class Walk(HTMLParser):
    """Matches tags and collects text and attributes."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.text = [], [], []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        names = [name for name, _ in attributes]
        assert len(names) == len(set(names))
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)
        if self.open and self.open[-1] != "style":
            assert "<" not in data or "<b>" in data
            assert "$" not in data

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.mark.parametrize("foot", [False, True])
@pytest.mark.parametrize("space", SPACES, ids=repr)
def test_the_page_is_whole_and_needs_nothing_else(space, foot):
    page = make_page(released(space, foot=foot))
    walk = Walk(page)
    assert page.isascii()
    assert "nan" not in page.lower()
    assert not re.search(r"https?:|//|url\(|@import|javascript", page)
    assert {tag for tag, _ in walk.tags} <= {
        "html", "head", "meta", "title", "style", "body", "main", "h1", "h2", "p", "div", "table",
        "thead", "tbody", "tr", "th", "td", "small", "figure", "figcaption", "svg", "path",
        "circle", "rect", "text", "ul", "li", "strong", "span", "dl", "dt", "dd", "br",
    }  # fmt: skip
    assert not any(name in ("src", "href", "srcset") or name.startswith("on")
                   for _, attributes in walk.tags for name in attributes)  # fmt: skip
    assert '<b> & "quotes"' in "".join(walk.text)


@pytest.mark.parametrize("space", SPACES, ids=repr)
def test_the_page_speaks_to_screen_readers(space):
    walk = Walk(make_page(released(space)))
    assert walk.all("html") == [{"lang": "en"}]
    assert len(walk.all("title")) == len(walk.all("h1")) == len(walk.all("main")) == 1
    assert all(svg["role"] == "img" and svg["aria-label"] for svg in walk.all("svg"))
    assert all("scope" in th for th in walk.all("th"))
    ids = [attributes["id"] for _, attributes in walk.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {table.get("aria-describedby", "legend") for table in walk.all("table")} == {"legend"}


def test_pictures_are_there_where_they_should():
    count = {repr(space): make_page(released(space)).count("<svg") for space in SPACES}
    assert count.pop("Sphere(dim=2)") == 2
    assert count.pop("Euclidean(dim=200)") == 0  # too many numbers for one
    assert set(count.values()) == {1}


@pytest.mark.parametrize("space", SPACES, ids=repr)
def test_a_region_without_bounds_still_makes_a_page(space):
    page = make_page(released(space, critical_value=inf))
    Walk(page)
    few = released(space).mean.size <= LARGEST_RANGES
    assert ("-inf to inf" in page or "<td>-inf</td><td>inf</td>" in page) == few


def test_ranges_hold_the_region_and_are_attained():
    for space in SPACES:
        if space.dim > 60:
            continue
        for foot in (False, True):
            region = released(space, foot=foot).region
            low, high = entry_ranges(region)
            inside = region.boundary(2000)
            width = (high - low).max()
            assert (inside.min(axis=0) >= low - 0.02 * width).all()
            assert (inside.max(axis=0) <= high + 0.02 * width).all()
            assert (low <= region.center).all()
            assert (high >= region.center).all()


@pytest.mark.parametrize("foot", [False, True])
@pytest.mark.parametrize("space", [s for s in SPACES if s.dim < 60], ids=repr)
def test_ranges_of_a_small_region_are_those_to_first_order(space, foot):
    """Half-widths sqrt(c gᵀΓg), with the covariance that the region itself has at its centre."""
    region = released(space, scale=1e-5, foot=foot, away=1.5).region
    low, high = entry_ranges(region)
    frame = space.from_coords(region.center, np.eye(space.dim)).reshape(space.dim, -1)
    spread = np.einsum("ik,ij,jk->k", frame, region.covariance_at_center, frame)
    half = np.sqrt(region.critical_value * spread).reshape(low.shape)
    np.testing.assert_allclose(high - region.center, half, rtol=1e-3, atol=1e-9)
    np.testing.assert_allclose(region.center - low, half, rtol=1e-3, atol=1e-9)


def test_ranges_in_a_flat_space_are_exact():
    region = released(Euclidean(7)).region
    low, high = entry_ranges(region)
    half = np.sqrt(region.critical_value * np.diag(region.covariance))
    np.testing.assert_allclose(low, region.center - half, rtol=1e-12)
    np.testing.assert_allclose(high, region.center + half, rtol=1e-12)


def test_guesses_are_those_of_the_gaussian_trade_off():
    for mu in (0.01, 0.5, 1.0, 3.0, 20.0):
        right = 100 * norm.cdf(mu / 2)
        assert right <= int(_right_guesses(mu)) < right + 1
    assert _right_guesses(1.0) == "70"


@pytest.mark.parametrize(
    ("low", "high"), [(0, 1), (-3e-9, 7e-8), (5, 5), (0, 0), (-1e9, 2), (99, 101)]
)
def test_ticks_are_few_and_enclose(low, high):
    ticks = _ticks(low, high)
    assert ticks[0] <= low
    assert ticks[-1] >= high
    assert 2 <= len(ticks) <= 10
    assert (np.diff(ticks) > 0).all()


@pytest.mark.usefixtures("blind_mechanisms")
@pytest.mark.parametrize("manifold", ["spd", "sphere"])
def test_records_reach_neither_file_but_through_mechanisms(
    tmp_path, release, spd, directions, pole, manifold
):
    """With every release a constant, two data sets give the same two files."""
    place = ["--center", pole] if manifold == "sphere" else []
    written = []
    for records in (spd, spd[::-1] * 1.5) if manifold == "spd" else (directions, directions**3):
        if manifold == "sphere":
            records = records / np.linalg.norm(records, axis=1, keepdims=True)
        np.save(tmp_path / "x.npy", records)
        written.append(
            release(tmp_path / "x.npy", "--manifold", manifold, "--radius", "0.7", *place,
                    "--variance", "--force")
        )  # fmt: skip
    assert written[0] == written[1]


def test_no_record_is_quoted(tmp_path, release, spd):
    np.save(tmp_path / "x.npy", spd)
    document, page = release(tmp_path / "x.npy", "--manifold", "spd", "--radius", "2")
    for value in spd.ravel():
        assert repr(float(value))[:9] not in page
        assert repr(float(value))[:9] not in repr(document)


@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
@pytest.mark.parametrize("width", [390, 1200])
@pytest.mark.parametrize("space", [Sphere(2), SPDAffineInvariant(8)], ids=repr)
def test_the_page_fits_the_screen(tmp_path, space, width):
    """Measured in a browser: nothing but tables that scroll is wider than the screen."""
    probe = (
        "<script>document.title = [document.documentElement.scrollWidth, window.innerWidth, "
        "...[...document.querySelectorAll('svg, p, li, h1')].map(e => "
        "Math.ceil(e.getBoundingClientRect().right))].join(' ')</script></body>"
    )
    page = tmp_path / "page.html"
    page.write_text(make_page(released(space)).replace("</body>", probe), encoding="utf-8")
    shown = subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--window-size={width},900",
         f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", page.as_uri()],
        capture_output=True, text=True, timeout=120, check=True,
    ).stdout  # fmt: skip
    title = re.search("<title>([0-9 ]+)</title>", shown)
    assert title is not None
    whole, window, *edges = map(int, title[1].split())
    assert whole <= window
    assert len(edges) > 8
    assert max(edges) <= window
