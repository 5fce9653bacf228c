"""What a record adds to anything is a function of that record and of public numbers, bit for bit.

Every sensitivity of the library needs that. So everything a fit computes of single records, at a
base point that is fixed, is compared in all bits: with one record replaced by an extreme one, with
the records in another order, alone, in blocks, in threads and in other memory layouts.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skdpfrechet import _kernels
from skdpfrechet._kernels import _threads
from skdpfrechet._numerics import clip_norm
from skdpfrechet.estimators._ball import _localize, enter
from skdpfrechet.estimators._blocks import Reader
from skdpfrechet.estimators._records import Unread, admit
from skdpfrechet.manifolds import (
    Euclidean,
    Hyperbolic,
    SPDAffineInvariant,
    SPDLogCholesky,
    SPDLogEuclidean,
    Sphere,
)

N = 67  # a block of eight that is not full, and more than the 32 records that once chose a path
STEP = 2.0**-20  # of exact sums


def matrices(rng, n, p, spread):
    noise = rng.standard_normal((n, p, p))
    w, q = np.linalg.eigh((noise + noise.swapaxes(1, 2)) * spread / np.sqrt(2 * p + 2))
    return symmetric((q * np.exp(w)[:, None, :]) @ q.swapaxes(1, 2))


def symmetric(x):
    return (x + np.swapaxes(x, -1, -2)) / 2


class Case:
    """A space with a public ball and records of all kinds in and around it."""

    def __init__(self, space, center, radius, records, extremes):
        self.space, self.radius, self.records, self.extremes = space, radius, records, extremes
        self.center = center
        self.ball = _localize(space, center, radius, N, mu=np.inf)

    def bases(self):
        """Points of the model at which records are looked at: the centre, one in the ball, beyond.

        What is beyond the ball may be a released point; the last one makes far lanes.
        """
        model, origin = self.ball.local.model, self.ball.local.origin
        direction = np.ones(model.dim) / np.sqrt(model.dim)
        return [model.exp_coords(origin, s * self.radius * direction) for s in (0.0, 0.6, 1.0)]


def spd_case(space_class, p, kind, radius):
    rng = np.random.default_rng([p, ord(kind[0])])
    center = {
        "identity": np.eye(p),
        "scale": 3.0 * np.eye(p),
        "matrix": matrices(rng, 1, p, 1.5)[0],
        "bad": symmetric(np.diag(np.geomspace(1e-3, 1e3, p))),
    }[kind]
    root = np.linalg.cholesky(center)
    white = matrices(rng, N, p, 0.6 * radius)
    space = SPDAffineInvariant(p)
    lengths = space.dist(np.eye(p), white)
    rim = slice(5, 45)  # so near to the boundary that a crude bound does not decide
    share = 1 + 1e-3 * rng.standard_normal(40)
    white[rim] = space.exp_coords(
        np.eye(p),
        space.log_coords(np.eye(p), white[rim]) * (radius * share / lengths[rim])[:, None],
    )
    X = symmetric(root @ white @ root.T)
    spread = np.r_[5.0, -5.0, np.zeros(p - 2)] if p > 1 else np.array([5.0])
    eye = np.eye(p)
    extremes = {
        "wide": root @ np.diag(np.exp(spread)) @ root.T,
        "nearly singular": root @ (np.ones((p, p)) + 1e-11 * eye) @ root.T,
        "tiny": 1e-300 * eye,
        "huge": 1e300 * eye,
        "centre": center,
        "rim": np.exp(radius / np.sqrt(p)) * center,
        "zero": np.zeros((p, p)),
        "nan": np.full((p, p), np.nan),
        "infinite": np.inf * eye + 1,
        "negative": -center,
        "asymmetric": center + np.triu(np.ones((p, p)), 1),
        "almost symmetric": center * (1 + 1e-12 * np.triu(np.ones((p, p)), 1)),
    }
    if p > 1:
        extremes |= {"singular": np.ones((p, p)), "symmetric zero": symmetric(0.0 * center)}
    return Case(
        space_class(p),
        center,
        radius,
        X,
        {
            name: x if "almost" in name or name == "asymmetric" else symmetric(x)
            for name, x in extremes.items()
        },
    )


def sphere_case(d, radius):
    rng = np.random.default_rng([d, 7])
    space, center = Sphere(d), np.eye(d + 1)[0]
    c = rng.standard_normal((N, d))
    c /= np.linalg.norm(c, axis=1, keepdims=True)
    length = radius * rng.uniform(0, 1.4, (N, 1)) ** 0.5
    length[5:45] = radius * (1 + 1e-10 * rng.standard_normal((40, 1)))
    X = space.exp_coords(center, c * length)
    X[60] *= 1 + 3e-16  # a length that rounding explains, or that barely is not 1
    X[61] *= 1 - 1e-15
    base = space.exp_coords(center, 0.6 * radius * np.ones(d) / np.sqrt(d))
    extremes = {
        "antipode of the centre": -center,
        "antipode of the base": -base,
        "base": base,
        "centre": center,
        "rim": space.exp_coords(center, radius * np.eye(d)[0]),
        "behind": space.exp_coords(center, 3.1 * np.eye(d)[0]),
        "not quite a unit vector": center * (1 + 1e-6),
        "zero": 0 * center,
        "huge": 1e300 * center,
        "tiny": 1e-300 * center,
        "nan": np.full(d + 1, np.nan),
        "infinite": np.full(d + 1, np.inf),
    }
    return Case(space, center, radius, X, extremes)


def hyperbolic_case(d, radius):
    rng = np.random.default_rng([d, 3])
    space = Hyperbolic(d)
    center = space.exp_coords(space.origin, 0.5 * np.ones(d))
    X = space.exp_coords(center, rng.standard_normal((N, d)) * radius / np.sqrt(d))
    far = space.exp_coords(space.origin, 15 * np.eye(d)[0])
    extremes = {
        "far": far,
        "centre": center,
        "zero": 0 * far,
        "nan": np.full(d + 1, np.nan),
        "huge": np.r_[1e300, np.full(d, 1e300)],
        "infinite": np.full(d + 1, np.inf),
        "rim": space.exp_coords(center, radius * np.eye(d)[0]),
    }
    return Case(space, center, radius, X, extremes)


def euclidean_case(d):
    X = np.random.default_rng(d).standard_normal((N, d))
    extremes = {
        "huge": np.full(d, 1e300),
        "tiny": np.full(d, 1e-300),
        "nan": np.full(d, np.nan),
        "infinite": np.full(d, -np.inf),
        "centre": np.zeros(d),
        "negative zero": np.full(d, -0.0),
    }
    return Case(Euclidean(d), np.zeros(d), 1.0, X, extremes)


CASES = {
    **{
        f"spd {p} {kind}": (spd_case, SPDAffineInvariant, p, kind, r)
        for p in (1, 2, 3, 5, 8, 9, 17)
        for kind, r in (("identity", 1.5), ("scale", 4.0), ("matrix", 2.0), ("bad", 7.0))
    },
    **{
        f"{name} {p}": (spd_case, space, p, "matrix", 2.0)
        for name, space in (("log-Euclidean", SPDLogEuclidean), ("log-Cholesky", SPDLogCholesky))
        for p in (2, 5)
    },
    **{
        f"sphere {d} {r}": (sphere_case, d, r)
        for d in (1, 2, 4, 7, 15, 16, 20, 33)
        for r in (0.7, 1.5)
    },
    **{f"hyperbolic {d}": (hyperbolic_case, d, 2.0) for d in (1, 2, 7)},
    **{f"euclidean {d}": (euclidean_case, d) for d in (1, 3)},
}


def make_case(name):
    make, *arguments = CASES[name]
    with np.errstate(all="ignore"):
        return make(*arguments)


@pytest.fixture(params=CASES)
def case(request):
    return make_case(request.param)


@pytest.fixture(params=["numba", "numpy"])
def backend(request):
    if request.param == "numba" and not _kernels._numba_installed():
        pytest.skip("needs numba")
    with _kernels.kernels(request.param):
        yield request.param


def sample_of(case, X, codes=None):
    """Return records in the ball, on the way that a fit with ``invalid="replace"`` takes them."""

    def admit_some(some):
        return admit(case.space, some, 2.0**-52, case.center).points

    n = N if codes is None else int(codes.max()) + 1
    points, _ = Unread(X, typed=True).numbers(replace=True)
    return enter(case.ball, points, codes, n, admit_some).sample


def contributions(case, sample):
    """Return, by name, what each record adds: arrays whose first axis runs over the records."""
    model, radius = case.ball.local.model, case.radius
    found = {"model point": sample.points}
    with np.errstate(all="ignore"):
        for k, base in enumerate(case.bases()):
            reach = min(radius + float(model.dist(case.ball.local.origin, base)), 3.0)
            middle = -model.log_coords(case.ball.local.origin, base)
            tangent = clip_norm(model.log_coords(base, sample.points), reach)
            found |= {
                f"coordinates at {k}": sample.coordinates(base, np.zeros(model.dim), reach),
                f"coordinates around a middle at {k}": sample.coordinates(base, middle, radius),
                f"squared distance at {k}": sample.squared_distances(base),
                f"term of a tangent mean at {k}": tangent,
                f"distance of a histogram at {k}": model.dist(base, sample.points),
            }
    return found


def exact_moments(case, sample):
    """Return sums that are exact, so that whoever is in them adds the same term every time."""
    model = case.ball.local.model
    base = case.bases()[1]
    middle = -model.log_coords(case.ball.local.origin, base)
    total, _ = sample.exact_second_moment(base, middle, case.radius, STEP)
    origin, _ = sample.exact_second_moment(base, np.zeros(model.dim), case.radius, STEP)
    return np.stack([total, origin])


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for name in found:
        assert_array_equal(found[name], expected[name], err_msg=name)


def rows(found, which):
    return {name: value[which] for name, value in found.items()}


@pytest.mark.parametrize("where", [0, 11, N - 1])
def test_one_record_changes_nothing_that_others_add(case, backend, where):
    """Record 0 fills up blocks, the one at 11 shares its block with records near the rim."""
    others = np.arange(N) != where
    expected = rows(contributions(case, sample_of(case, case.records)), others)
    moments = exact_moments(case, sample_of(case, case.records[others]))
    for extreme in case.extremes.values():
        X = case.records.copy()
        X[where] = extreme
        sample = sample_of(case, X)
        assert_same(rows(contributions(case, sample), others), expected)
        own = exact_moments(case, sample_of(case, X[where : where + 1]))
        assert_array_equal(exact_moments(case, sample), moments + own)


def everything(case):
    """Return all records, the extreme ones among them."""
    return np.concatenate([case.records, np.stack(list(case.extremes.values()))])


def test_order_and_number_do_not_matter(case, backend):
    X = everything(case)
    found = contributions(case, sample_of(case, X))
    order = np.random.default_rng(1).permutation(len(X))
    assert_same(contributions(case, sample_of(case, X[order])), rows(found, order))
    for some in (slice(0, 1), slice(3, 8), slice(2, 43), slice(40, None), slice(len(X) - 2, None)):
        assert_same(contributions(case, sample_of(case, X[some])), rows(found, some))


def test_blocks_do_not_matter(case, backend):
    X = everything(case)
    found = contributions(case, sample_of(case, X))
    reader = Reader(case.space, case.ball, N, replace=True, typed=True)
    for cuts in ([0, len(X)], [0, 1, 9, 50, len(X)]):
        parts = [slice(*cut) for cut in pairwise(cuts)]
        for part in parts:
            assert_same(contributions(case, reader(X[part])), rows(found, part))


@pytest.mark.parametrize("jobs", [2, 3])
def test_threads_do_not_matter(case, backend, jobs, monkeypatch):
    X = np.concatenate([everything(case)] * 4)
    found = contributions(case, sample_of(case, X))
    monkeypatch.setattr(_threads, "_THREAD_SECONDS", 1e-9)
    monkeypatch.setattr(_threads, "_SEGMENT", 64)
    with _kernels.threads(jobs):
        assert_same(contributions(case, sample_of(case, X)), found)


def test_layouts_do_not_matter(case, backend):
    X = everything(case)
    found = contributions(case, sample_of(case, X))
    strided = np.repeat(X, 2, axis=0)[::2]
    for layout in (np.asfortranarray(X), strided, X.copy()):
        assert_same(contributions(case, sample_of(case, layout)), found)
    with np.errstate(over="ignore"):
        single = X.astype(np.float32)
    expected = contributions(case, sample_of(case, single.astype(float)))
    assert_same(contributions(case, sample_of(case, single)), expected)


def test_groups_do_not_touch_each_other(case, backend):
    """One group is replaced by another of another size, or of extreme records."""
    X, codes = case.records, np.arange(N) // 5
    expected = sample_of(case, X, codes).points
    mine, others = codes == 4, np.arange(len(expected)) != 4
    extremes = np.stack(list(case.extremes.values()))
    for group in (extremes, extremes[:1], X[:1], np.concatenate([X] * 3)):
        Y = np.concatenate([X[~mine], group])
        labels = np.concatenate([codes[~mine], np.full(len(group), 4)])
        assert_array_equal(sample_of(case, Y, labels).points[others], expected[others])


@pytest.mark.parametrize("n", [64, pytest.param(1_000_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["spd 2 matrix", "spd 3 scale", "sphere 2 1.5"])
def test_many_records_are_as_local_as_few(name, n):
    if not _kernels.compiled():
        pytest.skip("numpy is slow, and has no blocks of records")
    case = make_case(name)
    model, base = case.ball.local.model, case.bases()[1]
    X = np.resize(case.records, (n, *case.space.point_shape))

    def statistics(X):
        sample = sample_of(case, X)
        coordinates = sample.coordinates(base, np.zeros(model.dim), 3.0)
        return [sample.points, coordinates, sample.squared_distances(base)]

    expected = statistics(X)
    for extreme in ("wide", "nearly singular", "antipode of the base", "far", "nan"):
        if extreme in case.extremes:
            Y = X.copy()
            Y[n // 2] = case.extremes[extreme]
            for found, before in zip(statistics(Y), expected, strict=True):
                different = (found != before).reshape(n, -1).any(axis=1)
                assert_array_equal(np.flatnonzero(different), [n // 2])


@pytest.mark.parametrize("name", ["spd 2 scale", "spd 3 scale"])
def test_no_record_flips_on_the_grid_of_exact_sums(name):
    """A search for records whose rounded squared distance a nearly singular record could change.

    They are moved to within one rounding of a midpoint between multiples of the step, where any
    other arithmetic rounds some of them the other way. The search finds nothing: that is a pass.
    """
    case = make_case(name)
    model, base, step = case.ball.local.model, case.bases()[1], 2.0**-14
    rng = np.random.default_rng(5)
    root = np.linalg.cholesky(case.center)
    direction = rng.standard_normal((400, model.dim))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    length = case.radius * rng.uniform(0.9, 0.99, 400)

    def squares(length, extra=()):
        white = model.exp_coords(model.origin, direction * length[:, None])
        X = symmetric(root @ white @ root.T)
        sample = sample_of(case, np.concatenate([X, *extra]))
        return sample.squared_distances(base)[:400]

    for _ in range(8):  # Newton's method towards the nearest midpoint
        found, slope = squares(length), (squares(length + 1e-6) - squares(length - 1e-6)) / 2e-6
        length = length + ((np.floor(found / step) + 0.5) * step - found) / slope
    gap = np.abs(found / step - np.floor(found / step) - 0.5)
    assert np.median(gap) < 1e-8
    alone = np.rint(squares(length) / step)
    for extreme in ("nearly singular", "wide", "tiny", "nan"):
        assert_array_equal(np.rint(squares(length, [case.extremes[extreme][None]]) / step), alone)
