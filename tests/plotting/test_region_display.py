"""What `ConfidenceRegionDisplay` draws, on which axes, and what it refuses."""

import json
import subprocess
import sys
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from skdpfrechet import DPFrechetMean, DPFrechetVariance
from skdpfrechet.inference import ConfidenceRegion
from skdpfrechet.manifolds import Euclidean, Hyperbolic, SPDAffineInvariant, SPDLogEuclidean, Sphere
from skdpfrechet.plotting import ConfidenceRegionDisplay
from skdpfrechet.plotting._pictures import PICTURES

NORTH = np.array([0.0, 0.0, 1.0])


def on_sphere(center=NORTH, scale=0.1):
    center = np.asarray(center) / np.linalg.norm(center)
    return ConfidenceRegion(Sphere(2), center, scale**2 * np.diag([1, 0.3]), 5.99, 0.95)


def of_matrices(size=2, scale=0.1, foot=True):
    space = SPDAffineInvariant(size)
    center = space.exp_coords(np.eye(size), np.linspace(-0.5, 1, space.dim))
    covariance = scale**2 * np.diag(np.linspace(1, 2, space.dim))
    return ConfidenceRegion(space, center, covariance, 9.0, 0.9, np.eye(size) if foot else None)


CASES = {
    "lambert": on_sphere([1, 2, 2]),
    "sphere": on_sphere([1, 2, 2]),
    "cone": of_matrices(2),
    "ellipses": of_matrices(3),
    "tangent": of_matrices(4),
}


def test_every_kind_is_tested():
    assert set(CASES) == set(PICTURES)


@pytest.mark.parametrize("kind", CASES)
def test_draws_on_new_axes_and_on_given_ones(kind):
    region = CASES[kind]
    display = ConfidenceRegionDisplay([region])
    assert not hasattr(display, "ax_")
    assert display.plot(kind=kind) is display
    assert display.figure_ is display.ax_.figure
    assert len(plt.get_fignums()) == 1
    assert len(display.centers_) == len(display.boundaries_) == 1

    projection = {"projection": "3d"} if PICTURES[kind].solid else {}
    ax = plt.figure().add_subplot(1, 2, 2, **projection)
    second = ConfidenceRegionDisplay.from_region(region, kind=kind, ax=ax)
    assert second.ax_ is ax
    assert second.figure_ is ax.figure
    assert len(plt.get_fignums()) == 2
    for artist in second.centers_ + second.boundaries_:
        assert artist.axes is ax
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        f"{100 * region.confidence_level:g} % region"
    ]
    second.figure_.canvas.draw()  # warnings are errors


@pytest.mark.parametrize("kind", CASES)
def test_regions_to_compare_differ_in_more_than_colour(kind):
    region = CASES[kind]
    display = ConfidenceRegionDisplay.from_region([region, region], kind=kind, labels=["a", "b"])
    first, second = display.centers_
    assert first.get_color() != second.get_color()
    assert first.get_linestyle() != second.get_linestyle()
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["a", "b"]


def test_lambert_draws_the_boundary():
    region = on_sphere([1, 2, 2], scale=0.4)
    view = np.array([2.0, 1.0, 2.0]) / 3
    display = ConfidenceRegionDisplay.from_region(region, view=view, n_points=50)
    flat = np.column_stack(display.boundaries_[0].get_data())
    np.testing.assert_array_equal(flat[0], flat[-1])
    # The inverse of the projection: |flat| = 2 sin(t/2), right is z × view, up is view × right.
    radius = np.linalg.norm(flat, axis=1)
    angle = 2 * np.arcsin(radius / 2)
    east = np.cross(NORTH, view) / np.linalg.norm(np.cross(NORTH, view))
    tangent = flat @ np.array([east, np.cross(view, east)])
    points = np.cos(angle)[:, None] * view + (np.sin(angle) / radius)[:, None] * tangent
    np.testing.assert_allclose(region.statistic(points), region.critical_value, rtol=1e-7)
    assert display.ax_.get_aspect() == 1.0
    assert len(display.ax_.patches) == 1  # filled


def test_sphere_draws_the_boundary():
    region = on_sphere([1, 2, 2], scale=0.4)
    display = ConfidenceRegionDisplay.from_region(region, kind="sphere")
    points = np.column_stack(display.boundaries_[0].get_data_3d())
    np.testing.assert_allclose(region.statistic(points), region.critical_value, rtol=1e-7)
    np.testing.assert_allclose(np.ravel(display.centers_[0].get_data_3d()), region.center)


def test_ellipses_are_those_of_the_mean_and_of_the_boundary():
    region = of_matrices(3)
    display = ConfidenceRegionDisplay.from_region(region, n_points=30, coordinates=(2, 0))
    segments = display.boundaries_[0].get_segments()
    assert len(segments) == 30
    values, vectors = np.linalg.eigh(region.center)
    axes = vectors[:, [0, 2]]
    for outline, matrix in zip(segments, region.boundary(30), strict=True):
        assert region.statistic(matrix) == pytest.approx(region.critical_value)
        # Signs of axes are a convention: both ellipses must have the same half widths.
        block = axes.T @ matrix @ axes
        np.testing.assert_allclose(np.abs(outline).max(axis=0) ** 2, np.diag(block), rtol=5e-3)
    mean = np.column_stack(display.centers_[0].get_data())
    np.testing.assert_allclose(np.abs(mean).max(axis=0) ** 2, values[[0, 2]], rtol=1e-3)


def test_cone_marks_the_mean_and_shows_the_whole_region():
    region = of_matrices(2)
    display = ConfidenceRegionDisplay.from_region(region)
    (a, b), (_, c) = region.center
    place = np.ravel(display.centers_[0].get_data_3d())
    np.testing.assert_allclose(place, [(a - c) / 2, b, (a + c) / 2])
    edge = region.boundary(200)
    assert np.trace(edge, axis1=1, axis2=2).max() / 2 < display.ax_.get_zlim()[1]


@pytest.mark.parametrize(
    ("region", "kind"),
    [
        (on_sphere(), "lambert"),
        (of_matrices(2), "cone"),
        (of_matrices(3), "ellipses"),
        (of_matrices(4), "tangent"),
        (ConfidenceRegion(Hyperbolic(2), np.eye(3)[0], np.eye(2), 6.0, 0.95), "tangent"),
        (ConfidenceRegion(SPDLogEuclidean(2), np.eye(2), np.eye(3), 6.0, 0.95), "cone"),
    ],
)
def test_automatic_kind(region, kind):
    chosen = ConfidenceRegionDisplay.from_region(region)
    meant = ConfidenceRegionDisplay.from_region(region, kind=kind)
    assert chosen.ax_.name == meant.ax_.name
    assert type(chosen.boundaries_[0]) is type(meant.boundaries_[0])
    assert chosen.ax_.get_xlabel() == meant.ax_.get_xlabel()


def test_a_region_that_holds_the_antipode_is_not_filled():
    far = on_sphere([-1, 0, 0.1], scale=0.5)
    for region, filled in ((far, 0), (on_sphere([1, 0, 0.1]), 1)):
        display = ConfidenceRegionDisplay.from_region(region, view=[1, 0, 0])
        assert len(display.ax_.patches) == filled
    # Around its own centre it does not hold the antipode.
    assert len(ConfidenceRegionDisplay.from_region(far).ax_.patches) == 1


@pytest.mark.parametrize("kind", ["lambert", "sphere"])
def test_a_region_around_the_sphere_is_drawn_with_a_broken_line(kind):
    wide = ConfidenceRegion(Sphere(2), NORTH, np.diag([4.0, 0.1]), 6.0, 0.95)
    display = ConfidenceRegionDisplay.from_region(wide, kind=kind)
    display.figure_.canvas.draw()
    line = display.boundaries_[0]
    x = np.asarray((line.get_data_3d if kind == "sphere" else line.get_data)()[0])
    assert 0 < np.isnan(x).sum() < len(x)


@pytest.mark.parametrize("kind", CASES)
def test_a_region_of_one_point_is_drawn(kind):
    """Equal records without privacy leave no uncertainty."""
    region = CASES[kind]
    point = replace(region, covariance=np.zeros_like(region.covariance))
    ConfidenceRegionDisplay.from_region(point, kind=kind).figure_.canvas.draw()


def records(n=80):
    X = np.random.default_rng(0).normal(scale=0.3, size=(n, 3)) + NORTH
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def fitted(**parameters):
    return DPFrechetMean("sphere", radius=1.0, center=NORTH, **parameters).fit(records())


def test_from_estimator_draws_its_region():
    mean = fitted(mu=2.0)
    display = ConfidenceRegionDisplay.from_estimator(mean)
    assert display.regions == [mean.confidence_region_]
    assert display.labels == ["95 % region, μ = 2"]


def test_from_estimator_says_what_is_not_private():
    fits = [fitted(mu=np.inf), fitted(mu=1.5, random_state=0, confidence_level=0.9)]
    display = ConfidenceRegionDisplay.from_estimator(fits)
    assert display.labels == ["95 % region, NOT private", "90 % region, μ = 1.5, void"]


def test_the_picture_needs_the_released_region_alone():
    """A region that went through JSON, without its estimator, draws the same picture."""
    mean = fitted()
    text = json.dumps(mean.confidence_region_.to_dict())
    displays = (
        ConfidenceRegionDisplay.from_estimator(mean),
        ConfidenceRegionDisplay.from_region(ConfidenceRegion.from_dict(json.loads(text))),
    )
    first, second = (display.boundaries_[0].get_xydata() for display in displays)
    np.testing.assert_array_equal(first, second)


def test_an_unfitted_estimator_is_refused():
    with pytest.raises(NotFittedError):
        ConfidenceRegionDisplay.from_estimator(DPFrechetMean("sphere", radius=1.0, center=NORTH))


def test_an_estimator_without_a_region_is_refused():
    with pytest.raises(TypeError, match=r"estimator must have a confidence_region_.*Variance"):
        ConfidenceRegionDisplay.from_estimator(DPFrechetVariance(radius=1.0))
    with pytest.raises(AttributeError, match="requires a confidence_level"):
        ConfidenceRegionDisplay.from_estimator(fitted(confidence_level=None))


UNBOUNDED = ConfidenceRegion(Euclidean(2), np.zeros(2), np.eye(2), np.inf, 0.95)
LINE = ConfidenceRegion(Euclidean(1), np.zeros(1), np.eye(1), 4.0, 0.95)


@pytest.mark.parametrize(
    ("regions", "arguments", "message"),
    [
        (of_matrices(2), {"kind": "lambert"}, r"must lie on the sphere S² .*SPDAffineInvariant"),
        (on_sphere(), {"kind": "cone"}, r"must lie on SPD matrices of 2 rows .*Sphere"),
        (of_matrices(3), {"kind": "cone"}, r"SPD matrices of 2 rows for kind='cone'"),
        (on_sphere(), {"kind": "ellipses"}, "SPD matrices of 2 rows or more"),
        (LINE, {}, "dimension 2 or more for kind='tangent'"),
        (on_sphere(), {"kind": "pie"}, "kind must be one of 'auto', 'lambert'.*'pie'"),
        (on_sphere(), {"view": [1, 1, 0]}, r"view must be a point of Sphere\(dim=2\)"),
        (on_sphere(), {"labels": ["a", "b"]}, "labels must have one entry for each of the 1"),
        (of_matrices(2), {"kind": "tangent", "coordinates": (0, 3)}, "from 0 to 2, got"),
        (of_matrices(3), {"kind": "ellipses", "coordinates": (1, 3)}, "from 0 to 2, got"),
        (of_matrices(2), {"kind": "tangent", "coordinates": (1, 1)}, "two different integers"),
        (on_sphere(), {"n_points": 0}, "n_points must be at least 1"),
        ([], {}, "at least one region"),
        ([on_sphere(), of_matrices(2)], {}, "must lie on one manifold"),
        (UNBOUNDED, {}, "regions must be bounded"),
    ],
)
def test_what_cannot_be_drawn_is_refused_before_a_figure_is_opened(regions, arguments, message):
    with pytest.raises(ValueError, match=message):
        ConfidenceRegionDisplay.from_region(regions, **arguments)
    assert plt.get_fignums() == []


@pytest.mark.parametrize(("kind", "projection"), [("cone", "rectilinear"), ("tangent", "3d")])
def test_axes_of_another_projection_are_refused(kind, projection):
    ax = plt.figure().add_subplot(projection=projection)
    with pytest.raises(ValueError, match="ax must have the projection"):
        ConfidenceRegionDisplay.from_region(of_matrices(2), kind=kind, ax=ax)


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install 'skdpfrechet\[plot\]'"):
        ConfidenceRegionDisplay.from_region(on_sphere())


def test_matplotlib_is_imported_by_drawing_only():
    code = (
        "import sys, skdpfrechet, skdpfrechet.plotting\n"
        "assert not any(name.split('.')[0] == 'matplotlib' for name in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
