"""From judgements to tidy metric rows: each judge against each rater, on each split, for both kinds of score."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

import numpy as np

from eval.agreement import Array, agreement, pearson, spearman
from eval.resampling import INTERVAL_METRICS, NO_INTERVAL, RESAMPLES, intervals, mean_interval
from eval.rows import MetricRow
from inference.records import Judgement, Sample
from inference.rubric import Dimension, Rubric, Step

Kind = Literal["value", "top"]
KINDS: tuple[Kind, Kind] = ("value", "top")
ScoreTable: TypeAlias = dict[str, dict[str, tuple[float, float]]]
"""Of one judge: "step.dimension" → sample id → (value, top). Samples without a score are absent."""
MIN_OBJECT_ROWS = 20
"""Objects (scenarios) with fewer rows have no correlation of their own."""
LENGTH_METRICS = {"pearson": pearson, "spearman": spearman}
"""Of the judge's score with the length of the response in characters: how far longer is taken for better."""
SHOWN = ("pearson", "rmse", "icc2_1", "bias_pred_minus_target")
"""Metrics in the tables of a report, beside `headline_qwk`."""


def headline_qwk(dimension: Dimension) -> str:
    """The QWK that reports show: of scores rounded to half points where they may be fractional, else to whole ones."""
    return "qwk_half_point" if dimension.fractional else "qwk_integer"


def cluster(sample: Sample) -> str:
    """What is resampled as a whole: the scenario, by its short name where it has one."""
    return sample.scenario_id or sample.scenario


def score_tables(judgements: Iterable[Judgement]) -> dict[tuple[str, str], ScoreTable]:
    """(judge, method) → scores, in order of first appearance.

    The repeats of a sample are averaged, value and top each; unscored ones are left out of the average.
    """
    repeats: dict[tuple[str, str], dict[str, dict[str, list[tuple[float, float]]]]] = {}
    for judgement in judgements:
        table = repeats.setdefault((judgement.judge, judgement.method), defaultdict(lambda: defaultdict(list)))
        for score in judgement.scores:
            if score.value is not None:
                top = score.value if score.top is None else score.top
                table[score.key][judgement.sample_id].append((score.value, top))
    return {judge: {key: _averaged(cells) for key, cells in table.items()} for judge, table in repeats.items()}


def off_grid_masses(judgements: Iterable[Judgement]) -> dict[tuple[str, str, str, str], list[float]]:
    """(judge, method, "step.dimension", sample id) → probability mass off the score strings, one value per repeat.

    How far a judge answers in scores at all: its distribution is renormalised over the rest, which may be little.
    """
    found: dict[tuple[str, str, str, str], list[float]] = defaultdict(list)
    for judgement in judgements:
        for score in judgement.scores:
            if score.off_grid is not None:
                found[judgement.judge, judgement.method, score.key, judgement.sample_id].append(score.off_grid)
    return found


def _averaged(cells: Mapping[str, list[tuple[float, float]]]) -> dict[str, tuple[float, float]]:
    return {
        identifier: (sum(value for value, _ in pairs) / len(pairs), sum(top for _, top in pairs) / len(pairs))
        for identifier, pairs in cells.items()
    }


def raters(samples: Iterable[Sample]) -> list[str]:
    """Names of all human raters, sorted."""
    return sorted({rater for sample in samples for rater in sample.human})


def rated(samples: Iterable[Sample], rater: str, key: str, *tables: ScoreTable) -> list[Sample]:
    """The samples rated by `rater` on "step.dimension" `key` and scored by every judge of `tables`, in order."""
    scored = [table.get(key, {}) for table in tables]
    return [
        sample
        for sample in samples
        if key in sample.human.get(rater, {}) and all(sample.id in scores for scores in scored)
    ]


def human_scores(rows: Sequence[Sample], rater: str, key: str) -> Array:
    """Scores (n,) of `rater`; `rows` from `rated`."""
    return np.array([sample.human[rater][key] for sample in rows], dtype=np.float64)


def judge_scores(rows: Sequence[Sample], table: ScoreTable, key: str, kind: Kind) -> Array:
    """Scores (n,) of a judge; `rows` from `rated`."""
    return np.array([table[key][sample.id][KINDS.index(kind)] for sample in rows], dtype=np.float64)


def metric_rows(
    run_name: str,
    benchmark: str,
    samples: Sequence[Sample],
    judgements: Iterable[Judgement],
    rubric: Rubric,
    splits: Mapping[str, Collection[str]],
    seed: int,
    simulated: bool,
    resamples: int = RESAMPLES,
) -> list[MetricRow]:
    """All metrics of all judges. Order: split, judge, rater, dimension, value before top, metric.

    Rows without a score or without a rating are left out of the metrics and show in `n` and `coverage` (scored by the
    judge / all samples of the split). Splits hold sample ids; clusters of the intervals are the samples' scenarios.
    With several reported dimensions only `SHOWN`, the headline QWK and the correlation with length have intervals:
    all of them would take ten times as long.
    `off_grid_mean` is over all judgements of the split with a known mass, rated, scored or not; it has no row where
    there is none.
    """
    judgements = list(judgements)
    several = len(rubric.reported) > 1
    tables = score_tables(judgements)
    off_grid = off_grid_masses(judgements)
    groups = [
        (split, [sample for sample in samples if sample.id in ids], judge, rater, step, dimension)
        for split, ids in splits.items()
        for judge in tables
        for rater in raters(samples)
        for step, dimension in rubric.scored
    ]
    rows: list[MetricRow] = []
    for split, members, (judge, method), rater, step, dimension in groups:
        table, key = tables[judge, method], f"{step.name}.{dimension.name}"
        used = rated(members, rater, key, table)
        covered = sum(sample.id in table.get(key, {}) for sample in members)
        for kind in KINDS:
            human, verdicts = human_scores(used, rater, key), judge_scores(used, table, key, kind)
            with_interval = (*SHOWN, headline_qwk(dimension)) if several else INTERVAL_METRICS
            values = _values(human, verdicts, used, step, dimension, seed, resamples, with_interval)
            masses = [mass for sample in members for mass in off_grid.get((judge, method, key, sample.id), ())]
            if masses and kind == "value":
                values["off_grid_mean"] = (float(np.mean(masses)), NO_INTERVAL)
            rows += [
                MetricRow(
                    run=run_name,
                    benchmark=benchmark,
                    split=split,
                    judge=judge,
                    method=method,
                    score=kind,
                    rater=rater,
                    step=step.name,
                    dimension=dimension.name,
                    metric=metric,
                    value=value,
                    low=low,
                    high=high,
                    n=len(used),
                    coverage=covered / len(members) if members else 0.0,
                    simulated=simulated,
                )
                for metric, (value, (low, high)) in values.items()
            ]
    return rows


def _values(
    human: Array,
    judge: Array,
    used: Sequence[Sample],
    step: Step,
    dimension: Dimension,
    seed: int,
    resamples: int,
    with_interval: Sequence[str],
) -> dict[str, tuple[float, tuple[float, float]]]:
    """Metric → value and interval; NaN = undefined or no interval."""

    def ends(of: Array, metrics: Sequence[str]) -> dict[str, tuple[float, float]]:
        return intervals(of, judge, clusters, dimension.range, seed=seed, resamples=resamples, metrics=metrics)

    clusters = [cluster(sample) for sample in used]
    known = ends(human, with_interval)
    found = {
        name: (value, known.get(name, NO_INTERVAL)) for name, value in agreement(human, judge, dimension.range).items()
    }
    within = within_object_pearson(human, judge, clusters)
    mean, lowest = (float(within.mean()), float(within.min())) if len(within) else NO_INTERVAL
    found["within_object_mean_pearson"] = (mean, mean_interval(within, seed=seed, resamples=resamples))
    found["within_object_min_pearson"] = (lowest, NO_INTERVAL)
    if all(step.name in sample.responses for sample in used):
        length = np.array([len(sample.responses[step.name]) for sample in used], dtype=np.float64)
        known = ends(length, [metric for metric in LENGTH_METRICS if metric in with_interval])
        for metric, formula in LENGTH_METRICS.items():
            found[f"length_{metric}"] = (formula(length, judge), known.get(metric, NO_INTERVAL))
    return found


def within_object_pearson(human: Array, judge: Array, scenarios: Sequence[str]) -> Array:
    """Pearson's r within each scenario of at least `MIN_OBJECT_ROWS` rows, by its name; undefined ones left out."""
    names = np.array(scenarios, dtype=object)
    found = []
    for name in sorted(set(scenarios)):
        rows = names == name
        if rows.sum() >= MIN_OBJECT_ROWS:
            found.append(pearson(human[rows], judge[rows]))
    return np.array([value for value in found if np.isfinite(value)], dtype=np.float64)
