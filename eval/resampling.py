"""Seeded bootstrap: 95 % intervals of the agreement metrics and paired comparisons of two judges.

Whole clusters (objects, scenarios, plots) are resampled, because answers to one object are not independent and the
question is how a judge does on other objects. A resample is a vector of weights: how often each cluster was drawn.
Metrics are computed from per-cluster sums times these weights, so nothing is copied and 2,000 resamples of 3,000 rows
cost milliseconds. With fewer than `MIN_CLUSTERS` clusters single rows
are drawn instead: too few clusters say nothing about their own spread.

Kendall's τ-b has no interval: its cost is quadratic in the rows of each resample, and Spearman says the same.
Resamples in which a metric is undefined are left out. Source: Davison and Hinkley 1997, chapters 2.2, 3.8 and 5.3.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from eval.agreement import (
    MOMENT_METRICS,
    QWK_ROUNDINGS,
    Array,
    Moments,
    kappa_from_moments,
    moments_from_sums,
    ratio,
    row_sums,
    to_labels,
)
from inference.errors import UserError

MIN_CLUSTERS = 5
RESAMPLES = 2000
FEWEST_RESAMPLES, MOST_RESAMPLES = 100, 100_000
"""What settings of an evaluation may ask for."""
INTERVAL_METRICS: tuple[str, ...] = ("spearman", *QWK_ROUNDINGS, *MOMENT_METRICS)
"""Metrics that can be resampled: all but Kendall's τ-b."""
NO_INTERVAL = (float("nan"), float("nan"))
_FEW_CLUSTERS = 64  # above, the C³ coefficients of Spearman's sums cost more than ranking each resample
_BLOCK = 64  # resamples ranked together, so that (rows × block) numbers stay within the processor's cache

Groups = npt.NDArray[np.intp]
"""Cluster index of each row, 0 … C − 1."""


@dataclass(frozen=True)
class Difference:
    """Metric of judge a minus metric of judge b on the same rows."""

    difference: float
    low: float
    high: float
    p: float
    """Two-sided bootstrap p-value of "no difference"."""
    n: int
    clusters: int


@lru_cache(maxsize=8)
def cluster_weights(count: int, resamples: int, seed: int) -> Array:
    """Weights (resamples, count): how often each of `count` clusters is in a resample of `count` draws. Read-only."""
    weights = (
        np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), size=resamples).astype(np.float64)
    )
    weights.setflags(write=False)
    return weights


def groups(clusters: Sequence[str]) -> Groups:
    """Cluster index of each row, by sorted name; with fewer than `MIN_CLUSTERS` clusters each row is its own."""
    position = {name: number for number, name in enumerate(sorted(set(clusters)))}
    if len(position) < MIN_CLUSTERS:
        return np.arange(len(clusters))
    return np.array([position[name] for name in clusters], dtype=np.intp)


def resampled(
    metric: str, human: Array, judge: Array, index: Groups, weights: Array, score_range: tuple[float, float]
) -> Array:
    """`metric` on each resample (R,); `index` from `groups`, `weights` (R, C) from `cluster_weights`."""
    if metric == "spearman":
        return _spearman(human, judge, index, weights)
    if metric in QWK_ROUNDINGS:
        step, half_even = QWK_ROUNDINGS[metric]
        labels_human = to_labels(human, step, score_range, half_even=half_even)
        labels_judge = to_labels(judge, step, score_range, half_even=half_even)
        return kappa_from_moments(_moments(labels_human, labels_judge, index, weights))
    if metric in MOMENT_METRICS:
        return MOMENT_METRICS[metric](_moments(human, judge, index, weights))
    raise UserError(f"the metric {metric!r} has no bootstrap; choose one of {', '.join(INTERVAL_METRICS)}")


def intervals(
    human: Array,
    judge: Array,
    clusters: Sequence[str],
    score_range: tuple[float, float],
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
    metrics: Sequence[str] = INTERVAL_METRICS,
) -> dict[str, tuple[float, float]]:
    """95 % percentile interval of each of `metrics`; (NaN, NaN) where none can be given."""
    if len(human) < 2:
        return dict.fromkeys(metrics, NO_INTERVAL)
    index = groups(clusters)
    weights = cluster_weights(int(index.max()) + 1, resamples, seed)
    return {name: percentile_interval(resampled(name, human, judge, index, weights, score_range)) for name in metrics}


def percentile_interval(values: Array) -> tuple[float, float]:
    """2.5 and 97.5 percentiles of the defined `values` (linear interpolation); NaN where there are none."""
    defined = values[np.isfinite(values)]
    if not len(defined):
        return NO_INTERVAL
    low, high = np.percentile(defined, [2.5, 97.5])
    return float(low), float(high)


def mean_interval(values: Array, *, seed: int = 0, resamples: int = RESAMPLES) -> tuple[float, float]:
    """Interval of the unweighted mean of `values` (C,), one per cluster; NaN with fewer than `MIN_CLUSTERS`."""
    if len(values) < MIN_CLUSTERS:
        return NO_INTERVAL
    return percentile_interval(cluster_weights(len(values), resamples, seed) @ values / len(values))


def paired_difference(
    human: Array,
    judge_a: Array,
    judge_b: Array,
    clusters: Sequence[str],
    metric: str,
    seed: int = 0,
    *,
    score_range: tuple[float, float],
    resamples: int = RESAMPLES,
) -> Difference:
    """Compare two judges on the same rows and the same resamples: metric of a − metric of b.

    p = 2 · (1 + smaller number of resampled differences on one side of 0) / (1 + resamples), at most 1; a difference
    of exactly 0 counts on both sides. Swapping a and b changes the sign of the difference and nothing else.
    Raises UserError for a metric that has no bootstrap; everything is NaN with fewer than two rows.
    """
    if len(human) < 2:
        nan = float("nan")
        return Difference(nan, nan, nan, nan, n=len(human), clusters=len(set(clusters)))
    index = groups(clusters)
    count = int(index.max()) + 1
    weights = np.vstack([np.ones((1, count)), cluster_weights(count, resamples, seed)])
    a, b = (resampled(metric, human, judge, index, weights, score_range) for judge in (judge_a, judge_b))
    differences = (a - b)[1:]
    low, high = percentile_interval(differences)
    return Difference(float(a[0] - b[0]), low, high, two_sided_p(differences), n=len(human), clusters=count)


def two_sided_p(differences: Array) -> float:
    """p of "no difference" from resampled differences (R,), see `paired_difference`; NaN where none is defined."""
    defined = differences[np.isfinite(differences)]
    if not len(defined):
        return float("nan")
    smaller = min(int(np.sum(defined <= 0)), int(np.sum(defined >= 0)))
    return min(1.0, 2 * (1 + smaller) / (1 + len(defined)))


def _moments(human: Array, judge: Array, index: Groups, weights: Array) -> Moments:
    """Moments of each resample (R,): the sums of each cluster (C, 7), weighted."""
    terms = row_sums(human, judge)
    sums = np.stack([np.bincount(index, weights=term, minlength=weights.shape[1]) for term in terms.T], axis=1)
    return moments_from_sums(weights @ sums, float(judge[0] - human[0]))


def _spearman(human: Array, judge: Array, index: Groups, weights: Array) -> Array:
    """Spearman's correlation of each resample, ranked within it: a row drawn twice is a tie with itself."""
    if weights.shape[1] <= _FEW_CLUSTERS:
        return _spearman_few(human, judge, index, weights)
    blocks = [weights[start : start + _BLOCK].T[index] for start in range(0, len(weights), _BLOCK)]
    return np.concatenate([_spearman_block(human, judge, block) for block in blocks])


def _spearman_few(human: Array, judge: Array, index: Groups, weights: Array) -> Array:
    """For C clusters: a row's rank is linear in the weights, so each sum of products of ranks is a cubic form in them.

    Its C³ coefficients are computed once; no resample touches the rows.
    """
    x, y = (_unit_ranks(scores, index, weights.shape[1]) for scores in (human, judge))
    members = [index == cluster for cluster in range(weights.shape[1])]

    def weighted_sum(a: Array, b: Array) -> Array:
        form = np.tensordot(weights, np.stack([a[rows].T @ b[rows] for rows in members]), 1)
        return np.asarray(np.einsum("rcd,rc,rd->r", form, weights, weights))

    return _correlation(weighted_sum(x, y), weighted_sum(x, x), weighted_sum(y, y))


def _unit_ranks(scores: Array, index: Groups, clusters: int) -> Array:
    """(n, C): what one draw of each cluster adds to the mid-rank of each row, minus what it adds to the mean rank."""
    different, value = np.unique(scores, return_inverse=True)
    counts = np.zeros((len(different), clusters))
    np.add.at(counts, (value, index), 1.0)
    ranks: Array = np.cumsum(counts, axis=0) - counts / 2 - counts.sum(axis=0) / 2
    return ranks[value]


def _spearman_block(human: Array, judge: Array, drawn: Array) -> Array:
    """For B resamples that draw each row as often as `drawn` (n, B) says."""
    x, y = (_drawn_ranks(scores, drawn) for scores in (human, judge))
    sums = [np.einsum("nb,nb,nb->b", a, b, drawn) for a, b in ((x, y), (x, x), (y, y))]
    return _correlation(*sums)


def _drawn_ranks(scores: Array, drawn: Array) -> Array:
    """Mid-ranks minus their mean (n, B) of the rows in each resample."""
    order = np.argsort(scores, kind="stable")
    _, first, value = np.unique(scores[order], return_index=True, return_inverse=True)
    counts = np.add.reduceat(drawn[order], first, axis=0)
    upto = np.cumsum(counts, axis=0)
    ranks = np.empty_like(drawn)
    ranks[order] = (upto - counts / 2 - upto[-1] / 2)[value]
    return ranks


def _correlation(cross: Array, ss_x: Array, ss_y: Array) -> Array:
    return np.clip(ratio(cross, np.sqrt(ss_x * ss_y)), -1.0, 1.0)
