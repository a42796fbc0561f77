"""The released parser of model answers (Q1 to Q14): every string in lower case, comments removed inside strings, …"""

import ast
import json
import re
import warnings
from collections.abc import Sequence
from typing import Any

from eval.create.official.errors import QuirkError

_REASONING = re.compile(r"</(?:think|reason)>")
_COMMENTS = (
    (re.compile(r"//[^\n]*"), ""),
    (re.compile(r"/\*.*?\*/", re.DOTALL), ""),
    (re.compile(r"^\s*#[^\n]*", re.MULTILINE), ""),
)
_NOTHING = object()


def parse_answer(text: str) -> list[Any] | None:
    """Paths of an answer as the released code has them: lists, not always of triples; None where nothing was parsed.

    Raises QuirkError for an answer that is no list or object, or has a key without one.
    """
    found = _cleaned(_answer(text))
    if found == "{}":
        return None
    value = _loaded(found)
    if value is _NOTHING:
        return None
    if isinstance(value, list):
        return [_path(value)] if value else [[]]  # the whole list is one path (Q9)
    if not isinstance(value, dict):
        raise QuirkError("Q8", f"the answer is {repr(value)[:60]}, which has no paths to go through")
    paths = (_path(item) for item in value.values())
    return [path for path in paths if path is not None]


def parse_samples(predictions: Sequence[str | None] | str | None) -> list[Any]:
    """Paths of the first answer that parses, later ones are not looked at (Q13); none where no answer does.

    Raises QuirkError where the predictions are not a list (Q14).
    """
    if predictions is None or isinstance(predictions, str):
        raise QuirkError("Q14", "path_prediction is not a list of answers")
    for prediction in predictions:
        if not isinstance(prediction, str):
            raise QuirkError("Q14", "an answer in path_prediction is not text")
        parsed = parse_answer(prediction)
        if parsed is not None:
            return parsed
    return []


def _answer(text: str) -> str:
    """After the reasoning, in the last answer block (Q6, Q7)."""
    *reasoning, rest = _REASONING.split(text)
    if reasoning and not rest.strip():
        rest = text
    start = rest.rfind("<answer>", 0, max(rest.rfind("</answer>"), 0))
    return rest[start + len("<answer>") : rest.find("</answer>", start)] if start >= 0 else rest


def _cleaned(text: str) -> str:
    """Text after the last "json" without a fence's end (Q2, Q3), without comments (Q4), with square brackets (Q5)."""
    if "json" in text:
        text = text.rsplit("json", 1)[1].strip().removesuffix("```")
    for pattern, replacement in _COMMENTS:
        text = pattern.sub(replacement, text)
    return text.replace('("', '["').replace('")', '"]').strip()


def _loaded(text: str) -> Any:
    try:
        return _lower(json.loads(text))
    except (ValueError, RecursionError):
        pass
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of odd escapes in the answer
            return _lower(_as_lists(ast.literal_eval(text)))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return _NOTHING


def _as_lists(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _as_lists(item) for key, item in value.items()}
    return [_as_lists(item) for item in value] if isinstance(value, (list, tuple)) else value


def _lower(value: Any) -> Any:
    if isinstance(value, str):
        return value.lower()
    if isinstance(value, dict):
        return {key: _lower(item) for key, item in value.items()}
    return [_lower(item) for item in value] if isinstance(value, list) else value


def _path(value: Any) -> list[Any] | None:
    """A path from a key's value; None where it vanishes."""
    if isinstance(value, dict):
        named = value.get("path")
        return _path(named) if named is not None else list(value.values())
    if not isinstance(value, (list, str)):
        raise QuirkError("Q8", f"{repr(value)[:60]} stands in place of a path")
    if value and isinstance(value[0], str):
        return _of_strings(list(value))
    return [list(item.values()) if isinstance(item, dict) else item for item in value]


def _of_strings(parts: list[Any]) -> list[Any] | None:
    """Strings instead of triples: "(a, b, c)" each (Q11), else all but the last three names are lost (Q10)."""
    if "(" in parts[0]:
        return [_triple_text(part) for part in parts]
    return None if len(parts) % 3 else [parts[-3:]]


def _triple_text(part: Any) -> list[str] | None:
    pieces = [piece.strip() for piece in str(part).strip().strip("()").split(",")]
    return pieces if len(pieces) == 3 else None
