"""A small rubric of several dimensions with rated and judged samples, for tests of the protocol."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pingouin
from scipy import stats
from sklearn.metrics import cohen_kappa_score

from eval.protocol import Protocol, protocol
from inference.records import Judgement, Sample, Score
from inference.rubric import Dimension, Rubric, Step

RUBRIC = Rubric(
    name="plan",
    description="d",
    steps=(
        Step(
            name="ideas",
            label="Ideas",
            task="t",
            dimensions=(
                Dimension(name="fluency", label="Fluency", description="d", range=(0, 4)),
                Dimension(name="novelty", label="Novelty", description="d", range=(0, 4)),
                Dimension(name="overall", description="d", sum_of=("fluency", "novelty"), reported=False),
            ),
        ),
        Step(
            name="plan",
            label="Plan",
            task="t",
            dimensions=(Dimension(name="clarity", label="Clarity", description="d", range=(1, 5)),),
        ),
    ),
)
KEYS = ("ideas.fluency", "ideas.novelty", "plan.clarity")


def sample(number: int, *ratings: Sequence[float | None], scenario: str = "") -> Sample:
    human = {
        f"rater{rater}": {key: score for key, score in zip(KEYS, scores, strict=True) if score is not None}
        for rater, scores in enumerate(ratings, start=1)
    }
    responses = {"ideas": "x", "plan": "x"}
    return Sample(id=f"s{number}", scenario="a long text", scenario_id=scenario, responses=responses, human=human)


def judgements(judge: str, method: str, *scores: Sequence[float | None], shift: float = 0.0) -> list[Judgement]:
    """One per sample; top = the score, value = the score + `shift`."""
    return [
        Judgement(
            sample_id=f"s{number}",
            judge=judge,
            method=method,
            rubric=f"plan@{RUBRIC.digest}",
            scores=tuple(
                Score(step=key.split(".")[0], dimension=key.split(".")[1], unscored="cut off")
                if score is None
                else Score(step=key.split(".")[0], dimension=key.split(".")[1], value=score + shift, top=score)
                for key, score in zip(KEYS, of_sample, strict=True)
            ),
        )
        for number, of_sample in enumerate(scores)
    ]


def of(samples: Sequence[Sample], judged: Sequence[Judgement], resamples: int = 100) -> Protocol:
    splits = {"test": {one.id for one in samples}}
    return protocol("run", "plan", samples, judged, RUBRIC, splits, 0, True, resamples)


Find = Callable[..., float | None]


def finder(found: Protocol) -> Find:
    def find(judge: str, step: str, dimension: str, metric: str, score: str = "top", method: str = "") -> float | None:
        (value,) = (
            row.value
            for row in found.rows
            if (row.judge, row.step, row.dimension, row.metric, row.score) == (judge, step, dimension, metric, score)
            and method in ("", row.method)
        )
        return value

    return find


# Four samples, scores on (fluency, novelty, clarity).
RATER_1 = [(0, 0, 1), (1, 2, 2), (2, 2, 4), (3, 4, 5)]
RATER_2 = [(0, 1, 1), (1, 1, 3), (2, 3, 3), (3, 3, 5)]
JUDGE = [(3, 0, 1), (2, 2, 2), (1, 2, 4), (0, 4, 5)]
FOUR = [sample(number, *ratings) for number, ratings in enumerate(zip(RATER_1, RATER_2, strict=True))]


def random_plan(count: int, scenarios: int, seed: int = 0) -> tuple[list[Sample], list[list[Judgement]]]:
    """Samples with two raters, and three judges, of whom the second is the best; some cells are missing."""
    rng = np.random.default_rng(seed)

    def noisy(truth: np.ndarray[Any, Any], noise: float, missing: float) -> list[list[float | None]]:
        drawn = np.clip(np.rint(truth + rng.normal(0, noise, truth.shape)), (0, 0, 1), (4, 4, 5))
        return [[None if rng.random() < missing else float(x) for x in row] for row in drawn]

    truth = rng.uniform((0, 0, 1), (4, 4, 5), (count, 3))
    raters = [noisy(truth, 0.5, missing) for missing in (0.0, 0.05)]
    samples = [sample(i, raters[0][i], raters[1][i], scenario=f"FS{i % scenarios}") for i in range(count)]
    judges = [("a", 1.0, 0.1), ("b", 0.6, 0.0), ("c", 1.5, 0.05)]
    return samples, [
        judgements(name, "direct" if name != "c" else "cot", *noisy(truth, noise, missing), shift=0.25)
        for name, noise, missing in judges
    ]


def naive(a: Sequence[float], b: Sequence[float], labels: range) -> tuple[float, float, float]:
    """(QWK, r, ICC(2,1)) by other libraries."""
    rounded = [[math.floor(x + 0.5) for x in column] for column in (a, b)]
    kappa = cohen_kappa_score(*rounded, labels=list(labels), weights="quadratic")
    table = pd.DataFrame({"t": list(range(len(a))) * 2, "r": [0] * len(a) + [1] * len(a), "s": [*a, *b]})
    icc = pingouin.intraclass_corr(table, targets="t", raters="r", ratings="s").set_index("Type")["ICC"]
    return float(kappa), float(stats.pearsonr(a, b).statistic), float(icc.filter(regex=r"^ICC2$|\(A,1\)").iloc[0])


def rating(rater: str) -> Callable[[Sample, str], float | None]:
    return lambda one, key: one.human[rater].get(key)


def verdict(judged: Sequence[Judgement], kind: str) -> Callable[[Sample, str], float | None]:
    scores = {(one.sample_id, score.key): getattr(score, kind) for one in judged for score in one.scores}
    return lambda one, key: scores[one.id, key]
