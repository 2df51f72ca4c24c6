"""Distances between two sets of pictures by their features: Fréchet (FID) and kernel (KID)."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distill.core.errors import DistillError, reason_of
from distill.core.files import near_name

Array = NDArray[np.floating]
Counts = NDArray[np.intp]
Times = NDArray[Any]  # (rounds, n): how often each picture counts, whole numbers of any type
Kernel = Callable[[Array, Array], Array]  # of (n, d) and (m, d) features: (n, m)
Groups = NDArray[Any] | None  # (n,): which pictures belong together; None: each is by itself


@dataclass(frozen=True)
class Gaussian:
    """Mean (d,) and covariance (d, d) of a feature set."""

    mean: Array
    cov: Array


def fit(features: Array, times: Counts | None = None) -> Gaussian:
    """Mean and unbiased covariance of (n, d) features, n ≥ 2; picture i counts `times[i]` times."""
    x = np.asarray(features, dtype=np.float64)
    count = len(x) if times is None else times.sum()
    if count < 2:
        raise DistillError(
            f"a Fréchet distance needs at least 2 pictures on each side, got {count}"
        )
    cov = np.cov(x, rowvar=False, fweights=times)
    return Gaussian(np.average(x, axis=0, weights=times), np.atleast_2d(cov))


def read_statistics(path: Path) -> Gaussian:
    """Mean `mu` (d,) and covariance `sigma` (d, d) of an .npz, as pytorch-fid and clean-fid save
    them. Raises DistillError for any other file."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            mean, cov = (np.asarray(arrays[name], np.float64) for name in ("mu", "sigma"))
    except FileNotFoundError:
        raise DistillError(f"{path}: no such file{near_name(path)}") from None
    except Exception as error:  # zipfile's, NumPy's, a name that is missing
        damaged = isinstance(error, ValueError)  # NumPy's advice is to trust the file
        why = "damaged, or no plain .npz" if damaged else reason_of(error, 100)
        raise DistillError(f"{path}: holds no statistics, arrays mu and sigma ({why})") from error
    shaped = mean.ndim == 1 and cov.shape == (len(mean), len(mean))
    if not shaped or not (np.isfinite(mean).all() and np.isfinite(cov).all()):
        shapes = f"mu {mean.shape} and sigma {cov.shape}"
        raise DistillError(f"{path}: {shapes} are not (d,) and (d, d), all finite")
    return Gaussian(mean, cov)


def frechet_distance(a: Gaussian, b: Gaussian) -> float:
    """‖μa − μb‖² + tr(Σa + Σb − 2 (Σa Σb)^½) (Heusel et al. 2017), in float64.

    With Σa = F Fᵀ the trace of the root is the sum of the roots of the eigenvalues of Fᵀ Σb F,
    which is symmetric and has those of Σa Σb. Raises ValueError when one is negative beyond
    rounding: the root would have a real imaginary part.
    """
    try:
        factor = np.linalg.cholesky(a.cov)
    except np.linalg.LinAlgError:  # not of full rank
        values, vectors = np.linalg.eigh(a.cov)
        factor = vectors * np.sqrt(_non_negative(values))
    eigenvalues = np.linalg.eigvalsh(factor.T @ b.cov @ factor)
    gap = a.mean - b.mean
    trace = np.sqrt(_non_negative(eigenvalues)).sum()
    return float(gap @ gap + np.trace(a.cov) + np.trace(b.cov) - 2 * trace)


def frechet_from_features(
    a: Array, b: Array, times_a: Counts | None = None, times_b: Counts | None = None
) -> float:
    """The same distance straight from (n, d) and (m, d) features, by the quickest exact form.

    With fewer pictures than features on a side, tr((Σa Σb)^½) is the nuclear norm of X Yᵀ, where
    Σa = Xᵀ X and Σb = Yᵀ Y. Picture i of a side counts `times[i]` times, once without.
    """
    if min(len(a), len(b)) >= a.shape[1]:
        return frechet_distance(fit(a, times_a), fit(b, times_b))
    mean_a, x = _root_rows(a, times_a)
    mean_b, y = _root_rows(b, times_b)
    trace = np.linalg.svd(x @ y.T, compute_uv=False).sum()
    gap = mean_a - mean_b
    return float(gap @ gap + (x**2).sum() + (y**2).sum() - 2 * trace)


def polynomial(a: Array, b: Array) -> Array:
    """(x·y/d + 1)³, KID's kernel (Bińkowski et al. 2018), of (n, d) and (m, d): (n, m)."""
    return (a @ b.T / a.shape[1] + 1) ** 3


def gaussian(a: Array, b: Array, width: float = 10.0) -> Array:
    """exp(−‖x − y‖²/2σ²), CMMD's kernel (Jayasumana et al. 2024), of (n, d) and (m, d): (n, m)."""
    squares = (a**2).sum(1)[:, None] + (b**2).sum(1) - 2 * a @ b.T
    return np.exp(-squares.clip(0) / (2 * width**2))


def kid(a: Array, b: Array, paired: bool = False, kernel: Kernel = polynomial) -> float:
    """Kernel distance (Bińkowski et al. 2018): unbiased MMD² by `kernel`; may be negative.

    Over all pictures at once rather than over random subsets, so that it has no seed. `paired`:
    picture i of both sides shows one photo. Such two depend on each other, and would pull the
    distance below zero, so they are not compared (Gretton et al. 2012, lemma 6).
    """
    n, m = len(a), len(b)
    if min(n, m) < 2:
        raise DistillError(
            f"a kernel distance needs at least 2 pictures on each side, got {min(n, m)}"
        )
    return float(_mmd(a, b, np.ones((1, n)), np.ones((1, m)), paired, kernel)[0])


def bootstrap(
    values: Array, rounds: int = 1000, level: float = 0.95, seed: int = 0, groups: Groups = None
) -> tuple[float, float]:
    """Percentile interval of the mean of (n,) values, pictures resampled with replacement.

    Pictures of one person, say, depend on each other: with `groups` whole groups are resampled.
    """
    times = counts_of(len(values), rounds, np.random.default_rng(seed), groups)
    return _interval(times @ values / times.sum(1), level)


def bootstrap_ratio(
    parts: Array, rounds: int = 1000, level: float = 0.95, seed: int = 0, groups: Groups = None
) -> tuple[float, float]:
    """Interval of Σ first / Σ second of (n, 2) parts, pictures or `groups` resampled.

    A resample whose second parts are all 0 has no ratio and is left out.
    """
    totals = counts_of(len(parts), rounds, np.random.default_rng(seed), groups) @ parts
    totals = totals[totals[:, 1] > 0]
    return _interval(totals[:, 0] / totals[:, 1], level)


def frechet_interval(
    a: Array,
    b: Array,
    rounds: int,
    level: float = 0.95,
    seed: int = 0,
    paired: bool = False,
    groups: tuple[Groups, Groups] = (None, None),
) -> tuple[float, float]:
    """Interval of the Fréchet distance, pictures or `groups` of both sides resampled.

    A resample repeats pictures, so its covariance has a lower rank and the distance a known
    upward bias; the interval is shifted back by the median's gap to the plain figure. That figure
    is itself biased upwards by so few pictures, and the interval is of it: of what as many other
    pictures would give, not of the distance of all there are. `paired`: picture i of both sides
    shows one photo, and both are resampled together, by the first of the `groups`.
    """
    rng = np.random.default_rng(seed)
    plain = frechet_from_features(a, b)
    distances = np.empty(rounds)
    for n in range(rounds):
        times_a = counts_of(len(a), 1, rng, groups[0])[0]
        times_b = times_a if paired else counts_of(len(b), 1, rng, groups[1])[0]
        # Only 63 % of the pictures are in a resample, some repeated: taking each once, with its
        # count, is a quarter of the work.
        in_a, in_b = times_a > 0, times_b > 0
        distances[n] = frechet_from_features(a[in_a], b[in_b], times_a[in_a], times_b[in_b])
    return _interval(distances - np.median(distances) + plain, level)


def kid_interval(
    a: Array,
    b: Array,
    rounds: int,
    level: float = 0.95,
    seed: int = 0,
    paired: bool = False,
    groups: tuple[Groups, Groups] = (None, None),
    kernel: Kernel = polynomial,
) -> tuple[float, float]:
    """Interval of the kernel distance, pictures or `groups` resampled, `paired` as in `kid`; NaN
    where no resample holds two pictures.

    A picture that is in it twice is never compared with its copy: that would count as two different
    pictures that look alike, and lift every resample. So the resamples lie around the plain figure.
    """
    rng = np.random.default_rng(seed)
    times_a, times_b = (
        counts_of(len(x), rounds, rng, g) for x, g in zip((a, b), groups, strict=True)
    )
    with np.errstate(invalid="ignore"):  # of 2 or 3 pictures a resample may hold one alone
        distances = _mmd(a, b, times_a, times_a if paired else times_b, paired, kernel)
    return _interval(distances[np.isfinite(distances)], level)


def _mmd(a: Array, b: Array, times_a: Times, times_b: Times, paired: bool, kernel: Kernel) -> Array:
    """Unbiased MMD² of each resample, (rounds,); picture i counts `times[:, i]` times."""
    within_a = _mean_kernel(kernel(a, a), times_a, times_a, distinct=True)
    within_b = _mean_kernel(kernel(b, b), times_b, times_b, distinct=True)
    return within_a + within_b - 2 * _mean_kernel(kernel(a, b), times_a, times_b, distinct=paired)


def _mean_kernel(kernel: Array, times_a: Times, times_b: Times, distinct: bool) -> Array:
    """Mean over all pairs of pictures; `distinct` leaves out those of a picture with its like."""
    total = ((times_a @ kernel) * times_b).sum(1)
    count = times_a.sum(1) * times_b.sum(1)
    if distinct:
        same = times_a * times_b
        total, count = total - same @ np.diag(kernel), count - same.sum(1)
    return total / count


def counts_of(count: int, rounds: int, rng: np.random.Generator, groups: Groups = None) -> Counts:
    """How often each picture is in each resample, (rounds, count); alike within a group."""
    if groups is not None:
        members, group = np.unique(groups, return_inverse=True)
        return counts_of(len(members), rounds, rng)[:, group]
    draws = (rng.integers(count, size=count) for _ in range(rounds))
    return np.stack([np.bincount(each, minlength=count) for each in draws])


def _interval(values: Array, level: float) -> tuple[float, float]:
    if not len(values):
        return np.nan, np.nan
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _root_rows(features: Array, times: Counts | None) -> tuple[Array, Array]:
    """Mean (d,) and rows X (n, d) with Xᵀ X the unbiased covariance."""
    weights = np.ones(len(features)) if times is None else times
    mean = np.average(features, axis=0, weights=weights)
    return mean, (features - mean) * np.sqrt(weights / (weights.sum() - 1))[:, None]


def _non_negative(eigenvalues: Array) -> Array:
    # A covariance of rank n-1 in d dimensions has d-n+1 zero eigenvalues, which rounding scatters.
    limit = 1e-6 * max(float(np.abs(eigenvalues).max()), 1e-12)
    if eigenvalues.min() < -limit:
        raise ValueError(f"eigenvalue {eigenvalues.min():g}: not the covariance of anything")
    return eigenvalues.clip(0)
