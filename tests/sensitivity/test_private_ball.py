"""What the queries of a private ball can change by, attacked on neighbouring data sets."""

from math import inf, sqrt

import numpy as np
import pytest

from skdpfrechet import sensitivity
from skdpfrechet._numerics import clip_norm
from skdpfrechet.estimators._private_ball import find_ball, plan_ball
from skdpfrechet.manifolds import Euclidean, Hyperbolic, SPDAffineInvariant, Sphere
from skdpfrechet.mechanisms import Gaussian

SPACES = [Euclidean(3), SPDAffineInvariant(2), SPDAffineInvariant(3), Hyperbolic(2), Sphere(2)]
RADIUS, OUTER = 0.8, 3.0


@pytest.mark.parametrize("n", [1, 2, 10])
@pytest.mark.parametrize("manifold", SPACES, ids=repr)
def test_tangent_mean_at_any_base_point(adversary, check, manifold, n):
    base = adversary.points(manifold, np.linspace(0.7, -0.4, manifold.dim))

    def objective(c):
        points = adversary.points(manifold, c)
        logs = clip_norm(manifold.log_coords(base, points), RADIUS)
        return np.linalg.norm(logs[:, :-1].mean(axis=1) - logs[:, 1:].mean(axis=1), axis=-1)

    found = adversary.maximise(objective, n + 1, manifold.dim, OUTER)
    check(found, sensitivity.tangent_mean(RADIUS, n), sharp=True)
    with pytest.raises(AssertionError):  # the search would find a constant that is too small
        check(found, 0.9 * sensitivity.tangent_mean(RADIUS, n))


def test_running_sum_of_the_tangent_mean_rounds_less_than_stated():
    n, rng = 200_000, np.random.default_rng(0)
    v = np.float64(clip_norm(rng.standard_normal((n, 1)), 1.0))
    exact = float(np.longdouble(v).sum() / n)
    rounding = sensitivity.computed_tangent_mean(1.0, n) - 2 / n
    assert abs(v.mean() - exact) <= rounding / 2


def test_histogram_of_distances():
    edges = np.geomspace(0.1, 3.0, 12)
    rng = np.random.default_rng(1)
    distances = rng.uniform(0, 4, (2000, 5))
    bins = np.minimum(np.searchsorted(edges, distances), len(edges) - 1)
    counts = (bins[..., None] == np.arange(len(edges))).sum(axis=1)
    replaced = bins.copy()
    replaced[:, 0] = rng.integers(len(edges), size=len(bins))
    others = (replaced[..., None] == np.arange(len(edges))).sum(axis=1)
    gap = np.linalg.norm(counts - others, axis=1)
    assert gap.max() == pytest.approx(sensitivity.distance_histogram())
    # Noise on cumulative counts would need more: this is why it is put on disjoint bins.
    cumulative = np.linalg.norm(np.cumsum(counts - others, axis=1), axis=1)
    assert cumulative.max() > 2 * sensitivity.distance_histogram()


def test_extrinsic_mean(adversary, check):
    def objective(c):
        points = adversary.points(Sphere(3), c)
        return np.linalg.norm(points[:, :-1].mean(axis=1) - points[:, 1:].mean(axis=1), axis=-1)

    found = adversary.maximise(objective, 8, 3, 3.2)
    check(found, sensitivity.extrinsic_mean(7), sharp=True)


# --- the queries as the code asks them ----------------------------------------------------------


class Script:
    """Stands in for `Gaussian.release`: records what it is given, answers as scripted.

    With the answers of an earlier run, neighbouring data sets are asked the same questions, which
    is what the sensitivity of an adaptive query speaks of.
    """

    def __init__(self, answers=None):
        self.answers, self.values = answers, []

    def __call__(self, mechanism, center, rng):
        self.values.append(np.array(center))
        if self.answers is None:
            return center + mechanism.sigma * rng.standard_normal(np.shape(center))
        return self.answers[len(self.values) - 1]


def ask(monkeypatch, manifold, points, answers, seed=0):
    """Return the exact values of all queries, the answers given and the rows of the report."""
    script = Script(answers)
    monkeypatch.setattr(Gaussian, "release", lambda *args: script(*args))
    given = []
    if answers is None:
        monkeypatch.setattr(
            Gaussian, "release", lambda *args: given.append(script(*args)) or given[-1]
        )
    origin = np.eye(manifold.dim + 1)[-1] if isinstance(manifold, Sphere) else manifold.origin
    limit = sensitivity.radius_limit(manifold)
    plan = plan_ball(manifold, 400, 2.0, OUTER, center=True, radius=None)
    assert len(plan.steps) >= 2
    ball = find_ball(
        manifold,
        points,
        origin,
        plan,
        mu=2.0,
        outer_radius=OUTER,
        radius=None,
        quantile=None,
        limit=limit,
        rng=np.random.default_rng(seed),
    )
    return script.values, given, ball


WILD = ("far", "antipode", "nan", "inf", "huge")


def wild(manifold, kind):
    """A record that no validation let through, or that lies at the far end of the space."""
    if kind == "far":
        origin = np.eye(manifold.dim + 1)[-1] if isinstance(manifold, Sphere) else manifold.origin
        return manifold.exp_coords(origin, np.full(manifold.dim, OUTER / sqrt(manifold.dim)))
    if kind == "antipode":
        c = np.zeros(manifold.dim)
        c[0] = -OUTER
        origin = np.eye(manifold.dim + 1)[-1] if isinstance(manifold, Sphere) else manifold.origin
        return manifold.exp_coords(origin, c)
    fill = {"nan": np.nan, "inf": inf, "huge": 1e300}[kind]
    return np.full(manifold.point_shape, fill)


@pytest.mark.parametrize("kind", WILD)
@pytest.mark.parametrize("manifold", SPACES, ids=repr)
def test_every_query_of_a_fit_changes_by_no_more_than_its_row_says(monkeypatch, manifold, kind):
    rng = np.random.default_rng(7)
    origin = np.eye(manifold.dim + 1)[-1] if isinstance(manifold, Sphere) else manifold.origin
    points = manifold.exp_coords(origin, 0.4 * rng.standard_normal((400, manifold.dim)) + 0.5)
    values, answers, ball = ask(monkeypatch, manifold, points, None)
    neighbour = points.copy()
    neighbour[3] = wild(manifold, kind)
    others, _, same = ask(monkeypatch, manifold, neighbour, answers)
    assert len(values) == len(others) == len(ball.releases)
    for one, other, row in zip(values, others, ball.releases, strict=True):
        assert np.isfinite(other).all()
        assert np.linalg.norm(one - other) <= row.sensitivity * (1 + 1e-12)
    # All that reaches the outside are the answers: equal answers, equal ball.
    assert np.array_equal(ball.center, same.center)
    assert ball.radius == same.radius
    assert ball.releases == same.releases
