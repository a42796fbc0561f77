"""Agreement over several dimensions, by the protocol of CreaEval: judge against each rater, then averages.

Each metric is computed per dimension against every rater separately and averaged over the raters, never against the
mean of the raters. Averages over dimensions weight the rubric's reported dimensions alike: those of a step, and all.
Judges of the same method are averaged too, and pairs of raters are compared in the same way: what people reach among
themselves.

Missing stays missing: where a metric is undefined for one dimension and rater (constant scores, fewer than two
answers), every average over it is None, and a note names the dimension.

Intervals: cluster bootstrap over scenarios, the same resamples for all dimensions, raters and judges of a split, so
that what the dimensions of an answer have in common is kept. A resample in which an average is undefined is left out.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from eval.agreement import Array
from eval.metrics import KINDS, Kind, ScoreTable, cluster, headline_qwk, raters, score_tables
from eval.recorded import METHOD as RECORDED
from eval.resampling import MIN_CLUSTERS, RESAMPLES, Groups, cluster_weights, groups, percentile_interval, resampled
from eval.rows import HUMAN_HUMAN, MEAN_OF_JUDGES, MetricRow
from inference.records import Judgement, Sample
from inference.rubric import Dimension, Rubric, Step

MEAN = "mean"
"""As rater: averaged over the raters. As dimension: averaged over the reported dimensions of the row's step."""
ALL = "all"
"""As step: all reported dimensions of the rubric."""
HUMAN = "human"
"""As method: raters compared with each other."""
METRICS = {"qwk": "QWK", "pearson": "r", "icc2_1": "ICC(2,1)"}
"""Metric → name for people. ``qwk`` is the dimension's `headline_qwk`: of whole points, or of half ones."""

Pairs = Sequence[tuple[Step, Dimension]]


def averages(values: Array, pairs: Pairs) -> dict[tuple[str, str], Array]:
    """(step, dimension) → mean over the dimensions: ("all", "mean") over all, then (step, "mean") of each step.

    Args:
        values: (D, …), one row per pair of `pairs`; NaN = undefined, which makes every mean over it NaN.
    """
    steps = list(dict.fromkeys(step.name for step, _ in pairs))
    members = {name: [number for number, (step, _) in enumerate(pairs) if step.name == name] for name in steps}
    every = np.asarray(values.mean(axis=0))
    return {
        (ALL, MEAN): every,
        **{(name, MEAN): np.asarray(values[rows].mean(axis=0)) for name, rows in members.items()},
    }


class Frame:
    """The rated samples of a split on the reported dimensions, and the resamples that everything shares."""

    def __init__(self, samples: Sequence[Sample], pairs: Pairs, seed: int, resamples: int) -> None:
        self.everyone = samples
        self.pairs = pairs
        self.keys = [f"{step.name}.{dimension.name}" for step, dimension in pairs]
        self.samples = [
            sample for sample in samples if any(key in of for of in sample.human.values() for key in self.keys)
        ]
        self.human = {rater: self._human(rater) for rater in raters(self.samples)}
        """Rater → scores (D, n); NaN = not rated."""
        names = [cluster(sample) for sample in self.samples]
        self._index: Groups = groups(names)
        self.clustered = len(set(names)) >= MIN_CLUSTERS
        """Whether resamples are of whole clusters; with few of them they are of single responses."""
        count = int(self._index.max()) + 1 if len(self._index) else 1
        self._weights = np.vstack([np.ones((1, count)), cluster_weights(count, resamples, seed)])

    def _human(self, rater: str) -> Array:
        rows = [[sample.human.get(rater, {}).get(key, np.nan) for sample in self.samples] for key in self.keys]
        return np.array(rows, dtype=np.float64)

    def scores(self, table: ScoreTable, kind: Kind) -> Array:
        """A judge's scores (D, n); NaN = unscored."""
        column, missing = KINDS.index(kind), (np.nan, np.nan)
        rows = [[table.get(key, {}).get(sample.id, missing)[column] for sample in self.samples] for key in self.keys]
        return np.array(rows, dtype=np.float64)

    def agreement(self, a: Array, b: Array) -> Array:
        """`METRICS` of scores (D, n) with scores (D, n) per dimension (M, D, 1 + R): of all rows, then resampled."""
        return np.stack([self._one(number, a[number], b[number]) for number in range(len(self.pairs))], axis=1)

    def against_raters(self, judge: Array) -> Array:
        """`agreement` of `judge` (D, n) with each rater: (raters, M, D, 1 + R)."""
        return np.stack([self.agreement(human, judge) for human in self.human.values()])

    def between_raters(self) -> Array | None:
        """`agreement` of each pair of raters (pairs, M, D, 1 + R); None where there is but one rater."""
        found = [self.agreement(a, b) for a, b in combinations(self.human.values(), 2)]
        return np.stack(found) if found else None

    def _one(self, number: int, a: Array, b: Array) -> Array:
        rows = np.isfinite(a) & np.isfinite(b)
        index = self._index[rows]
        if rows.sum() < 2:
            return np.full((len(METRICS), len(self._weights)), np.nan)
        dimension = self.pairs[number][1]
        names = [headline_qwk(dimension) if name == "qwk" else name for name in METRICS]
        values = np.stack([resampled(name, a[rows], b[rows], index, self._weights, dimension.range) for name in names])
        if self.clustered and len(np.unique(index)) < MIN_CLUSTERS:
            # So few scenarios say nothing about their own spread.
            values[:, 1:] = np.nan
        return values


@dataclass(frozen=True)
class Line:
    """The agreement of a judge, of the judges of a method, or of the raters, on one split."""

    judge: str
    method: str
    score: Kind
    values: Array
    """(M, D, 1 + R), averaged over the raters; first the value, then its resamples. NaN = undefined."""
    n: Array
    """(D,): rows of the rater with the fewest."""
    coverage: Array
    """(D,): share of the split's samples that the judge scored."""
    undefined: tuple[tuple[str, ...], ...]
    """For each of `METRICS` the dimensions for which it is undefined, with the raters where it isn't for all."""

    @property
    def who(self) -> str:
        return f"{self.judge} ({self.method})" if self.judge == MEAN_OF_JUDGES else self.judge


@dataclass(frozen=True)
class Protocol:
    """The protocol's figures of all splits."""

    rows: list[MetricRow]
    """Split by split; of each line first the average over all, then the steps, then the dimensions."""
    notes: dict[str, list[str]]
    """Split → sentences that name what is undefined."""


def protocol(
    run_name: str,
    benchmark: str,
    samples: Sequence[Sample],
    judgements: Iterable[Judgement],
    rubric: Rubric,
    splits: Mapping[str, Collection[str]],
    seed: int,
    simulated: bool,
    resamples: int = RESAMPLES,
) -> Protocol:
    """Rows of judges in order of appearance (expected score, then top), means of judges, and raters among themselves.

    In the rows of averages `n` is that of the dimension and rater with the fewest, `coverage` the mean over dimensions.
    Raters have one score each: their rows have the score "value".
    """
    tables = score_tables(judgements)
    rows: list[MetricRow] = []
    notes: dict[str, list[str]] = {}
    for split, ids in splits.items():
        frame = Frame([sample for sample in samples if sample.id in ids], rubric.reported, seed, resamples)
        if not frame.human:
            continue
        lines = lines_of(frame, tables)
        for line in lines:
            rows += _rows(line, frame, run_name, benchmark, split, simulated)
        notes[split] = _notes(lines, len(frame.pairs))
    return Protocol(rows, notes)


def lines_of(frame: Frame, tables: Mapping[tuple[str, str], ScoreTable]) -> list[Line]:
    """Of each judge, then of the judges of each method that has several, then of the raters."""
    judges = [_judge_line(frame, *judge, kind, table) for judge, table in tables.items() for kind in KINDS]
    methods = dict.fromkeys(line.method for line in judges if line.method != RECORDED)
    means = [
        _mean_line([line for line in judges if (line.method, line.score) == (method, kind)])
        for method in methods
        for kind in KINDS
        if sum(name == method for _, name in tables) > 1
    ]
    human = _human_line(frame)
    return [*judges, *means, *([human] if human else [])]


def _judge_line(frame: Frame, judge: str, method: str, kind: Kind, table: ScoreTable) -> Line:
    scores = frame.scores(table, kind)
    values = frame.against_raters(scores)
    n = np.stack([(np.isfinite(human) & np.isfinite(scores)).sum(axis=1) for human in frame.human.values()])
    scored = np.array([sum(sample.id in table.get(key, {}) for sample in frame.everyone) for key in frame.keys])
    return Line(
        judge=judge,
        method=method,
        score=kind,
        values=values.mean(axis=0),
        n=n.min(axis=0),
        coverage=scored / len(frame.everyone),
        undefined=_undefined(frame, values, list(frame.human)),
    )


def _mean_line(lines: Sequence[Line]) -> Line:
    return Line(
        judge=MEAN_OF_JUDGES,
        method=lines[0].method,
        score=lines[0].score,
        values=np.mean([line.values for line in lines], axis=0),
        n=np.min([line.n for line in lines], axis=0),
        coverage=np.mean([line.coverage for line in lines], axis=0),
        undefined=tuple(
            tuple(dict.fromkeys(name for line in lines for name in line.undefined[number]))
            for number in range(len(METRICS))
        ),
    )


def _human_line(frame: Frame) -> Line | None:
    values = frame.between_raters()
    if values is None:
        return None
    rated = {rater: np.isfinite(scores) for rater, scores in frame.human.items()}
    both = np.stack([(a & b).sum(axis=1) for a, b in combinations(rated.values(), 2)])
    return Line(
        judge=HUMAN_HUMAN,
        method=HUMAN,
        score="value",
        values=values.mean(axis=0),
        n=both.min(axis=0),
        coverage=both.mean(axis=0) / len(frame.everyone),
        undefined=_undefined(frame, values, [f"{a} and {b}" for a, b in combinations(rated, 2)]),
    )


def _undefined(frame: Frame, values: Array, names: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """From values (raters, M, D, 1 + R); `names` of the raters or pairs of raters."""
    missing = np.isnan(values[..., 0])
    found = []
    for of_metric in np.moveaxis(missing, 1, 0):
        titles = []
        for pair, of_raters in zip(frame.pairs, of_metric.T, strict=True):
            which = ", ".join(name for name, gone in zip(names, of_raters, strict=True) if gone)
            if which:
                titles.append(title(*pair) + ("" if of_raters.all() else f" ({which})"))
        found.append(tuple(titles))
    return tuple(found)


def title(step: Step, dimension: Dimension) -> str:
    """Name of a dimension for people: ``Step-1 Fluency``."""
    return f"{step.label or step.name} {dimension.title}"


def _rows(line: Line, frame: Frame, run_name: str, benchmark: str, split: str, simulated: bool) -> list[MetricRow]:
    names = [(step.name, dimension.name) for step, dimension in frame.pairs]
    # (M, D, …) → cells (step, dimension) → (M, …), averages first.
    by_dimension = np.moveaxis(line.values, 1, 0)
    cells = {**averages(by_dimension, frame.pairs), **dict(zip(names, by_dimension, strict=True))}
    rows = []
    for (step, dimension), values in cells.items():
        used = [number for number, name in enumerate(names) if step in (ALL, name[0]) and dimension in (MEAN, name[1])]
        for metric, resamples in zip(METRICS, values, strict=True):
            value = float(resamples[0])
            low, high = percentile_interval(resamples[1:]) if np.isfinite(value) else (None, None)
            rows.append(
                MetricRow(
                    run=run_name,
                    benchmark=benchmark,
                    split=split,
                    judge=line.judge,
                    method=line.method,
                    score=line.score,
                    rater=MEAN,
                    step=step,
                    dimension=dimension,
                    metric=metric,
                    value=value,
                    low=low,
                    high=high,
                    n=int(line.n[used].min()),
                    coverage=float(line.coverage[used].mean()),
                    simulated=simulated,
                )
            )
    return rows


def _notes(lines: Sequence[Line], dimensions: int) -> list[str]:
    """Sentences on what is undefined, those of both kinds of score once."""
    found: dict[tuple[str, str], list[Kind]] = {}
    for line in lines:
        for undefined in dict.fromkeys(filter(None, line.undefined)):
            metrics = [name for name, of in zip(METRICS.values(), line.undefined, strict=True) if of == undefined]
            every = len(undefined) == dimensions and not any(name.endswith(")") for name in undefined)
            which = f"all {dimensions} dimensions" if every else ", ".join(undefined)
            text = (
                f"{', '.join(metrics)} undefined for {which} (constant scores, or fewer than two responses), "
                "so averages over them are missing."
            )
            found.setdefault((line.who, text), []).append(line.score)
    kinds = {"value": "expected", "top": "top"}
    return [
        f"{who}{'' if who == HUMAN_HUMAN else ', ' + ' and '.join(kinds[kind] for kind in scores) + ' scores'}: {text}"
        for (who, text), scores in found.items()
    ]
