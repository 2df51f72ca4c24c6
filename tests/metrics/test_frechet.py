import numpy as np
import pytest
import scipy.linalg

from distill.core.errors import DistillError
from distill.metrics.frechet import (
    Gaussian,
    bootstrap,
    bootstrap_ratio,
    fit,
    frechet_distance,
    frechet_from_features,
    frechet_interval,
    gaussian,
    kid,
    kid_interval,
)

RNG = np.random.default_rng(0)


def features(n: int, d: int, seed: int, shift: float = 0.0) -> np.ndarray:
    """Correlated, skewed features, as a network's are."""
    rng = np.random.default_rng(seed)
    mix = np.random.default_rng(seed + 100).normal(size=(d, d)) / np.sqrt(d)
    return np.maximum(rng.normal(size=(n, d)) @ mix + shift, 0)


def covariance(d: int, seed: int) -> np.ndarray:
    x = np.random.default_rng(seed).normal(size=(3 * d, d))
    return x.T @ x / (3 * d)


def by_sqrtm(a: Gaussian, b: Gaussian) -> float:
    """The formula with SciPy's matrix root."""
    root = scipy.linalg.sqrtm(a.cov @ b.cov)
    gap = a.mean - b.mean
    return float(gap @ gap + np.trace(a.cov + b.cov - 2 * root.real))


def by_eigenvalues(a: Gaussian, b: Gaussian) -> float:
    """The formula with the eigenvalues of the plain product, which may be of any rank."""
    roots = np.sqrt(np.linalg.eigvals(a.cov @ b.cov).real.clip(0))
    gap = a.mean - b.mean
    return float(gap @ gap + np.trace(a.cov + b.cov) - 2 * roots.sum())


def test_two_gaussians_with_diagonal_covariances():
    """Σ (μ - μ')² + Σ (σ - σ')²: 1 + 4 + 9, and (2-1)² + (3-3)² + (5-1)²."""
    a = Gaussian(np.array([0.0, 0.0, 0.0]), np.diag([4.0, 9.0, 25.0]))
    b = Gaussian(np.array([1.0, -2.0, 3.0]), np.diag([1.0, 9.0, 1.0]))
    assert frechet_distance(a, b) == pytest.approx(14 + 17)
    assert frechet_distance(b, a) == pytest.approx(14 + 17)


@pytest.mark.parametrize(("n", "d"), [(50, 6), (6, 50)])
def test_a_set_is_at_no_distance_from_itself(n, d):
    x = features(n, d, 1)
    scale = np.trace(fit(x).cov)
    assert frechet_distance(fit(x), fit(x.copy())) == pytest.approx(0, abs=1e-5 * scale)
    assert frechet_from_features(x, x.copy()) == pytest.approx(0, abs=1e-9 * scale)


@pytest.mark.parametrize("d", [2, 16, 64])
def test_against_scipys_root(d):
    a = Gaussian(RNG.normal(size=d), covariance(d, 3))
    b = Gaussian(RNG.normal(size=d), covariance(d, 4))
    assert frechet_distance(a, b) == pytest.approx(by_sqrtm(a, b), rel=1e-8)


@pytest.mark.parametrize("ranks", [(2, 4), (4, 2), (2, 2), (0, 3)])
def test_covariances_without_full_rank(ranks):
    """Turned axes, the last of them flat: Cholesky's factor does not exist or is noise."""
    turn = np.linalg.qr(RNG.normal(size=(4, 4)))[0]
    s, t = (np.array([4.0, 3.0, 2.0, 1.0]) * (np.arange(4) < rank) for rank in ranks)
    a, b = (Gaussian(np.zeros(4), (turn * x**2) @ turn.T) for x in (s, 2 * t))
    assert frechet_distance(a, b) == pytest.approx(((s - 2 * t) ** 2).sum(), abs=1e-5)


def test_both_forms_agree_where_they_meet():
    """One picture more or fewer than the rank needs changes the form, not the distance."""
    a, b = features(40, 20, 30), features(20, 20, 31, shift=0.3)
    both = [frechet_from_features(a, b), by_sqrtm(fit(a), fit(b))]
    assert both[0] == pytest.approx(both[1], rel=1e-6)
    a, b = a[:19], b[:19]
    by_root = by_eigenvalues(fit(a), fit(b))
    assert frechet_from_features(a, b) == pytest.approx(by_root, rel=1e-5)


@pytest.mark.parametrize("shape", [(30, 6), (6, 30)])
def test_counting_a_picture_twice_is_having_it_twice(shape):
    a, b = features(*shape, 32), features(*shape, 33, shift=0.4)
    times_a, times_b = np.arange(len(a)) % 3 + 1, np.arange(len(b)) % 2 + 1
    repeated = frechet_from_features(np.repeat(a, times_a, 0), np.repeat(b, times_b, 0))
    assert frechet_from_features(a, b, times_a, times_b) == pytest.approx(repeated, rel=1e-9)


@pytest.mark.parametrize("shape", [(40, 6), (12, 30)])
def test_an_interval_is_that_of_the_resamples_themselves(shape):
    """Every resample written out with its repeated pictures, by the plain formula."""
    a, b = features(*shape, 34), features(*shape, 35, shift=0.4)
    rng, found = np.random.default_rng(3), []
    for _ in range(25):
        x, y = (side[rng.integers(len(side), size=len(side))] for side in (a, b))
        found.append(by_eigenvalues(fit(x), fit(y)))
    middle = by_eigenvalues(fit(a), fit(b)) - np.median(found)
    expected = np.quantile(found, [0.05, 0.95]) + middle
    got = frechet_interval(a, b, rounds=25, level=0.9, seed=3)
    assert got == pytest.approx(expected, rel=1e-4)


def test_fit_is_mean_and_unbiased_covariance():
    x = features(7, 3, 5)
    mean = sum(x) / 7
    cov = sum(np.outer(row - mean, row - mean) for row in x) / 6
    np.testing.assert_allclose(fit(x).mean, mean)
    np.testing.assert_allclose(fit(x).cov, cov)


@pytest.mark.parametrize(
    ("n", "m", "d"), [(60, 40, 8), (10, 14, 64), (10, 100, 32), (2, 2, 5), (9, 12, 1)]
)
def test_from_features_is_fit_and_distance(n, m, d):
    a, b = features(n, d, 6), features(m, d, 7, shift=0.3)
    slow = frechet_distance(fit(a), fit(b))
    # Rounding in the many zero eigenvalues of a low-rank covariance costs some digits.
    assert frechet_from_features(a, b) == pytest.approx(slow, rel=1e-5)
    assert slow > 0.01


@pytest.mark.parametrize("side", [0, 1])
def test_an_indefinite_matrix_is_an_error(side):
    good = Gaussian(np.zeros(2), np.eye(2))
    bad = Gaussian(np.zeros(2), np.diag([1.0, -0.5]))
    pair = (bad, good) if side == 0 else (good, bad)
    with pytest.raises(ValueError, match="not the covariance of anything"):
        frechet_distance(*pair)


def test_too_few_pictures():
    with pytest.raises(DistillError, match="at least 2 pictures on each side, got 1"):
        fit(np.zeros((1, 4)))
    with pytest.raises(DistillError, match="at least 2 pictures on each side, got 1"):
        kid(np.zeros((1, 4)), np.zeros((9, 4)))


def test_kid_against_loops():
    a, b = features(6, 5, 8), features(9, 5, 9, shift=0.5)

    def kernel(x: np.ndarray, y: np.ndarray) -> float:
        return (sum(x * y) / 5 + 1) ** 3

    within_a = [kernel(a[i], a[j]) for i in range(6) for j in range(6) if i != j]
    within_b = [kernel(b[i], b[j]) for i in range(9) for j in range(9) if i != j]
    between = [kernel(x, y) for x in a for y in b]
    expected = np.mean(within_a) + np.mean(within_b) - 2 * np.mean(between)
    assert kid(a, b) == pytest.approx(expected)


def test_bootstrap_covers_the_mean():
    """A 90 % interval holds the true mean in about 90 of 100 samples."""
    hits = 0
    for seed in range(200):
        sample = np.random.default_rng(seed).normal(3.0, 2.0, size=50)
        low, high = bootstrap(sample, rounds=300, level=0.9, seed=seed)
        assert low < sample.mean() < high
        hits += low <= 3.0 <= high
    assert 0.83 <= hits / 200 <= 0.96


def test_bootstrap_is_seeded_and_certain_of_constants():
    sample = np.random.default_rng(2).normal(size=20)
    assert bootstrap(sample, seed=1) == bootstrap(sample, seed=1)
    assert bootstrap(sample, seed=1) != bootstrap(sample, seed=2)
    assert bootstrap(np.full(5, 1.5)) == (1.5, 1.5)


def test_pictures_of_one_group_are_resampled_together():
    """Four copies of every value say no more than one: the interval is that of the values."""
    values, copies = np.random.default_rng(4).normal(size=60), np.arange(240) // 4
    four = np.repeat(values, 4)
    assert bootstrap(four, seed=2, groups=copies) == pytest.approx(bootstrap(values, seed=2))
    low, high = bootstrap(four, seed=2)
    assert high - low == pytest.approx(2 * 1.96 * values.std() / np.sqrt(240), rel=0.15)
    parts = np.abs(np.random.default_rng(5).normal(size=(60, 2)))
    expected = bootstrap_ratio(parts, seed=2)
    assert bootstrap_ratio(np.repeat(parts, 4, 0), seed=2, groups=copies) == pytest.approx(expected)


def test_a_mean_over_groups_of_many_sizes_counts_every_picture():
    """Of groups {9 × 1} and {1 × 0} a resample is both (0.9), one alone (1 or 0)."""
    values, groups = np.array([1.0] * 9 + [0.0]), np.array(["a"] * 9 + ["b"])
    assert bootstrap(values, level=0.99, groups=groups) == (0, 1)
    assert bootstrap(values, level=0.4, groups=groups) == pytest.approx((0.9, 0.9))


def test_a_frechet_interval_by_groups_is_that_of_whole_groups():
    """Every resample written out: persons drawn with replacement, each with all pictures."""
    a, b = features(12, 3, 34), features(12, 3, 35, shift=0.4)
    of_a, of_b = np.arange(12) // 3, np.arange(12) // 2
    rng, found = np.random.default_rng(3), []
    for _ in range(25):
        sides = []
        for side, of in ((a, of_a), (b, of_b)):
            drawn = rng.integers(of.max() + 1, size=of.max() + 1)
            sides.append(np.concatenate([side[of == each] for each in drawn]))
        found.append(by_eigenvalues(fit(sides[0]), fit(sides[1])))
    middle = by_eigenvalues(fit(a), fit(b)) - np.median(found)
    expected = np.quantile(found, [0.05, 0.95]) + middle
    got = frechet_interval(a, b, rounds=25, level=0.9, seed=3, groups=(of_a, of_b))
    assert got == pytest.approx(expected, rel=1e-4)


def test_a_ratio_is_that_of_the_sums():
    """Of two pictures each is alone in a quarter of the resamples; a picture of 0/0 adds none."""
    parts = np.array([[0.0, 10.0], [10.0, 10.0]])
    assert bootstrap_ratio(parts) == (0, 1)
    assert bootstrap_ratio(parts, level=0.4) == (0.5, 0.5)
    assert bootstrap_ratio(np.array([[1.0, 2.0], [0.0, 0.0]])) == (0.5, 0.5)
    assert bootstrap_ratio(parts, seed=3) == bootstrap_ratio(parts, seed=3)


def test_a_ratio_has_the_width_of_the_delta_method():
    rng = np.random.default_rng(0)
    under = rng.uniform(5, 15, 400)
    over = 0.6 * under + rng.normal(0, 1, 400)
    low, high = bootstrap_ratio(np.stack([over, under], 1), rounds=4000)
    spread = (over - over.sum() / under.sum() * under).std() / under.mean() / 20
    assert high - low == pytest.approx(2 * 1.96 * spread, rel=0.08)


def test_a_paired_frechet_interval_resamples_both_sides_together():
    """A shift by 0.5 in 6 dimensions is 6 · 0.25 in every resample of pairs."""
    a = features(40, 6, 12)
    paired = frechet_interval(a, a + 0.5, rounds=20, paired=True)
    assert paired == pytest.approx((1.5, 1.5), rel=1e-6)
    low, high = frechet_interval(a, a + 0.5, rounds=20)
    assert high - low > 0.01


def test_cmmd_of_gaussians_by_its_closed_form():
    """E k(x, y) of N(0, I) and N(m, I) is (σ²/(σ² + 2))^(d/2) exp(−‖m‖²/2(σ² + 2))."""
    rng, d, width = np.random.default_rng(0), 3, 2.0
    shift = np.array([1.0, -0.5, 2.0])
    a, b = rng.normal(size=(1500, d)), rng.normal(size=(1400, d)) + shift

    def kernel(x, y):
        return gaussian(x, y, width)

    same = (width**2 / (width**2 + 2)) ** (d / 2)
    expected = 2 * same * (1 - np.exp(-(shift @ shift) / (2 * (width**2 + 2))))
    assert kid(a, b, kernel=kernel) == pytest.approx(expected, rel=0.1)
    assert kid(a, rng.normal(size=(1500, d)), kernel=kernel) == pytest.approx(0, abs=2e-3)
    low, high = kid_interval(a[:200], b[:200], rounds=100, kernel=kernel)
    assert low < kid(a[:200], b[:200], kernel=kernel) < high


def test_cmmd_against_loops():
    a, b = RNG.normal(size=(5, 3)), RNG.normal(size=(4, 3))

    def mean(pairs):
        return np.mean([np.exp(-((x - y) ** 2).sum() / 200) for x, y in pairs])

    within = [
        mean((s[i], s[j]) for i in range(len(s)) for j in range(len(s)) if i != j) for s in (a, b)
    ]
    expected = sum(within) - 2 * mean((x, y) for x in a for y in b)
    assert kid(a, b, kernel=gaussian) == pytest.approx(expected)


def test_paired_kid_against_loops():
    a, b = features(7, 5, 14), features(7, 5, 15, shift=0.5)

    def kernel(x: np.ndarray, y: np.ndarray) -> float:
        return (sum(x * y) / 5 + 1) ** 3

    others = [(i, j) for i in range(7) for j in range(7) if i != j]
    terms = [
        kernel(a[i], a[j]) + kernel(b[i], b[j]) - kernel(a[i], b[j]) - kernel(a[j], b[i])
        for i, j in others
    ]
    assert kid(a, b, paired=True) == pytest.approx(np.mean(terms))


@pytest.mark.parametrize("paired", [False, True])
def test_a_kid_interval_is_that_of_resamples_without_copies(paired):
    """Every resample written out; two copies of one picture are not compared."""
    a, b = features(9, 4, 16), features(9, 4, 17, shift=0.4)
    rng, found = np.random.default_rng(5), []
    first, second = ([rng.integers(9, size=9) for _ in range(30)] for _ in range(2))
    for i, j in zip(first, first if paired else second, strict=True):
        pairs = [(i, i, a, a, True, 1), (j, j, b, b, True, 1), (i, j, a, b, paired, -2)]
        found.append(sum(sign * _mean_kernel(*rest) for *rest, sign in pairs))
    expected = np.quantile(found, [0.05, 0.95])
    got = kid_interval(a, b, rounds=30, level=0.9, seed=5, paired=paired)
    assert got == pytest.approx(expected)


def test_a_kid_interval_by_groups_is_that_of_whole_groups():
    """Resamples of persons written out, each with all of their pictures."""
    a, b = features(9, 4, 16), features(9, 4, 17, shift=0.4)
    groups = np.array([*"aabbbcddd"])
    rng, found = np.random.default_rng(5), []
    for persons in [rng.integers(4, size=4) for _ in range(30)]:
        i = np.concatenate([np.flatnonzero(groups == "abcd"[person]) for person in persons])
        within = _mean_kernel(i, i, a, a, True) + _mean_kernel(i, i, b, b, True)
        found.append(within - 2 * _mean_kernel(i, i, a, b, True))
    got = kid_interval(a, b, rounds=30, level=0.9, seed=5, paired=True, groups=(groups, groups))
    assert got == pytest.approx(np.nanquantile(found, [0.05, 0.95]))


def _mean_kernel(i: np.ndarray, j: np.ndarray, a: np.ndarray, b: np.ndarray, apart: bool) -> float:
    met = [(p, q) for p in i for q in j if not (apart and p == q)]
    return float(np.mean([(a[p] @ b[q] / a.shape[1] + 1) ** 3 for p, q in met]))


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.campaign
def test_kid_intervals_cover_the_distance(paired):
    """A 90 % interval holds the distance of large samples in about 90 of 100 small ones."""

    def sample(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(seed)
        x, noise = rng.normal(size=(2, n, 3))
        y = x + 0.3 * noise + 0.8 if paired else noise + 0.8
        return x, y

    truth, hits = kid(*sample(4000, 999), paired=paired), 0
    for seed in range(100):
        x, y = sample(60, seed)
        low, high = kid_interval(x, y, rounds=150, level=0.9, seed=seed, paired=paired)
        assert low < kid(x, y, paired) < high
        hits += low <= truth <= high
    assert 80 <= hits <= 97


def test_a_kid_interval_of_two_pictures():
    """Half the resamples hold one picture alone and say nothing."""
    a, b = features(2, 4, 18), features(2, 4, 19)
    low, high = kid_interval(a, b, rounds=40, paired=True)
    assert np.isfinite([low, high]).all()
