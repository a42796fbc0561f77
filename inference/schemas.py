"""JSON schemas of what models answer, from a rubric. Every key is required and none may be added.

Keys are short and texts bounded: an answer costs tokens, and a small model left alone does not come to an end.
"""

from collections.abc import Sequence
from typing import Any

from inference.prompts.describe import CHOICE, EVIDENCE, MEMORY, NOTES, SCORES
from inference.rubric import Dimension, Rubric, Step

NOTE_CHARACTERS, EVIDENCE_CHARACTERS, MEMORY_CHARACTERS = 320, 120, 160
NO_CHOICE = "none"
"""What an analyst writes in place of a name where no item stands."""


def scores_schema(steps: Sequence[Step]) -> dict[str, Any]:
    """``{step: {key: number}}``; where a step has items ``{step: [{key: number or name}, …]}``, one entry per item."""
    return _object({step.name: _scores(step) for step in steps})


def noted_schema(step: Step) -> dict[str, Any]:
    """``{notes: text, scores: …}`` of one step."""
    return _object({NOTES: _text(NOTE_CHARACTERS), SCORES: _scores(step)})


def table_schema(rubric: Rubric) -> dict[str, Any]:
    """As `scores_schema` of all steps, with evidence first in each row."""
    evidence = {EVIDENCE: _text(EVIDENCE_CHARACTERS)}
    return _object({step.name: _rows(step, {**evidence, **_answers(step)}) for step in rubric.answered})


def evidence_schema(steps: Sequence[Step]) -> dict[str, Any]:
    """``{evidence: {key: text}, memory: text}``; where a step has items a list. By step where there are several."""
    parts = {step.name: _step_evidence(step) for step in steps}
    return parts[steps[0].name] if len(steps) == 1 else _object(parts)


def choice_schema(count: int) -> dict[str, Any]:
    """``{choice: number}`` from 1 to `count`."""
    return _object({CHOICE: {"type": "integer", "enum": list(range(1, count + 1))}})


def _step_evidence(step: Step) -> dict[str, Any]:
    texts = {
        d.short: {"type": "string", "enum": [*d.choices, NO_CHOICE]} if d.choices else _text(EVIDENCE_CHARACTERS)
        for d in step.asked
    }
    return _object({EVIDENCE: _rows(step, texts), MEMORY: _text(MEMORY_CHARACTERS)})


def _scores(step: Step) -> dict[str, Any]:
    return _rows(step, _answers(step))


def _answers(step: Step) -> dict[str, Any]:
    return {dimension.short: _answer(dimension) for dimension in step.asked}


def _answer(dimension: Dimension) -> dict[str, Any]:
    if dimension.choices:
        return {"type": "string", "enum": list(dimension.choices)}
    # Engines enforce an enumeration of whole scores more reliably than numeric bounds.
    return {"type": "integer", "enum": [int(score) for score in dimension.grid]}


def _rows(step: Step, answer: dict[str, Any]) -> dict[str, Any]:
    if step.items is None:
        return _object(answer)
    return {"type": "array", "items": _object(answer), "minItems": step.items.count, "maxItems": step.items.count}


def _text(longest: int) -> dict[str, Any]:
    return {"type": "string", "maxLength": longest}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
