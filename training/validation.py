"""Validation during training: the served judge's scores and the metrics of `eval`, computed by the same functions."""

import math
from collections.abc import Sequence

import numpy as np

from eval.agreement import agreement
from eval.metrics import Kind, score_tables
from eval.protocol import METRICS, Frame
from inference.aggregation import aggregate
from inference.methods.base import in_order
from inference.prompts import evidence_known, raw_known
from inference.records import Judgement, Sample, Score
from inference.rubric import Learned, Rubric
from inference.scoring import score_from_logprobs
from training.data import Evidence, Row
from training.judge_trainer import JudgeTrainer

Figures = dict[str, float | None]
"""Metric by name; None where it is undefined, as a correlation of constant scores is."""

REPORTED = ("pearson", "spearman", "qwk_half_point", "icc2_1", "rmse")


def judge_rows(trainer: JudgeTrainer, rows: Sequence[Row], rubric: Rubric, batch_size: int) -> list[Score]:
    """Scores of the rows by the model in training, read as an engine's completion is read."""
    logprobs = trainer.score(rows, batch_size)
    return [_score(rubric.learned[row.reader], row, found) for row, found in zip(rows, logprobs, strict=True)]


def _score(learned: Learned, row: Row, logprobs: dict[str, float]) -> Score:
    return score_from_logprobs(learned.step.name, learned.dimension, logprobs, row.item)


def figures(
    rows: Sequence[Row],
    scores: Sequence[Score],
    samples: Sequence[Sample],
    rubric: Rubric,
    evidence: Evidence | None = None,
) -> Figures:
    """`metrics` of the rows and, of rubrics with several dimensions, `whole_metrics` of the responses."""
    found = metrics(rows, scores, rubric)
    if rubric.single:
        return found
    return found | whole_metrics(judgements(rows, scores, samples, rubric, "judge", evidence), samples, rubric)


def metrics(rows: Sequence[Row], scores: Sequence[Score], rubric: Rubric) -> Figures:
    """Agreement of rated rows with their targets by metric, of the expected value and (``top_``) the most likely score.

    Dimensions are weighted alike: each metric is the mean over those with rated rows. None where it is undefined
    (constant scores).
    """
    found: dict[str, list[float]] = {}
    for reader, (_, dimension, _) in enumerate(rubric.learned):
        chosen = [index for index, row in enumerate(rows) if row.reader == reader and row.rated]
        if not chosen:
            continue
        human = np.array([rows[index].target for index in chosen])
        for prefix, kind in (("", "value"), ("top_", "top")):
            judge = np.array([getattr(scores[index], kind) for index in chosen], dtype=float)
            values = agreement(human, judge, dimension.range)
            for name in REPORTED:
                found.setdefault(prefix + name, []).append(values[name])
    means = {name: float(np.mean(values)) for name, values in found.items()}
    return {name: round(value, 6) if math.isfinite(value) else None for name, value in means.items()}


def whole_metrics(found: Sequence[Judgement], samples: Sequence[Sample], rubric: Rubric) -> Figures:
    """Agreement on the rubric's reported dimensions, items added up: the averages of `eval.protocol`.

    ``average_qwk``, ``average_pearson`` and ``average_icc2_1``, each against every rater and averaged over raters and
    dimensions; ``top_average_…`` of the most likely scores. None where one of them is undefined.
    """
    frame = Frame(samples, rubric.reported, seed=0, resamples=0)
    table = next(iter(score_tables(found).values()), {})
    result: Figures = {}
    kinds: tuple[tuple[str, Kind], ...] = (("", "value"), ("top_", "top"))
    for prefix, kind in kinds:
        values = frame.against_raters(frame.scores(table, kind)).mean(axis=(0, 2))[:, 0]
        for name, value in zip(METRICS, values, strict=True):
            result[f"{prefix}average_{name}"] = round(float(value), 6) if math.isfinite(value) else None
    return result


def judgements(
    rows: Sequence[Row],
    scores: Sequence[Score],
    samples: Sequence[Sample],
    rubric: Rubric,
    judge: str,
    evidence: Evidence | None = None,
) -> list[Judgement]:
    """The scores as records, one judgement per sample that has rows: as methods `compact` and `compact_creaeval` do.

    Rows of samples are complete where they were built with `unrated`.
    """
    by_sample: dict[int, list[Score]] = {}
    for row, score in zip(rows, scores, strict=True):
        by_sample.setdefault(row.sample, []).append(score)
    return [_judgement(samples[index], found, rubric, judge, evidence) for index, found in sorted(by_sample.items())]


def _judgement(
    sample: Sample, scores: Sequence[Score], rubric: Rubric, judge: str, evidence: Evidence | None
) -> Judgement:
    parts = () if evidence is None else evidence[sample.id]
    known = raw_known(rubric, sample) if evidence is None else evidence_known(rubric, parts)
    answers = in_order(rubric, [*scores, *known])
    return Judgement(
        sample_id=sample.id,
        judge=judge,
        method="compact" if evidence is None else "compact_creaeval",
        rubric=f"{rubric.name}@{rubric.digest}",
        scores=aggregate(rubric, answers),
        items=tuple(score for score in answers if score.item is not None),
        evidence=tuple(parts),
    )
