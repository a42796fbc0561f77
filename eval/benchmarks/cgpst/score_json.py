"""The score file of the released pipeline ↔ judgements.

    {"A01_FS1": {"Step-1": {"each_challenge": [{"id": 1, "Fluency": 1, "Elaboration": 1, "Originality": 0}, …],
                            "summary": {"Fluency": 8, "Flexibility": 5, …, "Overall": 24}},
                 "Step-2": {"Condition Phrase": 2, …, "Overall": 22}, …}}

Whole numbers, null where there is no score. Sums are computed on both ways, never taken from the file: of a step whose
items are all there the summary is used for Flexibility alone, since categories are not in the file.
"""

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from eval.benchmarks.cgpst.exchange import read_by_id, steps_of
from eval.benchmarks.cgpst.layout import PUBLISHED, LineEnd, need, sound, write_json
from eval.benchmarks.cgpst.names import ITEM_LISTS, TWICE, filed, keys, named_twice, official, official_steps
from inference.aggregation import aggregate
from inference.errors import UserError, named, named_list
from inference.records import Judgement, Score
from inference.rubric import Dimension, Rubric, Step
from inference.scoring import score_from_number, unscored

METHOD = "recorded"
SUMMARY = "summary"
ID = "id"
NO_SCORE = "no recorded score"
MOST_ITEMS = 50


def read_scores(path: Path | str, rubric: Rubric, judge: str) -> list[Judgement]:
    """Judgements (method "recorded") of `judge`, one per answer, in file order.

    A number off the range of `rubric`, or what is no number, is unscored with a reason, as is all that is missing.
    Raises UserError, with the place, for another structure.
    """
    judgements = []
    for name, value in read_by_id(path, "scores").items():
        place = f"{path}: {named(name)}"
        items: list[Score] = []
        whole: list[Score] = []
        for label, step in steps_of(place, value, rubric).items():
            listed = _items(f"{place}, {label}", step, value[label])
            items += listed
            whole += _whole(f"{place}, {label}", step, value[label], rubric, listed)
        judgements.append(
            Judgement(
                sample_id=sound(name),
                judge=judge,
                method=METHOD,
                rubric=f"{rubric.name}@{rubric.digest}",
                scores=aggregate(rubric, [*items, *whole]),
                items=tuple(items),
            )
        )
    return judgements


def _items(place: str, step: Step, value: Any) -> list[Score]:
    if step.items is None:
        need(isinstance(value, dict), place, "needs an object of dimensions")
        return []
    key = ITEM_LISTS[step.label]
    whole = isinstance(value, dict) and set(value) == {key, SUMMARY} and isinstance(value[SUMMARY], dict)
    need(
        whole and isinstance(value[key], list), place, f'needs {{"{key}": [items], "{SUMMARY}": {{dimension: number}}}}'
    )
    scores: list[Score] = []
    for position, item in enumerate(value[key], start=1):
        where = f"{place}, {key} {position}"
        number = item.get(ID) if isinstance(item, dict) else None
        need(isinstance(number, int) and number == position <= MOST_ITEMS, where, f'needs "{ID}": {position}')
        known = keys(_listed(step))
        for name, given in item.items():
            if name != ID:
                need(name in known, f"{where}, {named(name)}", f"no rating of an item; those are {named_list(known)}")
                scores.append(_score(step, known[name], given, position))
    return scores


def _listed(step: Step) -> tuple[Dimension, ...]:
    """What stands with the items: everything they are rated on but choices, in the rubric's order."""
    return tuple(dimension for dimension in step.asked if dimension.per_item and not dimension.choices)


def _whole(place: str, step: Step, value: Mapping[str, Any], rubric: Rubric, items: list[Score]) -> list[Score]:
    """The scores of the step that can't be computed from its items."""
    cells = value if step.items is None else value[SUMMARY]
    known = keys(filed(step))
    for name in cells:
        need(name in known, f"{place}, {named(name)}", f"no dimension of {step.label}; those are {named_list(known)}")
    for name in named_twice(cells, known):
        need(False, f"{place}, {named(name)}", TWICE)
    ranges = {f"{owner.name}.{d.name}": d for owner, d in rubric.scored}
    given = {known[name].name: number for name, number in cells.items()}
    return [
        _score(step, ranges[f"{step.name}.{d.name}"], given[d.name], None)
        for d in filed(step)
        if d.name in given and not d.sum_of and not _from_items(step, d, items)
    ]


def _from_items(step: Step, dimension: Dimension, items: list[Score]) -> bool:
    if step.items is None:
        return False
    numbers = {score.item for score in items if score.dimension == dimension.name}
    return numbers >= set(range(1, step.items.count + 1))


def _score(step: Step, dimension: Dimension, given: Any, item: int | None) -> Score:
    if given is None:
        return unscored(step.name, dimension, NO_SCORE, item)
    return score_from_number(step.name, dimension, given, item)


def write_scores(
    path: Path | str, judgements: Iterable[Judgement], rubric: Rubric, line_end: LineEnd = PUBLISHED
) -> None:
    """Write the most likely scores, rounded to whole numbers (ties upward), of one judge, one judgement per answer.

    Raises UserError where an answer occurs twice.
    """
    content: dict[str, Any] = {}
    for judgement in judgements:
        if judgement.sample_id in content:
            raise UserError(
                f"{named(judgement.sample_id)}: two judgements of one answer; a score file holds one judge, one repeat"
            )
        content[judgement.sample_id] = _judgement_json(judgement, rubric)
    write_json(path, content, line_end)


def _judgement_json(judgement: Judgement, rubric: Rubric) -> dict[str, Any]:
    sums = {f"{step.name}.{d.name}" for step, d in rubric.scored if d.sum_of}
    rounded = [_rounded(score) for score in judgement.scores if score.key not in sums]
    # Computed from what is written, so that the file adds up.
    whole = {score.key: _number(score) for score in aggregate(rubric, rounded)}
    content: dict[str, Any] = {}
    for step in official_steps(rubric):
        cells = {official(d): whole[f"{step.name}.{d.name}"] for d in filed(step)}
        listed = _list_json(step, judgement)
        content[step.label] = cells if step.items is None else {ITEM_LISTS[step.label]: listed, SUMMARY: cells}
    return content


def _list_json(step: Step, judgement: Judgement) -> list[dict[str, int | None]]:
    names = {dimension.name: official(dimension) for dimension in _listed(step)}
    rows: dict[int, dict[str, int | None]] = {}
    for score in judgement.items:
        if score.step == step.name and score.item is not None and score.dimension in names:
            row = rows.setdefault(score.item, {ID: score.item})
            row[names[score.dimension]] = _number(_rounded(score))
    return [rows[number] for number in sorted(rows)]


def _rounded(score: Score) -> Score:
    top = score.value if score.top is None else score.top
    if top is None:
        return score
    whole = float(math.floor(top + 0.5))
    return score.model_copy(update={"value": whole, "top": whole})


def _number(score: Score) -> int | None:
    return None if score.value is None else int(score.value)
