"""From what a judge (or a rater) answered to the scores of a rubric: items add up, derived dimensions are computed.

Every sum is code's, never a model's. Values are expectations: P(valid) weights what else an item scores, so a sum is
Σᵢ P(validᵢ) · valueᵢ; the number of different choices is Σ over choices c of 1 − Πᵢ (1 − P(validᵢ) · Pᵢ(c)), items
taken as independent. `top` does the same with the most likely answers. What lacks an answer it needs is unscored; an
answer that is none (no value, a value off the item's range, a name that is no choice) counts as lacking. An item that
most likely is not valid needs no choice: it has none, and adds nothing to the number of different ones.
"""

import math
from collections.abc import Callable, Mapping, Sequence

from inference.errors import quoted
from inference.records import Score
from inference.rubric import Dimension, Rubric, Step, terms

_ROUNDING = 1e-9
_Answers = Mapping[tuple[str, str, int | None], Score]
"""(step, dimension, item) → answer."""


def aggregate(rubric: Rubric, answers: Sequence[Score]) -> tuple[Score, ...]:
    """One score per pair of `rubric.scored`, in its order.

    A dimension that was answered for the step as a whole is taken as it is, also where it could be derived. Where the
    probabilities of choices do not add up to 1, they are divided by their sum.
    """
    dimensions = {(step.name, dimension.name): dimension for step in rubric.steps for dimension in step.dimensions}
    found: _Answers = {
        (score.step, score.dimension, score.item): _sound(dimensions.get((score.step, score.dimension)), score)
        for score in answers
    }
    done: dict[str, Score] = {}
    # Sums come last in each step, in the order of the file, so that their parts are there.
    for step, dimension in sorted(rubric.scored, key=lambda pair: (rubric.steps.index(pair[0]), bool(pair[1].sum_of))):
        whole = found.get((step.name, dimension.name, None))
        done[f"{step.name}.{dimension.name}"] = whole or _derived(step, dimension, found, done)
    return tuple(done[f"{step.name}.{dimension.name}"] for step, dimension in rubric.scored)


def _sound(dimension: Dimension | None, score: Score) -> Score:
    """The answer as it counts: itself, with probabilities that add up to 1, or unscored with a reason."""
    if dimension is None or score.unscored is not None:
        return score
    if dimension.choices:
        return _sound_choice(dimension, score)
    if score.value is None:
        return _without(score, f"no answer on {dimension.title}")
    low, high = dimension.range
    given = (score.value, _top(score))
    # Expected values may leave the range by a rounding error.
    off = [number for number in given if not low - _ROUNDING <= number <= high + _ROUNDING]
    if score.item is not None and dimension.per_item and off:
        return _without(score, f"{dimension.title} {off[0]:g} is outside the range {low} to {high} of an item")
    return score


def _sound_choice(dimension: Dimension, score: Score) -> Score:
    distribution = score.distribution or {}
    if score.choice is None:
        return _without(score, f"no answer on {dimension.title}")
    unknown = [name for name in (score.choice, *distribution) if name not in dimension.choices]
    if unknown:
        return _without(score, f"{quoted(unknown[0])} is none of the names of {dimension.title}")
    if not distribution:
        return score
    highest = max(distribution.values())
    if highest <= 0 or min(distribution.values()) < 0:
        return _without(score, f"the probabilities of {dimension.title} are negative or all 0")
    # Divided by the highest first: sums of very large ones overflow.
    total = math.fsum(p / highest for p in distribution.values())
    if abs(total * highest - 1) <= _ROUNDING:
        return score
    return score.model_copy(update={"distribution": {name: p / highest / total for name, p in distribution.items()}})


def _without(score: Score, reason: str) -> Score:
    return Score(step=score.step, dimension=score.dimension, item=score.item, unscored=reason)


def _derived(step: Step, dimension: Dimension, found: _Answers, done: Mapping[str, Score]) -> Score:
    if dimension.sum_of:
        return _sum(step, dimension, [(part, done[part]) for part in terms(step, dimension)])
    if step.items is None:
        return Score(step=step.name, dimension=dimension.name, unscored=f"no answer on {dimension.title}")
    name = dimension.distinct or dimension.name
    missing = next((fault for item in _numbers(step) if (fault := _missing(step, name, item, found)) is not None), None)
    if missing is not None:
        return Score(step=step.name, dimension=dimension.name, unscored=missing)
    combine = _distinct if dimension.distinct else _total
    return Score(
        step=step.name,
        dimension=dimension.name,
        value=combine(step, name, found, _value),
        top=combine(step, name, found, _top),
    )


def _numbers(step: Step) -> range:
    assert step.items is not None
    return range(1, step.items.count + 1)


def _missing(step: Step, name: str, item: int, found: _Answers) -> str | None:
    """Why `name` of `item` cannot count; None where it can, or needs not: an item that surely is not valid."""
    assert step.items is not None
    for needed in dict.fromkeys(filter(None, (step.items.valid, name))):
        answer = found.get((step.name, needed, item))
        if answer is None or answer.unscored is not None:
            if answer is not None and needed == name and step.dimension(name).choices and _unlikely(step, item, found):
                return None
            return f"item {item}: {answer.unscored if answer else f'no answer on {needed}'}"
        if needed == step.items.valid and _value(answer) == 0 and _top(answer) == 0:
            return None
    return None


def _unlikely(step: Step, item: int, found: _Answers) -> bool:
    """Whether an item most likely does not count."""
    assert step.items is not None
    return bool(step.items.valid) and _top(found[step.name, step.items.valid, item]) == 0


def _value(score: Score) -> float:
    assert score.value is not None
    return score.value


def _top(score: Score) -> float:
    return _value(score) if score.top is None else score.top


_Read = Callable[[Score], float]


def _counts(step: Step, item: int, found: _Answers, read: _Read) -> float:
    """How far an item counts: P(valid), 1 where every item does."""
    assert step.items is not None
    return read(found[step.name, step.items.valid, item]) if step.items.valid else 1.0


def _total(step: Step, name: str, found: _Answers, read: _Read) -> float:
    assert step.items is not None
    parts = []
    for item in _numbers(step):
        weight = _counts(step, item, found, read)
        if name == step.items.valid:
            parts.append(weight)
        elif weight > 0:
            parts.append(weight * read(found[step.name, name, item]))
    return math.fsum(parts)


def _distinct(step: Step, name: str, found: _Answers, read: _Read) -> float:
    absent: dict[str, float] = {}
    for item in _numbers(step):
        weight = _counts(step, item, found, read)
        answer = found.get((step.name, name, item))
        if weight > 0 and answer is not None and answer.unscored is None:
            for choice, probability in _choices(answer, read).items():
                absent[choice] = absent.get(choice, 1.0) * (1.0 - weight * probability)
    return math.fsum(1.0 - probability for probability in absent.values())


def _choices(score: Score, read: _Read) -> Mapping[str, float]:
    assert score.choice is not None
    return score.distribution if score.distribution and read is _value else {score.choice: 1.0}


def _sum(step: Step, dimension: Dimension, parts: Sequence[tuple[str, Score]]) -> Score:
    missing = next((f"{key}: {part.unscored}" for key, part in parts if part.unscored is not None), None)
    if missing is not None:
        return Score(step=step.name, dimension=dimension.name, unscored=missing)
    scores = [part for _, part in parts]
    return Score(
        step=step.name,
        dimension=dimension.name,
        value=math.fsum(map(_value, scores)),
        top=math.fsum(map(_top, scores)),
    )
