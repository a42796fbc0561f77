"""Floors for learned judges: TF-IDF and ridge regression on the words of a text, without any understanding of it."""

from collections.abc import Sequence

import numpy as np

from eval.agreement import Array
from inference.records import Judgement, Sample, Score, StepEvidence
from inference.rubric import Rubric

METHOD = "ridge"
STRENGTHS = tuple(float(10.0**power) for power in range(-2, 4))
"""Ridge penalties to choose from, by leave-one-out error on the training part."""


def evidence_text(parts: Sequence[StepEvidence], step: str) -> str:
    """All evidence on a step, item by item."""
    found = next((part for part in parts if part.step == step), StepEvidence(step=step))
    return "\n".join([*found.texts.values(), *(" ".join(item.values()) for item in found.items)])


def ridge_floor(
    judge: str,
    rubric: Rubric,
    train: Sequence[tuple[Sample, dict[str, str]]],
    test: Sequence[tuple[Sample, dict[str, str]]],
) -> list[Judgement]:
    """Scores of `test` for every reported dimension, predicted from the text of the dimension's step alone.

    Each sample comes with its texts by step. Targets are the means of the training samples' raters; words and pairs of
    words that occur in one training text only are left out; predictions are clipped to the range.
    """
    scores: list[list[Score]] = [[] for _ in test]
    for step, dimension in rubric.reported:
        key = f"{step.name}.{dimension.name}"
        rated = [(texts[step.name], [r[key] for r in sample.human.values() if key in r]) for sample, texts in train]
        known = [(text, float(np.mean(ratings))) for text, ratings in rated if ratings]
        predicted = _predict(
            [text for text, _ in known], [y for _, y in known], [texts[step.name] for _, texts in test]
        )
        for found, value in zip(scores, np.clip(predicted, *dimension.range), strict=True):
            found.append(Score(step=step.name, dimension=dimension.name, value=float(value), top=float(np.rint(value))))
    return [
        Judgement(
            sample_id=sample.id,
            judge=judge,
            method=METHOD,
            rubric=f"{rubric.name}@{rubric.digest}",
            scores=tuple(found),
        )
        for (sample, _), found in zip(test, scores, strict=True)
    ]


def _predict(texts: Sequence[str], targets: Sequence[float], unseen: Sequence[str]) -> Array:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import RidgeCV

    words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, min_df=2)
    model = RidgeCV(alphas=STRENGTHS).fit(words.fit_transform(texts), targets)
    return np.asarray(model.predict(words.transform(unseen)), dtype=np.float64)
