"""Scores from log-probabilities and single numbers. JSON answers are taken apart in `inference.answers`.

Exact reading of a grid whose strings share a first character (1 and 10…16) needs the distribution of the character
after it as well; `grid_branches` says where to look and `grid_logprobs` combines what was found:
P("1") = p(1) · (1 − Σ_d p(d | 1)) over the strings "1d" of the grid, P("12") = p(1) · p(2 | 1).
"""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from inference.records import Completion, Score
from inference.rubric import Dimension

REFUSED = "the model refused to answer"


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


LARGEST_LOGPROB = 1e-3
"""Above 0 by what rounding does to a sum of probabilities."""


def is_logprob(value: Any) -> bool:
    """Whether `value` is the logarithm of a probability above 0: what servers send may be null, NaN or anything."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and math.isfinite(value) and value <= LARGEST_LOGPROB


def score_from_logprobs(
    step: str, dimension: Dimension, logprobs: Mapping[str, float], item: int | None = None
) -> Score:
    """Expected value and mode over the grid, renormalised; the mass elsewhere goes to `off_grid`.

    The softmax is shifted by the largest log-probability, so that a grid far down in the vocabulary still has a
    distribution. Unscored where no string of the grid has a log-probability (`is_logprob`).
    """
    on_grid = {text: logprobs[text] for text in dimension.grid if is_logprob(logprobs.get(text))}
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
        return unscored(step, dimension, f"not a number: {shown(number)}", item)
    if not dimension.contains(number):
        kind = "" if dimension.fractional else "whole "
        return unscored(step, dimension, f"{shown(number)} is no {kind}number in {list(dimension.range)}", item)
    return Score(step=step, dimension=dimension.name, item=item, value=float(number), top=float(number))


def unscored(step: str, dimension: Dimension, reason: str, item: int | None = None) -> Score:
    return Score(step=step, dimension=dimension.name, item=item, unscored=reason)


def read_number_answer(step: str, dimension: Dimension, completion: Completion, item: int | None = None) -> Score:
    """Score of an answer that consists of one number and nothing else.

    Log-probabilities of the grid come first, where the answer's own string is among them; else the whole text has to be
    the number. A number inside other text is never taken: it may come from the response.
    """
    if completion.finish_reason == "refusal":
        return unscored(step, dimension, f"{REFUSED}: {shown(completion.text)}", item)
    text = completion.text.strip()
    found = completion.grid_logprobs or {}
    if text in dimension.grid and is_logprob(found.get(text)):
        return score_from_logprobs(step, dimension, found, item)
    try:
        number = json.loads(text)
    except (ValueError, RecursionError):
        return unscored(step, dimension, f"the answer is not one number: {shown(text)}", item)
    return score_from_number(step, dimension, number, item)


def shown(value: Any) -> str:
    """A value for a message, quoted and short."""
    text = str(value)
    return repr(text if len(text) <= 60 else text[:57] + "...")
