"""Validation during training: the served judge's scores and the metrics of `eval`, computed by the same functions."""

import math
from collections.abc import Sequence

import numpy as np

from eval.agreement import agreement
from inference.aggregation import aggregate
from inference.records import Judgement, Sample, Score
from inference.rubric import Rubric
from inference.scoring import score_from_logprobs
from training.data import Row
from training.judge_trainer import JudgeTrainer

Figures = dict[str, float | None]
"""Metric by name; None where it is undefined, as a correlation of constant scores is."""

REPORTED = ("pearson", "spearman", "qwk_half_point", "icc2_1", "rmse")


def judge_rows(trainer: JudgeTrainer, rows: Sequence[Row], rubric: Rubric, batch_size: int) -> list[Score]:
    """Scores of the rows by the model in training, read as an engine's completion is read."""
    logprobs = trainer.score(rows, batch_size)
    return [
        score_from_logprobs(rubric.predicted[row.reader][0].name, rubric.predicted[row.reader][1], found)
        for row, found in zip(rows, logprobs, strict=True)
    ]


def metrics(rows: Sequence[Row], scores: Sequence[Score], rubric: Rubric) -> Figures:
    """Agreement with the targets by metric, of the expected value and (``top_``) of the most likely score.

    Dimensions are weighted alike: each metric is the mean over them. None where it is undefined (constant scores).
    """
    found: dict[str, list[float]] = {}
    for reader, (_, dimension) in enumerate(rubric.predicted):
        chosen = [index for index, row in enumerate(rows) if row.reader == reader]
        human = np.array([rows[index].target for index in chosen])
        for prefix, kind in (("", "value"), ("top_", "top")):
            judge = np.array([getattr(scores[index], kind) for index in chosen], dtype=float)
            values = agreement(human, judge, dimension.range)
            for name in REPORTED:
                found.setdefault(prefix + name, []).append(values[name])
    means = {name: float(np.mean(values)) for name, values in found.items()}
    return {name: round(value, 6) if math.isfinite(value) else None for name, value in means.items()}


def judgements(
    rows: Sequence[Row], scores: Sequence[Score], samples: Sequence[Sample], rubric: Rubric, judge: str
) -> list[Judgement]:
    """The scores as records, one judgement per sample that has rows."""
    by_sample: dict[int, list[Score]] = {}
    for row, score in zip(rows, scores, strict=True):
        by_sample.setdefault(row.sample, []).append(score)
    return [
        Judgement(
            sample_id=samples[index].id,
            judge=judge,
            method="compact",
            rubric=f"{rubric.name}@{rubric.digest}",
            scores=aggregate(rubric, found),
        )
        for index, found in sorted(by_sample.items())
    ]
