"""Taking answers apart: scores, evidence and choices. With `scoring` the only parser of models' answers.

All but the line of an analyst on a plain prompt are JSON.

The whole text has to be the JSON object that was asked for (one surrounding code fence is allowed), and a cut-off
answer gives nothing: what stands in other text may come from the response. Where the engine reported tokens with
alternatives, a score's distribution is read at the token that is its number.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from inference.files import parse_json
from inference.prompts.compact import SEPARATOR
from inference.prompts.describe import CHOICE, EVIDENCE, MEMORY, SCORES
from inference.prompts.text import sound
from inference.records import Completion, Score, StepEvidence
from inference.rubric import Dimension, Rubric, Step
from inference.scoring import REFUSED, is_logprob, score_from_logprobs, score_from_number, shown, unscored

Path = tuple[str | int, ...]
"""Keys and list indices (from 0) that lead to a value."""


def read_scores(steps: Sequence[Step], completion: Completion) -> tuple[Score, ...]:
    """Scores of an answer to `scores_schema`: each dimension that is asked, item by item where the step has items."""
    answer = _object(completion)
    if isinstance(answer, str):
        return tuple(score for step in steps for score in unscored_step(step, answer))
    alternatives = _alternatives(completion)
    return tuple(s for step in steps for s in _step_scores(step, answer.get(step.name), alternatives, (step.name,)))


def read_noted_scores(step: Step, completion: Completion) -> tuple[Score, ...]:
    """Scores of an answer to `noted_schema`; the notes are passed over."""
    answer = _object(completion)
    if isinstance(answer, str):
        return unscored_step(step, answer)
    return _step_scores(step, answer.get(SCORES), _alternatives(completion), (SCORES,))


def read_table(rubric: Rubric, completion: Completion) -> tuple[tuple[Score, ...], tuple[StepEvidence, ...]]:
    """Scores and evidence of an answer to `table_schema`; a row's text stands under every dimension of its step."""
    scores = read_scores(rubric.answered, completion)
    answer = _object(completion)
    if isinstance(answer, str):
        return scores, ()
    return scores, tuple(_row_evidence(step, answer.get(step.name)) for step in rubric.answered)


def _row_evidence(step: Step, part: Any) -> StepEvidence:
    def texts(row: Any) -> dict[str, str]:
        text = row.get(EVIDENCE) if isinstance(row, dict) else None
        return dict.fromkeys((d.name for d in step.asked), sound(text)) if isinstance(text, str) else {}

    if step.items is None:
        return StepEvidence(step=step.name, texts=texts(part))
    rows = part if isinstance(part, list) else []
    return StepEvidence(step=step.name, items=tuple(texts(row) for row in rows[: step.items.count]))


def read_evidence(steps: Sequence[Step], completion: Completion) -> dict[str, StepEvidence | str]:
    """Step → evidence of an answer to `evidence_schema`, or what is wrong with it."""
    answer = _object(completion)
    if isinstance(answer, str):
        return dict.fromkeys((step.name for step in steps), f"no evidence: {answer}")
    parts = {steps[0].name: answer} if len(steps) == 1 else answer
    return {step.name: _step_evidence(step, parts.get(step.name)) for step in steps}


def _step_evidence(step: Step, part: Any) -> StepEvidence | str:
    if not isinstance(part, dict) or not isinstance(part.get(MEMORY), str):
        return f"no evidence: the answer has no evidence and memory of {step.name}"
    found = part.get(EVIDENCE)
    rows = [found] if step.items is None else found
    if not isinstance(rows, list) or (step.items is not None and len(rows) != step.items.count):
        return f"no evidence: the answer needs {step.items.count if step.items else 1} entries on {step.name}"
    texts: list[dict[str, str]] = []
    for number, row in enumerate(rows, 1):
        missing = [d.short for d in step.asked if not isinstance(row, dict) or not isinstance(row.get(d.short), str)]
        if missing:
            return f"no evidence: entry {number} on {step.name} has no text under {', '.join(missing)}"
        texts.append({d.name: sound(row[d.short]) for d in step.asked})
    if not any(row[d.name].strip() for row in texts for d in step.asked if not d.choices):
        # A response stands there, so "nothing is written" would be made up.
        return f"no evidence: the answer says nothing on {step.name}"
    if step.items is None:
        return StepEvidence(step=step.name, texts=texts[0], memory=sound(part[MEMORY]))
    return StepEvidence(step=step.name, items=tuple(texts), memory=sound(part[MEMORY]))


def read_evidence_line(step: Step, completion: Completion) -> dict[str, str] | str:
    """Dimension → evidence of an answer like `prompts.evidence_line`, or what is wrong with it."""
    if completion.finish_reason in ("length", "refusal"):
        return f"no evidence: {_lost(completion)}"
    texts = [" ".join(text.split()) for text in sound(completion.text).split(SEPARATOR.strip())]
    if len(texts) != len(step.asked):
        return f"no evidence: the answer needs {len(step.asked)} texts, has {len(texts)}: {shown(completion.text)}"
    found = dict(zip((d.name for d in step.asked), texts, strict=True))
    blank = [name for name, text in found.items() if not text]
    return f"no evidence: the answer has no text on {', '.join(blank)}" if blank else found


def read_choice(count: int, completion: Completion) -> int | str:
    """The number, from 1 to `count`, of an answer to `choice_schema`, or what is wrong with it."""
    answer = _object(completion)
    if isinstance(answer, str):
        return f"no choice: {answer}"
    chosen = answer.get(CHOICE)
    if isinstance(chosen, bool) or not isinstance(chosen, int) or not 1 <= chosen <= count:
        return f"no choice: {shown(chosen)} is no whole number from 1 to {count}"
    return chosen


def complaint_of(scores: Sequence[Score]) -> str | None:
    """The first reason for which a score is missing."""
    return next((score.unscored for score in scores if score.unscored), None)


def unscored_step(step: Step, reason: str) -> tuple[Score, ...]:
    """Every score that is asked for on `step`, missing for the same reason."""
    return tuple(unscored(step.name, d, reason, item) for item in item_numbers(step) for d in step.asked)


def item_numbers(step: Step) -> tuple[int | None, ...]:
    """1 … count of a step with items, else one None for the step as a whole."""
    return (None,) if step.items is None else tuple(range(1, step.items.count + 1))


def _object(completion: Completion) -> dict[str, Any] | str:
    """The JSON object of an answer, or why there is none."""
    if completion.finish_reason in ("length", "refusal"):
        return _lost(completion)
    text = _without_fence(completion.text)
    try:
        answer = parse_json(text)
    except ValueError as error:
        return f"the answer is not one JSON object ({error}): {shown(text)}"
    return answer if isinstance(answer, dict) else f"the answer is not a JSON object: {shown(text)}"


def _lost(completion: Completion) -> str:
    """Why nothing of an answer is read, whatever stands in it."""
    cut = completion.finish_reason == "length"
    return "the answer was cut off at max_tokens" if cut else f"{REFUSED}: {shown(completion.text)}"


def _step_scores(
    step: Step, part: Any, alternatives: Mapping[Path, Mapping[str, float]], under: Path
) -> tuple[Score, ...]:
    """Scores of one step; `part` stands in the answer at the path `under`."""
    scores = []
    for item in item_numbers(step):
        row, path, place = part, under, step.name
        if item is not None:
            row = part[item - 1] if isinstance(part, list) and len(part) >= item else None
            path, place = (*under, item - 1), f"{step.name}[{item}]"
        for dimension in step.asked:
            if not isinstance(row, dict) or dimension.short not in row:
                scores.append(unscored(step.name, dimension, f"the answer has no {place}.{dimension.short}", item))
            else:
                found = alternatives.get((*path, dimension.short))
                scores.append(_score(step.name, dimension, item, row[dimension.short], found))
    return tuple(scores)


def _score(step: str, dimension: Dimension, item: int | None, given: Any, found: Mapping[str, float] | None) -> Score:
    if dimension.choices:
        return _choice(step, dimension, item, given)
    plain = score_from_number(step, dimension, given, item)
    # One-character alternatives are exact only where no longer string of the grid starts with them.
    if plain.unscored or not found or max(len(text) for text in dimension.grid) > 1:
        return plain
    if str(given) not in dimension.grid or not is_logprob(found.get(str(given))):
        return plain
    return score_from_logprobs(step, dimension, found, item)


def _choice(step: str, dimension: Dimension, item: int | None, given: Any) -> Score:
    if given not in dimension.choices:
        return unscored(step, dimension, f"{shown(given)} is none of the names of {dimension.name}", item)
    return Score(step=step, dimension=dimension.name, item=item, choice=given)


def _alternatives(completion: Completion) -> dict[Path, Mapping[str, float]]:
    """Path in the JSON → alternatives of the token that is the number, located by walking the text."""
    if not completion.tokens or "".join(token.text for token in completion.tokens) != completion.text:
        return {}
    token_at = {}
    position = 0
    for token in completion.tokens:
        token_at[position] = token
        position += len(token.text)
    return {
        path: token_at[start].top
        for path, start in number_positions(completion.text)
        # Alternatives of a token that holds more than the number, or a part of it, are no scores.
        if start in token_at and token_at[start].text == completion.text[start : number_end(completion.text, start)]
    }


def number_positions(text: str) -> list[tuple[Path, int]]:
    """Path of keys and list indices (from 0), and index of the first character, of every number in the JSON `text`."""
    decoder = json.JSONDecoder()
    found: list[tuple[Path, int]] = []
    path: list[str | int] = []  # of the open containers: the key or index under which the next value stands
    index = 0
    while index < len(text):
        character = text[index]
        if character == '"':
            string, index = decoder.raw_decode(text, index)
            if path and text[index:].lstrip().startswith(":"):
                path[-1] = string
            continue
        if character in "{[":
            path.append("" if character == "{" else 0)
        elif character in "}]":
            if path:
                path.pop()
        elif character == ",":
            if path and isinstance(path[-1], int):
                path[-1] += 1
        elif character.isdigit() or character == "-":
            found.append((tuple(path), index))
            index = number_end(text, index)
            continue
        index += 1
    return found


def number_end(text: str, start: int) -> int:
    """Index after the last character of the number that begins at `start` of a JSON text."""
    end = start
    while end < len(text) and text[end] not in ",}] \n\t\r":
        end += 1
    return end


def _without_fence(text: str) -> str:
    lines = text.strip().split("\n")  # other line ends, such as U+2028, may stand in a JSON string
    if len(lines) >= 2 and lines[0].startswith("```") and lines[-1].strip() == "```":
        return "\n".join(lines[1:-1])
    return text.strip()
