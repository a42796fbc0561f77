"""The released reading of evaluators' replies (Q16, Q22 to Q27)."""

import json
import re
from collections.abc import Sequence
from typing import Any, Literal

from eval.create.official.errors import QuirkError
from eval.create.specificity import size_score

SingleTriple = Literal["error", "website"]
"""A path of one triple has no score in the released code (``error``); published results give it its own."""
_DIGITS = re.compile(r'"judgment"\s*:\s*"?(\d+)')
NO_SIZE = 10
"""A missing size counts as a class of at most ten members."""


def size_scores(reply: str | None) -> list[int]:
    """5 to 1 for each size that was found, 0 for one that could not be read; any number of them (Q22, Q23).

    Raises QuirkError for a missing reply (Q16) and a list of plain values (Q24).
    """
    value = _json(_given(reply))
    if not isinstance(value, list):
        return [size_score(int(digits[:18])) for digits in _DIGITS.findall(reply or "")]
    if not all(isinstance(item, dict) for item in value):
        raise QuirkError("Q24", "the class sizes are a list of plain values")
    return [_score(item.get("judgment", NO_SIZE)) for item in value]


def path_strength(scores: Sequence[int], single_triple: SingleTriple = "error") -> int:
    """The minimum over all scores but the last one. Raises QuirkError where that leaves none (Q24)."""
    if len(scores) == 1 and single_triple == "website":
        return scores[0]
    if len(scores) < 2:
        raise QuirkError("Q24", f"the minimum over all but the last of {len(scores)} class sizes is asked for")
    return min(scores[:-1])


def label_scores(reply: str | None) -> list[float]:
    """1 for each label with the letters "not" in it, 0 for others; any number of them, none if unreadable (Q25, Q26).

    Raises QuirkError for a missing reply (Q16) and one that is a single word or number (Q26).
    """
    value = _json(_given(reply))
    if isinstance(value, dict):
        value = value.get("judgments", [])
    elif value is not None and not isinstance(value, list):
        raise QuirkError("Q26", f"the reply is {json.dumps(value)[:60]}, which has no labels")
    labels = value if isinstance(value, list) else []
    return [1.0 if "not" in str(label).lower() else 0.0 for label in labels]


def is_factual(labels: Sequence[float], threshold: float) -> bool:
    """Whether the mean label reaches `threshold`; a path without labels does not (Q27)."""
    return bool(labels) and sum(labels) / len(labels) >= threshold


def _given(reply: str | None) -> str:
    if reply is None:
        raise QuirkError("Q16", "an evaluator's reply is missing")
    return reply


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _score(size: Any) -> int:
    try:
        return size_score(max(int(size), 0))
    except (TypeError, ValueError, OverflowError):
        return 0
