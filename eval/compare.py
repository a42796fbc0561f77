"""Differences between judges on the samples both have scored, with paired intervals and p-values.

python -m eval compare runs/first runs/second
python -m eval compare runs/one runs/one --judges prompted learned
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import Field

from eval.agreement import agreement
from eval.metrics import (
    KINDS,
    Kind,
    ScoreTable,
    cluster,
    headline_qwk,
    human_scores,
    judge_scores,
    rated,
    raters,
    score_tables,
)
from eval.protocol import ALL, MEAN, METRICS, Frame, title
from eval.resampling import paired_difference
from eval.rows import Number
from eval.run_files import EvaluatedRun
from eval.significance import differences
from inference.config import StrictModel
from inference.errors import UserError
from inference.records import Sample
from inference.rubric import Dimension, Step


def compared(dimension: Dimension) -> tuple[str, ...]:
    """The metrics whose differences are shown."""
    return ("pearson", headline_qwk(dimension), "rmse", "mae")


class DifferenceRow(StrictModel):
    """One metric of judge a minus that of judge b, both on the same samples."""

    benchmark: str
    split: str
    run_a: str
    judge_a: str
    run_b: str
    judge_b: str
    score: Kind
    rater: str
    step: str
    dimension: str
    metric: str
    a: Number
    b: Number
    difference: Number
    low: Number
    """Lower end of the 95 % interval of the difference (paired cluster bootstrap)."""
    high: Number
    p: Number
    """Two-sided bootstrap p-value of "no difference", not adjusted for the number of comparisons."""
    n: int = Field(ge=0)
    """Samples scored by both judges and rated by the rater."""
    simulated: bool


@dataclass(frozen=True)
class Side:
    """One of the two judges of a comparison."""

    run: str
    judge: str
    table: ScoreTable


@dataclass(frozen=True)
class Setting:
    """On what two judges are compared."""

    benchmark: str
    split: str
    samples: Sequence[Sample]
    """The samples of the split."""
    rater: str
    step: Step
    dimension: Dimension
    simulated: bool
    seed: int
    resamples: int

    @property
    def key(self) -> str:
        return f"{self.step.name}.{self.dimension.name}"


@dataclass(frozen=True)
class Comparison:
    rows: list[DifferenceRow]
    notes: list[str]
    """Sentences to show the user."""
    averaged: dict[tuple[str, str], str]
    """(step, dimension) of the rows averaged over the raters → name for people."""


def difference_rows(setting: Setting, a: Side, b: Side, kinds: Sequence[Kind] = KINDS) -> list[DifferenceRow]:
    """`compared` for each of `kinds`. Differences of fewer than two common samples are None."""
    used = rated(setting.samples, setting.rater, setting.key, a.table, b.table)
    human = human_scores(used, setting.rater, setting.key)
    clusters = [cluster(sample) for sample in used]
    rows = []
    for kind in kinds:
        scores_a, scores_b = (judge_scores(used, side.table, setting.key, kind) for side in (a, b))
        values_a, values_b = (agreement(human, scores, setting.dimension.range) for scores in (scores_a, scores_b))
        for metric in compared(setting.dimension):
            found = paired_difference(
                *(human, scores_a, scores_b, clusters, metric, setting.seed),
                score_range=setting.dimension.range,
                resamples=setting.resamples,
            )
            rows.append(
                DifferenceRow(
                    benchmark=setting.benchmark,
                    split=setting.split,
                    run_a=a.run,
                    judge_a=a.judge,
                    run_b=b.run,
                    judge_b=b.judge,
                    score=kind,
                    rater=setting.rater,
                    step=setting.step.name,
                    dimension=setting.dimension.name,
                    metric=metric,
                    a=values_a[metric],
                    b=values_b[metric],
                    difference=found.difference,
                    low=found.low,
                    high=found.high,
                    p=found.p,
                    n=found.n,
                    simulated=setting.simulated,
                )
            )
    return rows


def compare_runs(first: EvaluatedRun, second: EvaluatedRun, judges: tuple[str, str] | None = None) -> Comparison:
    """First run minus second run: the judges of the same name, or `judges` (one of each run), on common samples.

    With several reported dimensions, those of the averages over raters (`eval.protocol`) come first: over all
    dimensions, over those of each step, then of each dimension.
    Ratings, clusters and seed are the first run's. Raises UserError where samples, splits, raters, dimensions or
    judges have nothing in common.
    """
    pairs = _pairs(first, second, judges)
    settings = _settings(first, second)
    notes = [*_rating_notes(first, second), *_scale_notes(first, second)]
    tables = [{judge: table for (judge, _), table in score_tables(run.judgements).items()} for run in (first, second)]
    sides = [(Side(first.settings.run, a, tables[0][a]), Side(second.settings.run, b, tables[1][b])) for a, b in pairs]
    rows, unrated = _overall(first, second, settings, sides)
    notes += unrated
    rows += [row for setting in settings for a, b in sides for row in difference_rows(setting, a, b)]
    if not any(row.n for row in rows):
        raise UserError(
            f"{first.path} and {second.path}: no sample was scored by both judges, so nothing can be compared"
        )
    return Comparison(rows, notes, _names(first))


def _names(run: EvaluatedRun) -> dict[tuple[str, str], str]:
    reported = run.settings.rubric.reported
    return {
        (ALL, MEAN): "all",
        **{(step.name, MEAN): step.label or step.name for step, _ in reported},
        **{(step.name, dimension.name): title(step, dimension) for step, dimension in reported},
    }


def _overall(
    first: EvaluatedRun, second: EvaluatedRun, settings: Sequence[Setting], sides: Sequence[tuple[Side, Side]]
) -> tuple[list[DifferenceRow], list[str]]:
    """Differences of the averages over raters and dimensions, where both runs have the same several dimensions.

    Also sentences on splits in which no reported dimension is rated.
    """
    reported = first.settings.rubric.reported
    if len(reported) < 2 or not all(_same_scale(pair, second) for pair in reported):
        return [], []
    rows: list[DifferenceRow] = []
    notes: list[str] = []
    for setting in {setting.split: setting for setting in settings}.values():
        frame = Frame(setting.samples, reported, setting.seed, setting.resamples)
        if not frame.human:
            notes.append(f"{setting.split}: nobody has rated a reported dimension; {_NO_AVERAGES}")
            continue
        rows += [row for a, b in sides for kind in KINDS for row in average_rows(setting, frame, a, b, kind)]
    return rows, notes


_NO_AVERAGES = "averages over dimensions are left out"


def _scale_notes(first: EvaluatedRun, second: EvaluatedRun) -> list[str]:
    """Which dimensions are not compared, and whether averages over dimensions need them."""
    ours, theirs = (
        {f"{step.name}.{d.name}": "{} to {}".format(*d.range) for step, d in run.settings.rubric.scored}
        for run in (first, second)
    )
    shared = [key for key in ours if key in theirs]
    changed = [f"{key} ({ours[key]}, and {theirs[key]})" for key in shared if ours[key] != theirs[key]]
    alone = [key for key in ours | theirs if key not in shared]
    reported = first.settings.rubric.reported
    averaged = len(reported) < 2 or all(_same_scale(pair, second) for pair in reported)
    tail = "" if averaged else f"; {_NO_AVERAGES}"
    notes = []
    if changed:
        notes.append(f"not compared, since the runs' scales differ: {', '.join(changed)}{tail}")
    if alone:
        notes.append(f"not compared, since only one of the runs has them: {', '.join(alone)}{tail}")
    return notes


def average_rows(setting: Setting, frame: Frame, a: Side, b: Side, kind: Kind) -> list[DifferenceRow]:
    """The metrics of `eval.protocol`, averaged over raters; rater and dimension of `setting` play no part."""
    return [
        DifferenceRow(
            benchmark=setting.benchmark,
            split=setting.split,
            run_a=a.run,
            judge_a=a.judge,
            run_b=b.run,
            judge_b=b.judge,
            score=kind,
            rater=MEAN,
            step=step,
            dimension=dimension,
            metric=metric,
            a=float(found.a[number]),
            b=float(found.b[number]),
            difference=float(found.a[number] - found.b[number]),
            low=float(found.low[number]),
            high=float(found.high[number]),
            p=float(found.p[number]),
            n=found.n,
            simulated=setting.simulated,
        )
        for (step, dimension), found in differences(frame, a.table, b.table, kind).items()
        for number, metric in enumerate(METRICS)
    ]


def _pairs(first: EvaluatedRun, second: EvaluatedRun, judges: tuple[str, str] | None) -> list[tuple[str, str]]:
    if judges is None:
        common = [(judge, judge) for judge in first.judges if judge in second.judges]
        if not common:
            raise UserError(
                f"the runs have no judge in common ({first.path}: {', '.join(first.judges)}; "
                f"{second.path}: {', '.join(second.judges)}); name one of each: --judges A B"
            )
        return common
    for run, judge in zip((first, second), judges, strict=True):
        if judge not in run.judges:
            raise UserError(f"{run.path}: has no judge {judge!r}; it has {', '.join(run.judges)}")
    return [judges]


def _settings(first: EvaluatedRun, second: EvaluatedRun) -> list[Setting]:
    """All splits × raters × dimensions that both runs have."""
    others = {sample.id for sample in second.samples}
    if not any(sample.id in others for sample in first.samples):
        raise UserError(f"{first.path} and {second.path}: no sample id is in both; compare runs on the same benchmark")
    scored = [pair for pair in first.settings.rubric.scored if _same_scale(pair, second)]
    names = [rater for rater in raters(first.samples) if rater in raters(second.samples)]
    splits = [split for split in first.splits if first.splits[split] & second.splits.get(split, frozenset())]
    for what, found in (("split", splits), ("rater", names), ("dimension of the same scale", scored)):
        if not found:
            raise UserError(f"{first.path} and {second.path}: no {what} is in both, so nothing can be compared")
    return [
        Setting(
            benchmark=first.benchmark,
            split=split,
            samples=[sample for sample in first.samples if sample.id in first.splits[split] & second.splits[split]],
            rater=rater,
            step=step,
            dimension=dimension,
            simulated=first.simulated or second.simulated,
            seed=first.settings.seed,
            resamples=first.settings.resamples,
        )
        for split in splits
        for rater in names
        for step, dimension in scored
    ]


def _same_scale(pair: tuple[Step, Dimension], run: EvaluatedRun) -> bool:
    step, dimension = pair
    return any(
        (other_step.name, other.name, other.range) == (step.name, dimension.name, dimension.range)
        for other_step, other in run.settings.rubric.scored
    )


def _rating_notes(first: EvaluatedRun, second: EvaluatedRun) -> list[str]:
    ratings = {sample.id: sample.human for sample in second.samples}
    shared = [sample for sample in first.samples if sample.id in ratings]
    changed = sum(sample.human != ratings[sample.id] for sample in shared)
    notes = [
        f"{len(shared)} samples are in both runs ({len(first.samples)} in the first, {len(ratings)} in the second)"
    ]
    if changed:
        notes.append(f"the human ratings of {changed} common samples differ between the runs; the first run's are used")
    return notes
