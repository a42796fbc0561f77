"""Two simulated raters: true scores, misjudged item by item, so that sums add up.

A rater is a little lenient or strict, overlooks or invents faults of items now and then, and is a point off on levels.
The amounts are set so that the two agree as the raters of CGPST are reported to (ICC .84 on average).
"""

import random
from collections.abc import Sequence

from eval.benchmarks.simulation.decks import chance, normal
from eval.benchmarks.simulation.parts import ResponseParts
from inference.records import Score
from inference.rubric import Dimension, Rubric

RATERS = ("S1", "S2")
LENIENCY = {"S1": 0.08, "S2": -0.08}
"""Added to every score of a rater, in units of the noise."""
FLIPS = {"step1.fluency": 0.05, "step3.fluency": 0.05, "step4.correctly_written": 0.07}
"""Probability that an item is taken for the opposite of what it is."""
OTHER_CATEGORY = 0.07
NOISE = {
    "elaboration": 0.55,
    "originality": 0.62,
    "step2.condition_phrase": 0.42,
    "step2.stem_kvp": 0.5,
    "step2.purpose": 0.52,
    "step2.fs_parameters": 0.34,
    "step2.focus": 1.25,
    "step2.adequacy": 1.3,
    "step4.relevance": 0.75,
    "step5.correctly_used": 0.5,
    "step6": 0.62,
    "step6.humaneness": 0.72,
    "step6.development": 1.1,
}
"""Standard deviation of a score's error before it is rounded, by ``step.dimension``, dimension or step."""


def rate(rubric: Rubric, parts: ResponseParts, truth: Sequence[Score], rater: str, rng: random.Random) -> list[Score]:
    """Scores of one rater, for every dimension that is asked, from those without noise.

    Items that do not count have no further scores; a rater may let one pass, but never an empty one.
    """
    found = {(score.step, score.dimension, score.item): score for score in truth}
    latent = {"step1": parts.challenges, "step3": parts.solutions}
    rated: list[Score] = []
    for step in rubric.answered:
        for item in [None] if step.items is None else range(1, step.items.count + 1):
            counts = item is None or step.name not in latent or latent[step.name][item - 1].kind != "blank"
            if not counts:
                assert step.items is not None
                rated.append(Score(step=step.name, dimension=step.items.valid, item=item, value=0.0, top=0.0))
            for dimension in step.asked:
                true = found.get((step.name, dimension.name, item))
                if not counts:
                    continue
                if true is None:  # an item that does not count, which this rater lets pass
                    assert item is not None
                    true = _latent(step.name, dimension, item, latent[step.name][item - 1].category)
                score = _judged(step.name, dimension, true, rater, rng)
                rated.append(score)
                if step.items is not None and dimension.name == step.items.valid:
                    counts = score.value == 1
    return rated


def _latent(step: str, dimension: Dimension, item: int, category: str) -> Score:
    if dimension.choices:
        return Score(step=step, dimension=dimension.name, item=item, choice=category or "Miscellaneous")
    return Score(step=step, dimension=dimension.name, item=item, value=0.0, top=0.0)


def _judged(step: str, dimension: Dimension, true: Score, rater: str, rng: random.Random) -> Score:
    key = f"{step}.{dimension.name}"
    if dimension.choices:
        other = rng.choice(dimension.choices)
        return true.model_copy(update={"choice": other}) if chance(rng, OTHER_CATEGORY) else true
    assert true.value is not None
    value = int(true.value)
    if key in FLIPS:
        value = 1 - value if chance(rng, FLIPS[key]) else value
    else:
        noise = NOISE.get(key) or NOISE.get(dimension.name) or NOISE[step]
        low, high = dimension.range
        moved = value + noise * (normal(rng) + LENIENCY[rater])
        value = min(high, max(low, int(moved + 0.5) if moved > 0 else 0))
    return true.model_copy(update={"value": float(value), "top": float(value)})
