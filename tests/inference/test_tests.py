"""Tests of hypotheses: their exact laws, closed forms in flat space, and what they refuse."""

import dataclasses

import numpy as np
import pytest
from scipy.stats import chi2, f_oneway, norm, ttest_ind

from skdpfrechet import (
    ConfidenceRegion,
    DPFrechetMean,
    DPFrechetVariance,
    TestResult,
    frechet_anova,
    one_sample_test,
    two_sample_test,
    variance_ratio_interval,
    variance_test,
)
from skdpfrechet.inference import MeanRelease, VarianceRelease
from skdpfrechet.manifolds import Euclidean, Hyperbolic, SPDAffineInvariant, SPDLogEuclidean, Sphere
from skdpfrechet.privacy import GDP

SPACES = [Euclidean(3), Sphere(2), Sphere(4), Hyperbolic(2), SPDAffineInvariant(2)]
HADAMARD = [space for space in SPACES if not isinstance(space, Sphere)]


def pole(space):
    return np.eye(space.dim + 1)[0] if isinstance(space, Sphere) else space.origin


def make_region(space, seed, foot=None, scale=0.2, stretch=1.3):
    rng = np.random.default_rng([space.dim, seed])
    center = space.exp_coords(pole(space), 0.4 * rng.standard_normal(space.dim))
    factor = rng.standard_normal((space.dim, space.dim + 2))
    covariance = scale**2 * factor @ factor.T / space.dim
    critical = stretch * float(chi2.ppf(0.95, space.dim))
    return ConfidenceRegion(space, center, covariance, critical, 0.95, foot)


def exact(space, point):
    """A region of a mean that is known: it is the point."""
    dim = space.dim
    return ConfidenceRegion(space, point, np.zeros((dim, dim)), chi2.ppf(0.95, dim), 0.95)


def trio(space, charted=False):
    foot = pole(space) if charted else None
    return [make_region(space, seed, foot, scale=0.1 * (seed + 1)) for seed in range(3)]


TRIOS = [pytest.param(trio(s), id=str(s)) for s in SPACES]
TRIOS += [pytest.param(trio(s, charted=True), id=f"{s}-foot") for s in HADAMARD]
TRIOS += [pytest.param([*trio(s, charted=True)[:2], trio(s)[2]], id=f"{s}-mixed") for s in HADAMARD]


# --- results ---------------------------------------------------------------------------------


def test_result_unpacks_as_scipy_results_do():
    result = TestResult(4.0, 0.1, 2)
    statistic, pvalue = result
    assert (statistic, pvalue, result.df) == (4.0, 0.1, 2)
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.pvalue = 0.0


@pytest.mark.parametrize("regions", TRIOS)
def test_pvalue_is_the_chi_squared_tail(regions):
    point = regions[1].center
    for result in (one_sample_test(regions[0], point), frechet_anova(*regions)):
        assert result.pvalue == pytest.approx(chi2.sf(result.statistic, result.df))
    assert frechet_anova(*regions).df == 2 * regions[0].manifold.dim


# --- one sample ------------------------------------------------------------------------------


@pytest.mark.parametrize("regions", TRIOS)
def test_one_sample_rejects_exactly_outside_the_region(regions):
    for region in regions:
        edge = region.manifold.log_coords(region.center, region.boundary(20))
        for factor in (0.2, 0.999, 1.001, 3.0):
            for point in region.manifold.exp_coords(region.center, factor * edge):
                rejected = one_sample_test(region, point).pvalue < 1 - region.confidence_level
                assert rejected != region.contains(point)
        assert one_sample_test(region, region.center).pvalue == pytest.approx(1)


def test_one_sample_takes_a_fit_and_one_point():
    X = np.random.default_rng(0).normal(size=(100, 2))
    fit = DPFrechetMean(radius=3.0, random_state=0).fit(X)
    assert one_sample_test(fit, [0.1, 0.2]) == one_sample_test(fit.confidence_region_, [0.1, 0.2])
    for point in ([[0.1, 0.2]], [0.1], 0.1):
        with pytest.raises(ValueError, match=r"point must have shape \(2,\)"):
            one_sample_test(fit, point)
    with pytest.raises(TypeError, match="fitted DPFrechetMean, got list"):
        one_sample_test([0.0, 0.0], [0.1, 0.2])


def test_a_region_that_is_the_whole_space_rejects_nothing():
    whole = ConfidenceRegion(Euclidean(2), np.zeros(2), np.zeros((2, 2)), np.inf, 0.95)
    other = make_region(Euclidean(2), 0)
    assert one_sample_test(whole, [5.0, 5.0]) == TestResult(0.0, 1.0, 2)
    assert two_sample_test(whole, other) == TestResult(0.0, 1.0, 2)
    third = make_region(Euclidean(2), 1)
    both = frechet_anova(whole, other, third)
    assert both.statistic == pytest.approx(two_sample_test(other, third).statistic)
    assert both.df == 4


# --- several samples -------------------------------------------------------------------------


@pytest.mark.parametrize("regions", TRIOS)
def test_order_does_not_matter(regions):
    a, b, c = regions
    assert two_sample_test(a, b).statistic == pytest.approx(
        two_sample_test(b, a).statistic, rel=1e-9
    )
    statistics = [frechet_anova(*order).statistic for order in ((a, b, c), (c, a, b), (b, a, c))]
    np.testing.assert_allclose(statistics, statistics[0], rtol=1e-9)


@pytest.mark.parametrize("regions", TRIOS)
def test_two_groups_are_the_two_sample_test(regions):
    assert frechet_anova(*regions[:2]) == two_sample_test(*regions[:2])


@pytest.mark.parametrize("regions", TRIOS)
def test_an_exact_second_mean_gives_the_one_sample_test(regions):
    """Both charts are the region's own, up to parallel transport along the geodesic."""
    space = regions[0].manifold
    for region in regions:
        point = space.exp_coords(pole(space), 0.1 * np.ones(space.dim))
        expected = one_sample_test(region, point)
        assert two_sample_test(region, exact(space, point)).statistic == pytest.approx(
            expected.statistic, rel=1e-8
        )


def test_flat_two_sample_statistic_in_closed_form():
    a, b = (make_region(Euclidean(3), seed, stretch=1.0) for seed in (0, 1))
    d = a.center - b.center
    expected = d @ np.linalg.solve(a.covariance + b.covariance, d)
    assert two_sample_test(a, b).statistic == pytest.approx(expected)


def test_flat_anova_in_closed_form():
    """Weighted sum of squares about the precision-weighted average."""
    regions = [make_region(Euclidean(2), seed, scale=0.1 + seed, stretch=1.0) for seed in range(4)]
    precisions = [np.linalg.inv(region.covariance) for region in regions]
    weighted = sum(p @ region.center for p, region in zip(precisions, regions, strict=True))
    average = np.linalg.solve(sum(precisions), weighted)
    errors = [region.center - average for region in regions]
    expected = sum(e @ p @ e for e, p in zip(errors, precisions, strict=True))
    assert frechet_anova(*regions).statistic == pytest.approx(expected)


def test_factors_multiply_the_covariances():
    a, b = (make_region(Sphere(2), seed, stretch=2.0) for seed in (0, 1))
    plain = [
        dataclasses.replace(r, covariance=2 * r.covariance, critical_value=r.critical_value / 2)
        for r in (a, b)
    ]
    assert two_sample_test(a, b).statistic == pytest.approx(two_sample_test(*plain).statistic)


def test_no_privacy_in_large_samples_gives_the_textbook_statistics():
    """Hotelling's T² without pooling; in dimension 1 the square of Welch's t and nearly F."""
    rng = np.random.default_rng(3)
    samples = [rng.normal(size=(n, 1)) for n in (4000, 5000, 6000)]
    fits = [DPFrechetMean(radius=50.0, mu=np.inf).fit(X) for X in samples]
    (a, b, _), sizes = samples, [len(X) for X in samples]
    t = (a.mean() - b.mean()) / np.sqrt(a.var() / sizes[0] + b.var() / sizes[1])
    # The uncentred second moment exceeds the variance by the squared mean, here by 1e-4 at most.
    assert two_sample_test(*fits[:2]).statistic == pytest.approx(t**2, rel=1e-3)
    anova = f_oneway(*(X[:, 0] for X in samples))
    result = frechet_anova(*fits)
    # One variance for all against one each: they differ by 2% here.
    assert result.statistic == pytest.approx(2 * anova.statistic, rel=0.05)
    assert result.pvalue == pytest.approx(anova.pvalue, abs=0.02)


@pytest.mark.parametrize("charted", [False, True])
def test_congruence_of_spd_matrices_changes_nothing(charted):
    """X → A X Aᵀ is an isometry; it maps frames to frames up to a rotation, found from them."""
    space, rng = SPDAffineInvariant(2), np.random.default_rng(5)
    a = rng.normal(size=(2, 2))

    def move(point):
        return a @ point @ a.T

    moved = []
    for region in trio(space, charted):
        start = region.center if region.foot is None else region.foot
        carried = np.stack([move(v) for v in space.frame(start)])
        rotation = space.coords(move(start)[None], carried).T
        moved.append(
            dataclasses.replace(
                region,
                center=move(region.center),
                covariance=rotation @ region.covariance @ rotation.T,
                foot=None if region.foot is None else move(region.foot),
            )
        )
    for count in (2, 3):
        assert frechet_anova(*moved[:count]).statistic == pytest.approx(
            frechet_anova(*trio(space, charted)[:count]).statistic, rel=1e-8
        )


def test_rotation_of_a_sphere_changes_nothing():
    space = Sphere(2)
    rotation = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    moved = []
    for region in trio(space):
        turn = space.coords(rotation @ region.center, space.frame(region.center) @ rotation.T).T
        moved.append(
            dataclasses.replace(
                region,
                center=rotation @ region.center,
                covariance=turn @ region.covariance @ turn.T,
            )
        )
    for count in (2, 3):
        assert frechet_anova(*moved[:count]).statistic == pytest.approx(
            frechet_anova(*trio(space)[:count]).statistic, rel=1e-9
        )


def test_different_feet_are_close_to_one_foot_nearby():
    """Charts at points 1e-4 apart differ by as much."""
    space = SPDAffineInvariant(2)
    a, b, c = trio(space, charted=True)
    near = space.exp_coords(pole(space), np.array([1e-4, 0.0, 0.0]))
    moved = frechet_anova(a, dataclasses.replace(b, foot=near), c).statistic
    assert moved == pytest.approx(frechet_anova(a, b, c).statistic, rel=1e-2)


@pytest.mark.parametrize("space", [Sphere(2), SPDAffineInvariant(2)], ids=str)
def test_budgets_may_differ_by_any_factor(space):
    """A mean that is next to nothing but noise drops out of the comparison."""
    a, b, c = trio(space)
    noisy = dataclasses.replace(c, covariance=1e18 * np.eye(space.dim))
    expected = two_sample_test(a, b).statistic
    for order in ((a, b, noisy), (noisy, a, b)):
        result = frechet_anova(*order)
        assert result.statistic == pytest.approx(expected, rel=0.02)
        assert result.df == 2 * space.dim


def test_exact_and_equal_means_do_not_differ():
    a, b = exact(Euclidean(2), np.zeros(2)), make_region(Euclidean(2), 0)
    point = dataclasses.replace(b, center=np.zeros(2))
    assert two_sample_test(a, point).pvalue == 1
    other = exact(Euclidean(2), np.array([1.0, 0.0]))
    assert two_sample_test(a, other).pvalue == 0


# --- refusals --------------------------------------------------------------------------------


def fit_means(seeds, mu=1.0):
    rng = np.random.default_rng(0)
    return [
        DPFrechetMean(radius=3.0, mu=mu, random_state=seed).fit(rng.normal(size=(50, 2)))
        for seed in seeds
    ]


def test_one_release_twice_is_refused():
    (fit,) = fit_means([1])
    region = fit.confidence_region_
    copy = ConfidenceRegion.from_dict(region.to_dict())
    for pair in ((fit, fit), (fit, region), (region, copy)):
        with pytest.raises(ValueError, match="the same release twice"):
            two_sample_test(*pair)
    a, b = fit_means([2, 3])
    with pytest.raises(ValueError, match="the same release twice"):
        frechet_anova(a, b, a)


def test_shared_noise_is_refused():
    with pytest.raises(ValueError, match="random_state=7"):
        two_sample_test(*fit_means([7, 7]))
    assert two_sample_test(*fit_means([7, 8])).df == 2
    assert two_sample_test(*fit_means([None, None])).df == 2
    assert two_sample_test(*fit_means([7, 7], mu=np.inf)).df == 2  # no noise to share


def test_different_manifolds_are_refused():
    a, b = make_region(SPDAffineInvariant(2), 0), make_region(SPDLogEuclidean(2), 0)
    with pytest.raises(ValueError, match="same manifold, got SPDAffineInvariant"):
        two_sample_test(a, b)


def test_too_few_and_wrong_things_are_refused():
    region = make_region(Euclidean(2), 0)
    with pytest.raises(ValueError, match="at least two fits, got 1"):
        frechet_anova(region)
    with pytest.raises(TypeError, match="got ndarray"):
        two_sample_test(region, np.zeros(2))
    with pytest.raises(AttributeError, match="confidence_level"):
        two_sample_test(region, DPFrechetMean(radius=1.0, confidence_level=None).fit(np.eye(3, 2)))


# --- variances -------------------------------------------------------------------------------


def release(center, error, seed=0, manifold=None, **more):
    space = manifold or Euclidean(2)
    point = space.exp_coords(pole(space), np.full(space.dim, 0.01 * seed))
    mean = MeanRelease(space, point, pole(space), 0.1, "wrapped-gaussian", GDP(1.0))
    return VarianceRelease(max(center, 0.0), center, error, 9.0, 100, mean, GDP(1.0), **more)


def test_variance_test_is_the_test_of_a_difference():
    a, b = release(2.0, 0.3), release(1.0, 0.4, seed=1)
    result = variance_test(a, b)
    assert result.statistic == pytest.approx(2.0)
    assert result.pvalue == pytest.approx(2 * norm.sf(2.0))
    assert result.df == np.inf
    assert variance_test(b, a) == TestResult(-result.statistic, result.pvalue, np.inf)


def test_variance_test_of_few_records_is_welchs():
    """Against scipy, on the squared distances from a mean that is known."""
    rng = np.random.default_rng(0)
    samples = [rng.normal(5.0, 1.0, size=n) for n in (12, 30)]
    releases = [
        release(x.mean(), x.std(ddof=1) / np.sqrt(len(x)), seed=i, freedom=len(x) - 1)
        for i, x in enumerate(samples)
    ]
    expected = ttest_ind(*samples, equal_var=False)
    result = variance_test(*releases)
    assert tuple(result) == pytest.approx(tuple(expected))
    assert result.df == pytest.approx(expected.df)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.99])
def test_ratio_interval_contains_one_exactly_where_the_test_does_not_reject(level):
    rng = np.random.default_rng(0)
    for x, y, s, t in rng.uniform([-1, -1, 0, 0], [4, 4, 2, 2], size=(500, 4)):
        a, b = release(x, s, freedom=5), release(y, t, seed=1, freedom=50)
        low, high = variance_ratio_interval(a, b, level)
        assert 0 <= low <= high
        assert (low <= 1 <= high) == (variance_test(a, b).pvalue >= 1 - level)


def test_ratio_interval_is_the_fieller_set():
    """Against the inequality itself on a grid of ratios."""
    rng = np.random.default_rng(1)
    ratios = np.geomspace(1e-3, 1e3, 2001)
    z = norm.ppf(0.975)
    for x, y, s, t in rng.uniform([0, 0, 0, 0], [4, 4, 2, 2], size=(200, 4)):
        low, high = variance_ratio_interval(release(x, s), release(y, t, seed=1))
        inside = (x - ratios * y) ** 2 <= z**2 * (s**2 + ratios**2 * t**2)
        np.testing.assert_array_equal(inside, (low <= ratios) & (ratios <= high))


def test_ratio_interval_of_the_inverse_ratio():
    a, b = release(3.0, 0.2), release(2.0, 0.3, seed=1)
    low, high = variance_ratio_interval(a, b)
    assert variance_ratio_interval(b, a) == pytest.approx((1 / high, 1 / low))


def test_ratio_interval_at_the_edges():
    exactly = variance_ratio_interval(release(3.0, 0.0), release(2.0, 0.0, seed=1))
    assert exactly == pytest.approx((1.5, 1.5))
    assert variance_ratio_interval(release(3.0, 0.1), release(0.0, 0.0, seed=1)) == (np.inf,) * 2
    assert variance_ratio_interval(release(0.0, 0.0), release(0.0, 0.0, 1)) == (0.0, np.inf)
    assert variance_ratio_interval(release(1.0, 0.1), release(1.0, np.inf, 1)) == (0.0, np.inf)
    low, high = variance_ratio_interval(release(3.0, 0.1), release(-1.0, 1.0, seed=1))
    assert low > 1
    assert high == np.inf
    assert variance_test(release(1.0, 0.1), release(2.0, np.inf, 1)).pvalue == 1
    assert variance_test(release(1.0, 0.0), release(2.0, 0.0, 1)).pvalue == 0
    with pytest.raises(ValueError, match="confidence_level"):
        variance_ratio_interval(release(1.0, 0.1), release(1.0, 0.1, 1), 1.0)


def fit_variances(seeds, **more):
    rng = np.random.default_rng(0)
    return [
        DPFrechetVariance(radius=3.0, random_state=seed, **more).fit(rng.normal(size=(50, 2)))
        for seed in seeds
    ]


@pytest.mark.parametrize("calibration", ["sharp", "paper"])
@pytest.mark.parametrize("mu", [0.5, np.inf])
def test_release_of_a_fit_says_what_the_fit_says(calibration, mu):
    a, b = fit_variances([1, 2], calibration=calibration, mu=mu)
    assert a.release_.value == a.variance_
    assert a.release_.interval(0.95) == a.interval_
    low, high = a.release_.interval(0.5)
    assert a.interval_.low <= low <= high <= a.interval_.high
    assert a.release_.n == a.n_samples_ == 50
    assert a.release_.guarantee == GDP(mu)
    assert "random_state" in a.release_.void_reason
    assert variance_test(a, b) == variance_test(a.release_, b.release_)


def test_no_standard_error_without_a_level():
    a, b = fit_variances([1, 2], confidence_level=None)
    assert a.release_.standard_error is None
    with pytest.raises(ValueError, match="confidence_level at fit"):
        a.release_.interval(0.95)
    for function in (variance_test, variance_ratio_interval):
        with pytest.raises(ValueError, match="with a confidence_level, got None"):
            function(a, b)


def test_one_exact_record_has_no_error():
    X = np.array([[0.5, 0.5]])
    a = DPFrechetVariance(radius=3.0, mu=np.inf).fit(X)
    assert a.interval_ == pytest.approx((0.0, (3.0 + np.sqrt(0.5)) ** 2))
    assert variance_test(a, release(3.0, 0.1)).pvalue == 1
    assert variance_ratio_interval(a, release(3.0, 0.1)) == (0.0, np.inf)


def test_variances_that_share_records_or_noise_are_refused():
    a, b = fit_variances([1, 2])
    assert variance_test(a, b).df > 50
    for other in (a, a.release_, dataclasses.replace(a.release_)):
        with pytest.raises(ValueError, match="the same release twice"):
            variance_test(a, other)
    with pytest.raises(ValueError, match="random_state=5"):
        variance_ratio_interval(*fit_variances([5, 5]))
    X = np.random.default_rng(0).normal(size=(50, 2))
    mean = DPFrechetMean(radius=3.0, random_state=0).fit(X).release_
    with pytest.raises(ValueError, match="the same records"):
        variance_test(*fit_variances([1, 2], mean=mean))
    first, second = fit_variances([1, 2], mean=mean)
    copy = dataclasses.replace(second.release_, mean=dataclasses.replace(mean))
    with pytest.raises(ValueError, match="the same records"):
        variance_test(first, copy)


def test_variances_elsewhere_are_refused():
    with pytest.raises(ValueError, match="same manifold"):
        variance_test(release(1.0, 0.1), release(2.0, 0.1, manifold=Euclidean(3)))
    for wrong in (3.0, DPFrechetVariance(radius=1.0), fit_means([1])[0]):
        with pytest.raises(TypeError, match="fitted DPFrechetVariance, got"):
            variance_test(release(1.0, 0.1), wrong)
