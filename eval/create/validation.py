"""How far evaluators of CREATE agree with people, or with a teacher.

Specificity and utility: Pearson's r with each rater and with their mean, Krippendorff's α of the raters among
themselves. Factuality: balanced accuracy, and precision, recall and F1 of either class. Intervals resample whole
queries, see `eval.resampling`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, NamedTuple

import numpy as np

from eval.agreement import Array, pearson, ratio
from eval.resampling import (
    MIN_CLUSTERS,
    NO_INTERVAL,
    RESAMPLES,
    Groups,
    cluster_weights,
    groups,
    intervals,
    paired_difference,
    percentile_interval,
    two_sided_p,
)
from inference.config import StrictModel
from inference.errors import UserError

Level = Literal["interval", "ordinal"]
LEVELS: tuple[Level, Level] = ("interval", "ordinal")
What = Literal["specificity", "factuality", "utility"]
MEAN = "mean"
"""Stands for the mean of all raters who rated a row."""
TRUE = 0.5
"""Ratings and scores of factuality from which a triple counts as factual."""
MOST_VALUES = 100
"""Different ratings for which α is computed."""
_BLOCK = 256


class ValidationRow(StrictModel):
    """One value. Undefined ones, and intervals that cannot be given, are None."""

    what: What
    judge: str
    """The evaluator, or ``a − b`` for a difference; empty for the raters' agreement among themselves."""
    rater: str
    """``mean``, a rater, or ``raters``."""
    metric: str
    value: float | None
    low: float | None
    """95 % interval by query."""
    high: float | None
    p: float | None = None
    """Of "no difference", two-sided."""
    n: int
    """Rows that both have; for α those that two raters or more have."""
    clusters: int


@dataclass(frozen=True)
class Ratings:
    """Rated rows; NaN where a rater or a judge has nothing."""

    clusters: Sequence[str]
    """(n,): the query of each row."""
    raters: Mapping[str, Array]
    judges: Mapping[str, Array]

    @property
    def references(self) -> dict[str, Array]:
        """The raters, and where there are several first of all their mean."""
        if len(self.raters) == 1:
            return dict(self.raters)
        stacked = np.column_stack(list(self.raters.values()))
        rated = np.isfinite(stacked)
        mean = ratio(np.where(rated, stacked, 0.0).sum(axis=1), rated.sum(axis=1))
        return {MEAN: mean, **self.raters}


class _Metric(NamedTuple):
    """A metric of reference and judge on rows without gaps."""

    values: Callable[[Array, Array, Sequence[str], int, int], dict[str, tuple[float, tuple[float, float]]]]
    difference: Callable[[Array, Array, Array, Sequence[str], int, int], tuple[float, float, float, float]]
    compared: str


def validate(what: What, ratings: Ratings, *, seed: int = 0, resamples: int = RESAMPLES) -> list[ValidationRow]:
    """Every judge against every rater, the raters among themselves, and every pair of judges against the reference."""
    metric = _FACTUALITY if what == "factuality" else _CORRELATION
    references = ratings.references
    rows = _raters_alone(what, ratings, seed, resamples)
    for judge, scores in ratings.judges.items():
        for rater, reference in references.items():
            (human, given), names = _common([reference, scores], ratings.clusters)
            found = metric.values(human, given, names, seed, resamples)
            rows += [_row(what, judge, rater, name, *ends, names) for name, ends in found.items()]
    rater, reference = next(iter(references.items()))
    for a, b in combinations(ratings.judges, 2):
        (human, *both), names = _common([reference, ratings.judges[a], ratings.judges[b]], ratings.clusters)
        value, low, high, p = metric.difference(human, both[0], both[1], names, seed, resamples)
        rows.append(_row(what, f"{a} − {b}", rater, metric.compared, value, (low, high), names, p))
    return rows


def _raters_alone(what: What, ratings: Ratings, seed: int, resamples: int) -> list[ValidationRow]:
    if len(ratings.raters) < 2:
        return []
    stacked = np.column_stack(list(ratings.raters.values()))
    paired = np.isfinite(stacked).sum(axis=1) > 1
    names = [name for name, used in zip(ratings.clusters, paired, strict=True) if used]
    return [
        _row(
            what,
            "",
            "raters",
            f"alpha_{level}",
            krippendorff_alpha(stacked, level),
            alpha_interval(stacked[paired], names, level, seed=seed, resamples=resamples),
            names,
        )
        for level in LEVELS
    ]


def _common(columns: Sequence[Array], clusters: Sequence[str]) -> tuple[list[Array], list[str]]:
    """The rows that all columns have."""
    known = np.all([np.isfinite(column) for column in columns], axis=0)
    return [column[known] for column in columns], [name for name, used in zip(clusters, known, strict=True) if used]


def _row(
    what: What,
    judge: str,
    rater: str,
    metric: str,
    value: float,
    ends: tuple[float, float],
    names: Sequence[str],
    p: float = float("nan"),
) -> ValidationRow:
    value_, low, high, p_ = (float(number) if np.isfinite(number) else None for number in (value, *ends, p))
    count = len(set(names))
    return ValidationRow(
        what=what,
        judge=judge,
        rater=rater,
        metric=metric,
        value=value_,
        low=low,
        high=high,
        p=p_,
        n=len(names),
        clusters=count,
    )


# -- correlations


_NO_RANGE = (0.0, 0.0)
"""Pearson's r needs no scale."""


def _pearson(
    human: Array, judge: Array, names: Sequence[str], seed: int, resamples: int
) -> dict[str, tuple[float, tuple[float, float]]]:
    found = intervals(human, judge, names, _NO_RANGE, seed=seed, resamples=resamples, metrics=("pearson",))
    return {"pearson": (pearson(human, judge), found["pearson"])}


def _pearson_difference(
    human: Array, a: Array, b: Array, names: Sequence[str], seed: int, resamples: int
) -> tuple[float, float, float, float]:
    found = paired_difference(human, a, b, names, "pearson", seed, score_range=_NO_RANGE, resamples=resamples)
    return found.difference, found.low, found.high, found.p


_CORRELATION = _Metric(_pearson, _pearson_difference, "pearson")


# -- classes


def class_metrics(counts: Array) -> dict[str, Array]:
    """Metrics of two classes from counts (…, 4) of true and called factual, true and not called, called and not true,
    neither. NaN where a class has no row, or none that is called so."""
    hits, missed, wrong, rejected = np.moveaxis(counts, -1, 0)
    recalls = ratio(hits, hits + missed), ratio(rejected, rejected + wrong)
    found = {"balanced_accuracy": (recalls[0] + recalls[1]) / 2}
    precisions = ratio(hits, hits + wrong), ratio(rejected, rejected + missed)
    f1 = ratio(2 * hits, 2 * hits + missed + wrong), ratio(2 * rejected, 2 * rejected + missed + wrong)
    for index, name in enumerate(("factual", "hallucinated")):
        found |= {f"precision_{name}": precisions[index], f"recall_{name}": recalls[index], f"f1_{name}": f1[index]}
    return found


def class_counts(human: Array, judge: Array) -> Array:
    """(n, 4): which of the four cells of `class_metrics` each row is in."""
    true, called = human >= TRUE, judge >= TRUE
    cells = [true & called, true & ~called, ~true & called, ~true & ~called]
    return np.stack(cells, axis=1).astype(np.float64)


def _class_values(
    human: Array, judge: Array, names: Sequence[str], seed: int, resamples: int
) -> dict[str, tuple[float, tuple[float, float]]]:
    cells = class_counts(human, judge)
    values = class_metrics(cells.sum(axis=0))
    drawn = class_metrics(_resampled_sums(cells, names, seed, resamples)) if len(human) > 1 else {}
    return {
        name: (float(value), percentile_interval(drawn[name]) if drawn else NO_INTERVAL)
        for name, value in values.items()
    }


def _class_difference(
    human: Array, a: Array, b: Array, names: Sequence[str], seed: int, resamples: int
) -> tuple[float, float, float, float]:
    cells = [class_counts(human, judge) for judge in (a, b)]
    of_a, of_b = (float(class_metrics(one.sum(axis=0))["balanced_accuracy"]) for one in cells)
    if len(human) < 2:
        return of_a - of_b, *NO_INTERVAL, float("nan")
    drawn = [class_metrics(_resampled_sums(one, names, seed, resamples))["balanced_accuracy"] for one in cells]
    apart = drawn[0] - drawn[1]
    return of_a - of_b, *percentile_interval(apart), two_sided_p(apart)


_FACTUALITY = _Metric(_class_values, _class_difference, "balanced_accuracy")


def _resampled_sums(terms: Array, names: Sequence[str], seed: int, resamples: int) -> Array:
    """Column sums (R, k) of `terms` (n, k) on each resample of whole clusters."""
    index = groups(names)
    weights = cluster_weights(int(index.max()) + 1, resamples, seed)
    return weights @ _by_cluster(terms, index)


def _by_cluster(terms: Array, index: Groups) -> Array:
    sums = np.zeros((int(index.max()) + 1, terms.shape[1]))
    np.add.at(sums, index, terms)
    return sums


# -- agreement of raters


def krippendorff_alpha(ratings: Array, level: Level) -> float:
    """Krippendorff's α of `ratings` (n, k), NaN where missing. Rows with fewer than two ratings don't count.

    1 − observed / expected disagreement, from the coincidences of pairs within rows. NaN with fewer than two rows or
    where all ratings are equal. Source: Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability".
    Raises UserError for more than `MOST_VALUES` different ratings.
    """
    pairs, values = _coincidences(ratings)
    if len(pairs) < 2:
        return float("nan")
    return float(_alpha(pairs.sum(axis=0)[None], values, level)[0])


def alpha_interval(
    ratings: Array, clusters: Sequence[str], level: Level, *, seed: int = 0, resamples: int = RESAMPLES
) -> tuple[float, float]:
    """95 % percentile interval of α; every row of `ratings` (n, k) has two ratings or more."""
    pairs, values = _coincidences(ratings)
    if len(pairs) < MIN_CLUSTERS:
        return NO_INTERVAL
    index = groups(clusters)
    sums = _by_cluster(pairs.reshape(len(pairs), -1), index)
    weights = cluster_weights(len(sums), resamples, seed)
    blocks = [weights[start : start + _BLOCK] @ sums for start in range(0, resamples, _BLOCK)]
    shape = (-1, len(values), len(values))
    return percentile_interval(np.concatenate([_alpha(block.reshape(shape), values, level) for block in blocks]))


def _coincidences(ratings: Array) -> tuple[Array, Array]:
    """Pairs of ratings within each row that has two or more, (rows, V, V), each row counting as its ratings; and the V
    different ratings."""
    values = np.unique(ratings[np.isfinite(ratings)])
    if len(values) > MOST_VALUES:
        raise UserError(
            f"raters gave {len(values)} different ratings; their agreement is computed for {MOST_VALUES} at most: "
            "round them to the scale that they used"
        )
    held = (
        np.stack([(ratings == value).sum(axis=1) for value in values], axis=1).astype(np.float64)
        if len(values)
        else (np.zeros((len(ratings), 0)))
    )
    held = held[held.sum(axis=1) > 1]
    pairs = held[:, :, None] * held[:, None, :]
    diagonal = np.arange(len(values))
    pairs[:, diagonal, diagonal] -= held
    return pairs / np.maximum(held.sum(axis=1) - 1, 1)[:, None, None], values


def _alpha(pairs: Array, values: Array, level: Level) -> Array:
    """α of coincidences (R, V, V). For ordinal ratings the place of a value is its mean rank among all ratings."""
    held = pairs.sum(axis=2)
    total = held.sum(axis=1)
    places = np.cumsum(held, axis=1) - held / 2 if level == "ordinal" else np.broadcast_to(values, held.shape)
    apart = (places[:, :, None] - places[:, None, :]) ** 2
    observed = np.einsum("rcd,rcd->r", pairs, apart)
    expected = np.einsum("rc,rd,rcd->r", held, held, apart)
    return np.asarray(1 - (total - 1) * ratio(observed, expected))
