"""A rubric in words, and the form of the JSON that answers it."""

import json
from collections.abc import Sequence
from typing import Any

from inference.rubric import Dimension, Rubric, Step, band

NOTES, SCORES, CHOICE, EVIDENCE, MEMORY = "notes", "scores", "choice", "evidence", "memory"
"""Keys of answers beside the steps and dimensions of the rubric."""


def describe(rubric: Rubric, steps: Sequence[Step] = (), *, levels: bool = True, choices: bool = True) -> str:
    """Tasks, dimensions, ranges and levels of `steps`, by default all that have a response.

    Without `levels` it says what the dimensions mean and not how they are scored; without `choices` the names to choose
    from are left out.
    """
    steps = steps or rubric.answered
    named = len(rubric.answered) > 1
    return "\n\n".join(_step(step, named, levels, choices) for step in steps)


def _step(step: Step, named: bool, levels: bool, choices: bool) -> str:
    title = f"Step {step.name}: " if named else "Task: "
    lines = [title + step.task]
    if step.items is not None:
        lines.append(
            f"Each {step.items.kind} is rated on its own, {step.items.count} in all; one that is missing is blank."
        )
    return "\n".join([*lines, *(_dimension(step, dimension, levels, choices) for dimension in step.asked)])


def _dimension(step: Step, dimension: Dimension, levels: bool, choices: bool) -> str:
    low, high = dimension.range
    values = "one of the names" if dimension.choices else f"{low} to {high}"
    name = f"{dimension.key} = {dimension.title}" if dimension.key else dimension.name
    lines = [f"- {name} ({values}): {dimension.description}" if levels else f"- {name}: {dimension.description}"]
    if levels:
        in_order = sorted(dimension.levels.items(), key=lambda pair: band(pair[0]).start)
        lines += [f"  {level} = {meaning}" for level, meaning in in_order]
    if dimension.choices and choices:
        lines.append("  " + "; ".join(dimension.choices))
    if step.items is not None and dimension.name == step.items.valid:
        lines += [f"  not counted, {reason}: {meaning}" for reason, meaning in step.items.invalid.items()]
    return "\n".join(lines)


def scores_form(steps: Sequence[Step]) -> str:
    """The JSON object of the scores of `steps`, with ranges in place of scores."""
    return json.dumps({step.name: _form(step, {d.short: _values(d) for d in step.asked}) for step in steps})


def noted_form(step: Step) -> str:
    """Notes before the scores of one step."""
    return json.dumps({NOTES: "...", SCORES: _form(step, {d.short: _values(d) for d in step.asked})})


def table_form(rubric: Rubric) -> str:
    """Evidence before scores, in every row."""
    rows = {s.name: _form(s, {EVIDENCE: "...", **{d.short: _values(d) for d in s.asked}}) for s in rubric.answered}
    return json.dumps(rows)


def evidence_form(steps: Sequence[Step]) -> str:
    """Evidence by dimension on each of `steps`, and its memory."""
    return json.dumps({step.name: evidence_step_form(step) for step in steps})


def evidence_step_form(step: Step) -> dict[str, Any]:
    """Evidence by dimension on one step, and its memory."""
    texts = {d.short: "name" if d.choices else "..." for d in step.asked}
    return {EVIDENCE: _form(step, texts), MEMORY: "..."}


def _form(step: Step, answer: dict[str, str]) -> Any:
    return answer if step.items is None else [answer, f"... {step.items.count} entries in all"]


def _values(dimension: Dimension) -> str:
    return "name" if dimension.choices else f"{dimension.range[0]}-{dimension.range[1]}"
