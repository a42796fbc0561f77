"""Rating files and samples: what the raters gave as human scores, and scores as what a rater would have filed.

The summaries of the steps are the authority on a rater's scores; Integrity, the steps' Overall and the Total are always
computed from them. What is missing in the file stays missing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from eval.benchmarks.cgpst.layout import need, sound
from eval.benchmarks.cgpst.names import (
    CONTENT,
    INVALID,
    SUMMARY,
    TOTAL,
    TOTAL_KEY,
    TWICE,
    filed,
    item_dimensions,
    keys,
    named_twice,
    official,
    official_steps,
)
from eval.benchmarks.cgpst.ranges import fitting, variant_of
from eval.benchmarks.cgpst.ratings import Entry, RaterScores, Row, Value, item_place, padded_items
from eval.benchmarks.cgpst.scenarios import Scenario, scenario_subject, scenario_text
from inference.aggregation import aggregate
from inference.errors import UserError, named, quoted, shortened
from inference.records import Sample, Score
from inference.rubric import Dimension, Rubric, Step

CHECK = "correct the file; `python -m eval data check FILE` lists all its faults"


def to_samples(entries: Sequence[Entry], rubric: Rubric, scenarios: Mapping[str, Scenario]) -> list[Sample]:
    """One sample per answer, in order, with the raters "rater1" and "rater2" by position.

    `human` has every dimension of ``rubric.scored`` that is there or follows from what is there; `human_items` what
    stands with the items: of items that don't count Fluency 0 alone, and so of items that are only filled up.

    Raises UserError, with the place, for ids that occur twice, scenarios that are not in `scenarios`, and scores that
    are no whole numbers in the range of `rubric`.
    """
    samples: dict[str, Sample] = {}
    for entry in entries:
        if entry.id in samples:
            raise UserError(f"{entry.place()}: the id occurs twice; {CHECK}")
        samples[entry.id] = _sample(entry, rubric, scenarios)
    return list(samples.values())


def _sample(entry: Entry, rubric: Rubric, scenarios: Mapping[str, Scenario]) -> Sample:
    given = {number: scores for number, scores in enumerate(entry.scores) if scores is not None}
    first = next(iter(given.values()), RaterScores({}))
    return Sample(
        id=sound(entry.id),
        scenario=scenario_text(entry.place(), sound(entry.scenario_id), scenarios),
        scenario_id=sound(entry.scenario_id),
        subject=scenario_subject(scenarios[sound(entry.scenario_id)]),
        responses={step.name: response_text(first, step) for step in official_steps(rubric)},
        human={f"rater{number + 1}": step_scores(entry, number, rubric) for number in given},
        human_items={f"rater{number + 1}": item_scores(entry, number, rubric) for number in given},
    )


def response_text(scores: RaterScores, step: Step) -> str:
    """The contents of the items, one after the other on lines of their own, numbered where they are themselves."""
    return sound("\n".join(row.content for row in scores.items(step)).rstrip("\n"))


def step_scores(entry: Entry, rater: int, rubric: Rubric) -> dict[str, float]:
    """Scores of a rater (counted from 0), by "step.dimension". Raises UserError for what is no score of `rubric`."""
    scores = entry.scores[rater]
    assert scores is not None
    answers = []
    for step in official_steps(rubric):
        _check_whole(entry.place(rater, step.label), step, scores)
    for step, dimension in rubric.scored:
        if dimension.sum_of:
            continue
        cells = scores.whole(step)
        value = next((cells[key] for key in keys([dimension]) if cells.get(key) is not None), None)
        if value is not None:
            place = entry.place(rater, step.label)
            answers.append(_score(place, step, dimension, None, value))
    return {score.key: score.value for score in aggregate(rubric, answers) if score.value is not None}


def _check_whole(place: str, step: Step, scores: RaterScores) -> None:
    """Raises UserError where two rows, or two spellings in one, hold the scores of the whole step."""
    rows = sum(row.is_summary == (step.items is not None) for row in scores.rows(step))
    what = "text" if step.items is None else SUMMARY
    need(rows <= 1, place, f"needs 1 {what}, has {rows}; {CHECK}")
    for key in named_twice(scores.whole(step), keys(filed(step))):
        need(False, f"{place}, {named(key)}", f"{TWICE}; {CHECK}")


def item_scores(entry: Entry, rater: int, rubric: Rubric) -> tuple[Score, ...]:
    """Ratings of the items by a rater (counted from 0), item by item; further items than the rubric's are left out."""
    scores = entry.scores[rater]
    assert scores is not None
    found: list[Score] = []
    for step in official_steps(rubric):
        if step.items is None:
            continue
        rows = scores.items(step)[: step.items.count]
        padded = padded_items(rows)
        for number, row in enumerate(rows, start=1):
            place = entry.place(rater, item_place(step, number))
            found += _item(place, step, number, row, counts=row.invalid is None and number - 1 not in padded)
    return tuple(found)


def _item(place: str, step: Step, number: int, row: Row, *, counts: bool) -> list[Score]:
    assert step.items is not None
    valid = step.items.valid
    scores = [_given(step, valid, number, int(counts))] if valid else []
    if counts:
        for key, dimension in item_dimensions(step).items():
            if row.cells.get(key) is not None:
                scores.append(_score(place, step, dimension, number, row.cells[key]))
    return scores


def _given(step: Step, dimension: str, item: int | None, value: float) -> Score:
    return Score(step=step.name, dimension=dimension, item=item, value=float(value), top=float(value))


def _score(place: str, step: Step, dimension: Dimension, item: int | None, value: Value) -> Score:
    if dimension.choices:
        return Score(step=step.name, dimension=dimension.name, item=item, choice=sound(str(value)))
    what = f"{place}: {dimension.title}"
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1:
        raise UserError(f"{what} is {quoted(str(value), 20)}, which is no whole number; {CHECK}")
    low, high = dimension.range
    if not low <= value <= high:
        key = f"{step.name}.{dimension.name}"
        variant = variant_of(key, dimension.range) if item is None else ""
        of = f"the variant {variant} of the rubric" if variant else "the rubric"
        fits = fitting(key, value, dimension.range, per_item=item is not None)
        way = f"use {fits}" if fits else CHECK
        raise UserError(f"{what} {shortened(value)} is outside the range {low} to {high} of {of}; {way}")
    return _given(step, dimension.name, item, value)


@dataclass(frozen=True)
class Rating:
    """What one rater answered, to be filed."""

    rater: str
    """Name of the rater, ``H01``."""
    answers: Sequence[Score]
    """Scores per item and, for steps without items, per step: whole numbers of the rubric."""
    reasons: Mapping[tuple[str, int], str] = field(default_factory=dict)
    """(step, item) → why it doesn't count: a name in ``items.invalid`` of the step. Each such item needs one."""


def from_ratings(
    sample_id: str,
    scenario_id: str,
    contents: Mapping[str, Sequence[str]],
    ratings: Sequence[Rating],
    rubric: Rubric,
) -> Entry:
    """An answer in the official layout: items with their ratings, summaries, Overall and Total, all computed.

    Args:
        contents: step name → the items' texts; of steps without items one text.
        ratings: one for each rater, in the order of the file.

    Raises ValueError for scores that are no whole numbers and KeyError for an item that doesn't count without reason.
    """
    raters = tuple(rating.rater for rating in ratings)
    return Entry(sample_id, raters, scenario_id, tuple(_filed_scores(contents, rating, rubric) for rating in ratings))


def _filed_scores(contents: Mapping[str, Sequence[str]], rating: Rating, rubric: Rubric) -> RaterScores:
    whole = {score.key: score for score in aggregate(rubric, rating.answers)}
    items = {(score.key, score.item): score for score in rating.answers}
    parts: dict[str, tuple[Row, ...] | Value] = {}
    for step in official_steps(rubric):
        summary = {official(d): _number(whole[f"{step.name}.{d.name}"]) for d in filed(step)}
        known = {key: value for key, value in summary.items() if value is not None}
        if step.items is None:
            (text,) = contents[step.name]
            parts[step.label] = (Row({CONTENT: text, **known}),)
        else:
            rows = [_filed_item(step, i, text, items, rating) for i, text in enumerate(contents[step.name], start=1)]
            parts[step.label] = (*rows, Row(known, is_summary=True))
    total = _number(whole[TOTAL_KEY]) if TOTAL_KEY in whole else None
    return RaterScores(parts if total is None else parts | {TOTAL: total})


def _filed_item(
    step: Step, number: int, text: str, items: Mapping[tuple[str, int | None], Score], rating: Rating
) -> Row:
    assert step.items is not None
    valid = items.get((f"{step.name}.{step.items.valid}", number))
    if valid is not None and valid.value == 0:
        reason = rating.reasons[step.name, number]
        return Row({CONTENT: text, INVALID: f"{reason} — {step.items.invalid[reason]}"})
    cells: dict[str, Value] = {CONTENT: text}
    for key, dimension in item_dimensions(step).items():
        score = items.get((f"{step.name}.{dimension.name}", number))
        value = None if score is None else score.choice or _number(score)
        if value is not None:
            cells[key] = value
    return Row(cells)


def _number(score: Score) -> int | None:
    value = score.value if score.top is None else score.top
    if value is None:
        return None
    if not value.is_integer():
        raise ValueError(f"{named(score.key)} is {value}, but rating files hold whole numbers")
    return int(value)
