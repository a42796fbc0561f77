"""Reading scores: log-probabilities or text in, `Score` out. The only parser of judges' answers in the project.

Exact reading of a grid whose strings share a first character (1 and 10…16) needs the distribution of the character
after it as well; `grid_branches` says where to look and `grid_logprobs` combines what was found:
P("1") = p(1) · (1 − Σ_d p(d | 1)) over the strings "1d" of the grid, P("12") = p(1) · p(2 | 1).
"""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from inference.records import Completion, Score
from inference.rubric import Dimension, Rubric, Step

_Path = tuple[str | int, ...]


def grid_branches(grid: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Prefix → characters that may follow it, for every place at which the grid has to be read.

    The empty prefix holds the first characters: for 1..5 ``{"": ("1", …, "5")}``, for 0..10
    ``{"": ("0", …, "9"), "1": ("0",)}``.
    """
    branches: dict[str, dict[str, None]] = {}
    for text in grid:
        for end in range(len(text)):
            branches.setdefault(text[:end], {})[text[end]] = None
    return {prefix: tuple(followers) for prefix, followers in branches.items()}


def grid_logprobs(grid: Sequence[str], read: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Natural log-probability of exactly each string of `grid`.

    `read` maps each prefix of `grid_branches` to the log-probabilities of its following characters. Strings whose
    characters were not all read (beyond an API's top-k) are left out.
    """
    result = {}
    for text in grid:
        parts = [read.get(text[:end], {}).get(text[end]) for end in range(len(text))]
        if any(part is None for part in parts):
            continue
        longer = read.get(text, {})
        stop = 1.0 - math.fsum(math.exp(value) for value in longer.values())
        if stop > 0.0:
            result[text] = math.fsum(part for part in parts if part is not None) + math.log(min(stop, 1.0))
        else:
            result[text] = -math.inf
    return result


def score_from_logprobs(
    step: str, dimension: Dimension, logprobs: Mapping[str, float], item: int | None = None
) -> Score:
    """Expected value and mode over the grid, renormalised; the mass elsewhere goes to `off_grid`.

    The softmax is shifted by the largest log-probability, so that a grid far down in the vocabulary still has a
    distribution. Unscored where no string of the grid has a finite log-probability.
    """
    on_grid = {text: logprobs[text] for text in dimension.grid if math.isfinite(logprobs.get(text, -math.inf))}
    if not on_grid:
        return unscored(step, dimension, "no score of the range is among the reported log-probabilities", item)
    highest = max(on_grid.values())
    weights = {text: math.exp(value - highest) for text, value in on_grid.items()}
    total = math.fsum(weights.values())
    distribution = {text: weight / total for text, weight in weights.items()}
    return Score(
        step=step,
        dimension=dimension.name,
        item=item,
        value=math.fsum(probability * int(text) for text, probability in distribution.items()),
        top=float(max(distribution, key=lambda text: distribution[text])),
        distribution=distribution,
        off_grid=min(1.0, max(0.0, 1.0 - math.fsum(math.exp(value) for value in on_grid.values()))),
    )


def score_from_number(step: str, dimension: Dimension, number: Any, item: int | None = None) -> Score:
    """A bare number as a score, value = top. Unscored where it is no number of the range."""
    is_number = isinstance(number, int | float) and not isinstance(number, bool)
    if not is_number or (isinstance(number, float) and not math.isfinite(number)):
        return unscored(step, dimension, f"not a number: {_shown(number)}", item)
    if not dimension.contains(number):
        kind = "" if dimension.fractional else "whole "
        return unscored(step, dimension, f"{_shown(number)} is no {kind}number in {list(dimension.range)}", item)
    return Score(step=step, dimension=dimension.name, item=item, value=float(number), top=float(number))


def unscored(step: str, dimension: Dimension, reason: str, item: int | None = None) -> Score:
    return Score(step=step, dimension=dimension.name, item=item, unscored=reason)


def read_number_answer(step: str, dimension: Dimension, completion: Completion) -> Score:
    """Score of an answer that consists of one number and nothing else.

    Log-probabilities of the grid come first; without them the whole text has to be the number. A number inside other
    text is never taken: it may come from the response.
    """
    if completion.grid_logprobs is not None:
        return score_from_logprobs(step, dimension, completion.grid_logprobs)
    text = completion.text.strip()
    try:
        number = json.loads(text)
    except (ValueError, RecursionError):
        return unscored(step, dimension, f"the answer is not one number: {_shown(text)}")
    return score_from_number(step, dimension, number)


def read_json_answer(rubric: Rubric, completion: Completion) -> tuple[Score, ...]:
    """Scores of a JSON answer of the form of `Rubric.json_schema`: each dimension that is asked, in the rubric's order.

    Where a step has items there is one score per item and dimension, item by item.

    The whole text has to be the JSON object (one surrounding code fence is allowed). Where the engine reported tokens
    with alternatives, each score's distribution is read at the token in which its value starts.
    """
    if completion.finish_reason == "length":
        return _all_unscored(rubric, "the answer was cut off at max_tokens")
    text = _without_fence(completion.text)
    try:
        answer = json.loads(text, object_pairs_hook=_unique_keys)
    except (ValueError, RecursionError) as error:
        return _all_unscored(rubric, f"the answer is not one JSON object ({error}): {_shown(text)}")
    if not isinstance(answer, dict):
        return _all_unscored(rubric, f"the answer is not a JSON object: {_shown(text)}")
    alternatives = _alternatives_by_key(completion)
    return tuple(
        _json_score(step, dimension, item, answer, alternatives)
        for step in rubric.answered
        for item in item_numbers(step)
        for dimension in step.asked
    )


def item_numbers(step: Step) -> tuple[int | None, ...]:
    """1 … count of a step with items, else one None for the step as a whole."""
    return (None,) if step.items is None else tuple(range(1, step.items.count + 1))


def _json_score(
    step: Step,
    dimension: Dimension,
    item: int | None,
    answer: dict[str, Any],
    alternatives: Mapping[_Path, Mapping[str, float]],
) -> Score:
    part = answer.get(step.name)
    place = f"{step.name}.{dimension.short}"
    if item is not None:
        place = f"{step.name}[{item}].{dimension.short}"
        part = part[item - 1] if isinstance(part, list) and len(part) >= item else None
    if not isinstance(part, dict) or dimension.short not in part:
        return unscored(step.name, dimension, f"the answer has no {place}", item)
    given = part[dimension.short]
    if dimension.choices:
        return _choice(step.name, dimension, item, given)
    plain = score_from_number(step.name, dimension, given, item)
    found = alternatives.get((step.name, *([] if item is None else [item - 1]), dimension.short))
    if plain.unscored or not found:
        return plain
    # One-character alternatives are exact only where no longer string of the grid starts with them.
    if max(len(text) for text in dimension.grid) > 1:
        return plain
    return score_from_logprobs(step.name, dimension, found, item)


def _choice(step: str, dimension: Dimension, item: int | None, given: Any) -> Score:
    if given not in dimension.choices:
        return unscored(step, dimension, f"{_shown(given)} is none of the names of {dimension.name}", item)
    return Score(step=step, dimension=dimension.name, item=item, choice=given)


def _alternatives_by_key(completion: Completion) -> dict[_Path, Mapping[str, float]]:
    """Path in the JSON → alternatives of the token with which the value starts, located by walking the text."""
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
        if start in token_at and token_at[start].top
    }


def number_positions(text: str) -> list[tuple[_Path, int]]:
    """Path of keys and list indices (from 0), and index of the first character, of every number in the JSON `text`."""
    decoder = json.JSONDecoder()
    found: list[tuple[_Path, int]] = []
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
            while index < len(text) and text[index] not in ",}] \n\t\r":
                index += 1
            continue
        index += 1
    return found


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    repeated = sorted({key for key in keys if keys.count(key) > 1})
    if repeated:
        raise ValueError(f"repeated keys {repeated}")
    return dict(pairs)


def _without_fence(text: str) -> str:
    lines = text.strip().splitlines()
    if len(lines) >= 2 and lines[0].startswith("```") and lines[-1].strip() == "```":
        return "\n".join(lines[1:-1])
    return text.strip()


def _all_unscored(rubric: Rubric, reason: str) -> tuple[Score, ...]:
    return tuple(
        unscored(step.name, dimension, reason, item)
        for step in rubric.answered
        for item in item_numbers(step)
        for dimension in step.asked
    )


def _shown(value: Any) -> str:
    text = str(value)
    return repr(text if len(text) <= 60 else text[:57] + "...")
