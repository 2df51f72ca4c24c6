"""Distances between two sets of pictures by their features: Fréchet (FID) and kernel (KID)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from distill.errors import DistillError

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Gaussian:
    """Mean (d,) and covariance (d, d) of a feature set."""

    mean: Array
    cov: Array


def fit(features: Array) -> Gaussian:
    """Mean and unbiased covariance of (n, d) features, n ≥ 2."""
    x = np.asarray(features, dtype=np.float64)
    if len(x) < 2:
        raise DistillError(
            f"a Fréchet distance needs at least 2 pictures on each side, got {len(x)}"
        )
    return Gaussian(x.mean(0), np.atleast_2d(np.cov(x, rowvar=False)))


def frechet_distance(a: Gaussian, b: Gaussian) -> float:
    """‖μa − μb‖² + tr(Σa + Σb − 2 (Σa Σb)^½) (Heusel et al. 2017), in float64.

    The trace of the root is the sum of the roots of the eigenvalues of the symmetric product
    Σa^½ Σb Σa^½, which are real. Raises ValueError when one is negative beyond rounding: the
    root would have a real imaginary part.
    """
    values, vectors = np.linalg.eigh(a.cov)
    root = (vectors * np.sqrt(_non_negative(values))) @ vectors.T
    product = root @ b.cov @ root
    trace = np.sqrt(_non_negative(np.linalg.eigvalsh((product + product.T) / 2))).sum()
    gap = a.mean - b.mean
    return float(gap @ gap + np.trace(a.cov) + np.trace(b.cov) - 2 * trace)


def frechet_from_features(a: Array, b: Array) -> float:
    """The same distance straight from (n, d) and (m, d) features, quick where n and m are below d.

    With centred features X and Y, tr((Σa Σb)^½) is the nuclear norm of X Yᵀ / √((n-1)(m-1)).
    """
    x, y = a - a.mean(0), b - b.mean(0)
    scale = np.sqrt((len(x) - 1.0) * (len(y) - 1.0))
    trace = np.linalg.svd(x @ y.T, compute_uv=False).sum() / scale
    gap = a.mean(0) - b.mean(0)
    spread = (x**2).sum() / (len(x) - 1) + (y**2).sum() / (len(y) - 1)
    return float(gap @ gap + spread - 2 * trace)


def kid(a: Array, b: Array) -> float:
    """Kernel distance (Bińkowski et al. 2018): unbiased MMD² with (x·y/d + 1)³; may be negative.

    Over all pictures at once rather than over random subsets, so that it has no seed.
    """
    n, m = len(a), len(b)
    if min(n, m) < 2:
        raise DistillError(
            f"a kernel distance needs at least 2 pictures on each side, got {min(n, m)}"
        )
    within_a, within_b, between = _kernel(a, a), _kernel(b, b), _kernel(a, b)
    first = (within_a.sum() - np.trace(within_a)) / (n * (n - 1))
    second = (within_b.sum() - np.trace(within_b)) / (m * (m - 1))
    return float(first + second - 2 * between.mean())


def bootstrap(
    values: Array, rounds: int = 1000, level: float = 0.95, seed: int = 0
) -> tuple[float, float]:
    """Percentile interval of the mean of (n,) values, pictures drawn with replacement."""
    rng = np.random.default_rng(seed)
    means = values[rng.integers(len(values), size=(rounds, len(values)))].mean(1)
    return _interval(means, level)


def frechet_interval(
    a: Array, b: Array, rounds: int, level: float = 0.95, seed: int = 0
) -> tuple[float, float]:
    """Interval of the Fréchet distance, pictures of both sides drawn with replacement.

    A resample repeats pictures, so its covariance has a lower rank and the distance a known
    upward bias; the interval is shifted back by the median's gap to the plain figure.
    """
    rng = np.random.default_rng(seed)
    plain = frechet_from_features(a, b)
    draws = np.array(
        [
            frechet_from_features(
                a[rng.integers(len(a), size=len(a))], b[rng.integers(len(b), size=len(b))]
            )
            for _ in range(rounds)
        ]
    )
    return _interval(draws - np.median(draws) + plain, level)


def _interval(draws: Array, level: float) -> tuple[float, float]:
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _kernel(a: Array, b: Array) -> Array:
    return (a @ b.T / a.shape[1] + 1) ** 3


def _non_negative(eigenvalues: Array) -> Array:
    # A covariance of rank n-1 in d dimensions has d-n+1 zero eigenvalues, which rounding scatters.
    limit = 1e-6 * max(float(np.abs(eigenvalues).max()), 1e-12)
    if eigenvalues.min() < -limit:
        raise ValueError(f"eigenvalue {eigenvalues.min():g}: not the covariance of anything")
    return eigenvalues.clip(0)
