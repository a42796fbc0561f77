"""Where in a model's text its answer stands: after the reasoning, in the last answer block."""

import re
from typing import NamedTuple

_REASONING_END = re.compile(r"</(?:think(?:ing)?|reason(?:ing)?)>", re.IGNORECASE)
_REASONING_START = re.compile(r"\s*<(?:think(?:ing)?|reason(?:ing)?)>", re.IGNORECASE)
_OPEN = re.compile(r"<answer>", re.IGNORECASE)
_BLOCK = re.compile(r"<answer>((?:(?!<answer>).)*?)</answer>", re.IGNORECASE | re.DOTALL)


class AnswerText(NamedTuple):
    text: str
    flags: tuple[str, ...]
    """Of ``answer_in_reasoning``, ``unclosed_reasoning``, ``unclosed_answer``, ``no_answer_tags``."""


def split_reasoning(text: str) -> tuple[str, str]:
    """(reasoning, what follows it): the reasoning ends with its last closing tag, or not at all once it has begun."""
    ends = list(_REASONING_END.finditer(text))
    if ends:
        return text[: ends[-1].start()], text[ends[-1].end() :]
    return (text, "") if _REASONING_START.match(text) else ("", text)


def answer_text(text: str) -> AnswerText:
    """The part of a model's text that is its answer, and what is unusual about it."""
    reasoning, rest = split_reasoning(text)
    flags: tuple[str, ...] = ()
    if reasoning and not rest.strip():
        blocks = _BLOCK.findall(reasoning)
        if blocks:
            return AnswerText(blocks[-1], ("answer_in_reasoning",))
        flags = () if _REASONING_END.search(text) else ("unclosed_reasoning",)
        return AnswerText("", flags)
    blocks = _BLOCK.findall(rest)
    if blocks:
        return AnswerText(blocks[-1], ())
    opened = list(_OPEN.finditer(rest))
    if opened:
        return AnswerText(rest[opened[-1].end() :], ("unclosed_answer",))
    return AnswerText(rest, ("no_answer_tags",))
