"""Checks of the files of the released pipeline: responses, evidence, scores, and of scenario files."""

from collections.abc import Callable, Mapping
from typing import Any

from eval.benchmarks.cgpst.check_whole import check_published, check_scenario_ids
from eval.benchmarks.cgpst.exchange import EVIDENCE, ITEM, MEMORY
from eval.benchmarks.cgpst.findings import Findings
from eval.benchmarks.cgpst.names import (
    ITEM_LISTS,
    OVERALL,
    TWICE,
    counted_choice,
    filed,
    keys,
    named_twice,
    official,
    official_steps,
    scenario_of,
)
from eval.benchmarks.cgpst.ranges import plain_rubric
from eval.benchmarks.cgpst.score_json import ID, SUMMARY
from inference.errors import named, quoted
from inference.rubric import Dimension, Step

_CheckStep = Callable[[str, Step, Any, Findings], None]


def check_by_id(content: Mapping[str, Any], check_step: _CheckStep, findings: Findings) -> None:
    """Apply `check_step` to every step of every answer of a file by answer id."""
    for name, value in content.items():
        place = named(name)
        if not scenario_of(name):
            findings.error(place, "the id does not end in a scenario, as A01_FS1 does")
        if not isinstance(value, dict):
            findings.error(place, "needs an object of steps")
            continue
        steps = official_steps(plain_rubric())
        findings.unread_keys(place, value, (), [step.label for step in steps])
        for step in steps:
            if step.label in value:
                check_step(f"{place}, {step.label}", step, value[step.label], findings)
            else:
                findings.error(f"{place}, {step.label}", "the step is missing")
    check_scenario_ids({name: scenario_of(name) for name in content}, findings)


def check_response(place: str, _step: Step, value: Any, findings: Findings) -> None:
    """A text, or a list of texts."""
    parts = value if isinstance(value, list) else [value]
    if not all(isinstance(part, str) for part in parts):
        findings.error(place, "needs a text or a list of texts")
    elif not "".join(parts).strip():
        findings.note("empty responses", place, "the response is empty")


def check_evidence(place: str, step: Step, value: Any, findings: Findings) -> None:
    """Evidence on every dimension (of every item), and a memory."""
    if not isinstance(value, dict) or not isinstance(value.get(EVIDENCE), dict):
        findings.error(place, f"needs an object with {EVIDENCE} and {MEMORY}")
        return
    findings.unread_keys(place, value, (), (EVIDENCE, MEMORY))
    if not isinstance(value.get(MEMORY), str):
        findings.error(place, f"{MEMORY} is missing, or no text")
    evidence = value[EVIDENCE]
    if step.items is None:
        _check_texts(place, step, evidence, findings)
        return
    wanted = [f"{ITEM}{number}" for number in range(1, step.items.count + 1)]
    if list(evidence) != wanted:
        findings.error(place, f"needs {wanted[0]} to {wanted[-1]} in order, has {len(evidence)} items")
    for key, part in evidence.items():
        _check_texts(f"{place} {named(key)}", step, part, findings)


def _check_texts(place: str, step: Step, value: Any, findings: Findings) -> None:
    if not isinstance(value, dict):
        findings.error(place, "needs an object of dimensions")
        return
    choices = {key: counted_choice(step, d) for key, d in keys(step.dimensions).items()}
    for key in named_twice(value, choices):
        findings.error(place, f"{named(key)}: {TWICE}")
    # The evidence on an item's category stands under what counts the categories.
    wanted = [d for d in step.dimensions if not d.choices and not d.sum_of]
    findings.unread_keys(place, value, wanted, [official(d) for d in step.dimensions])
    for dimension in wanted:
        text = next((value[key] for key in keys([dimension]) if key in value), None)
        if not isinstance(text, str) or not text.strip():
            findings.error(place, f"the evidence on {official(dimension)} is missing, empty or no text")
        elif dimension.distinct:
            findings.named_category(place, counted_choice(step, dimension), text)


def check_scores(place: str, step: Step, value: Any, findings: Findings) -> None:
    """Whole numbers in range, null noted; sums that add up."""
    cells, items = value, []
    if step.items is not None:
        key = ITEM_LISTS[step.label]
        sound = isinstance(value, dict) and isinstance(value.get(key), list) and isinstance(value.get(SUMMARY), dict)
        if not sound:
            findings.error(place, f"needs an object with {key} and {SUMMARY}")
            return
        cells, items = value[SUMMARY], value[key]
    if not isinstance(cells, dict):
        findings.error(place, "needs an object of dimensions")
        return
    whole = _numbers(place, step, filed(step), cells, findings.step_number, findings)
    parts = [whole[official(d)] for d in filed(step) if not d.sum_of and official(d) in whole]
    _compare(place, OVERALL, whole, parts, len(filed(step)) - 1, "its parts", findings)
    if step.items is not None:
        _check_items(place, step, items, whole, findings)


def _check_items(place: str, step: Step, items: list[Any], whole: Mapping[str, int], findings: Findings) -> None:
    assert step.items is not None
    if len(items) != step.items.count:
        findings.error(place, f"needs {step.items.count} items, has {len(items)}")
    listed = [d for d in step.asked if not d.choices]
    numbers = []
    for position, item in enumerate(items, start=1):
        where = f"{place} item {position}"
        if not isinstance(item, dict) or item.get(ID) != position:
            findings.error(where, f"needs an object with {ID} {position}")
            continue
        # An item that does not count needs no further scores, and adds nothing with those it has.
        counts = not step.items.valid or item.get(official(step.dimension(step.items.valid))) != 0
        needed = [d for d in listed if counts or d.name == step.items.valid or official(d) in item]
        found = _numbers(where, step, needed, item, findings.item_number, findings)
        numbers.append(found if counts else dict.fromkeys(map(official, listed), 0))
    for dimension in listed:
        name = official(dimension)
        parts = [found[name] for found in numbers if name in found]
        _compare(place, name, whole, parts, len(items), "the items", findings)


def _numbers(
    place: str,
    step: Step,
    dimensions: list[Dimension] | tuple[Dimension, ...],
    cells: Mapping[str, Any],
    read: Callable[[str, Step, Dimension, Any], int | None],
    findings: Findings,
) -> dict[str, int]:
    """What is a whole number, by official key."""
    findings.unread_keys(place, cells, dimensions, [ID])
    found = {}
    for dimension in dimensions:
        spelled = [key for key in keys([dimension]) if key in cells]
        if not spelled:
            findings.error(place, f"{official(dimension)} is missing")
        elif cells[spelled[0]] is None:
            findings.note("missing scores", place, f"{official(dimension)} has no score")
        elif (number := read(place, step, dimension, cells[spelled[0]])) is not None:
            found[official(dimension)] = number
    return found


def _compare(
    place: str, name: str, whole: Mapping[str, int], parts: list[int], needed: int, what: str, findings: Findings
) -> None:
    if name in whole and len(parts) == needed and whole[name] != sum(parts):
        findings.error(place, f"{name} is {whole[name]}, but {what} add up to {sum(parts)}")


def check_scenarios(content: Mapping[str, Any], findings: Findings) -> None:
    """Every scenario of a file, and their ids."""
    for name, value in content.items():
        _check_scenario(name, value, findings)
    check_published(dict.fromkeys(content, 1), findings)


def _check_scenario(name: str, value: Any, findings: Findings) -> None:
    """A theme and a text, neither empty."""
    for key in ("theme", "text"):
        text = value.get(key) if isinstance(value, dict) else None
        if not isinstance(text, str):
            findings.error(named(name), f"{key} is {quoted(str(text), 40)}; a text is needed")
        elif not text.strip():
            findings.error(named(name), f"{key} is empty")
