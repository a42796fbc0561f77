"""Answers of the OpenAI protocol (chat and plain completions, as dicts) read into `Completion`."""

import math
from collections.abc import Sequence
from typing import Any, Literal

from inference.errors import quoted
from inference.records import Call, Completion, Token, Usage
from inference.scoring import is_logprob

# vLLM writes -9999 for a token that the grammar forbids, or whose log-probability it doesn't know.
_NO_LOGPROB = -9998.0

FinishReason = Literal["stop", "length", "refusal", "other"]


def json_object(answer: Any) -> dict[str, Any]:
    """What the client returned, as a dict. Raises ValueError where the server sent something else: a web page."""
    found = answer.to_dict() if hasattr(answer, "to_dict") else answer
    if not isinstance(found, dict):
        raise ValueError(f"no JSON object: {quoted(str(found))}")
    return found


def read_chat(call: Call, answer: dict[str, Any]) -> Completion:
    """The first choice of a chat completion. Raises KeyError, IndexError or TypeError for another form of answer."""
    choice = answer["choices"][0]
    message = choice["message"]
    if message.get("refusal"):
        return Completion(text=message["refusal"], finish_reason="refusal", usage=read_usage(answer))
    content = (choice.get("logprobs") or {}).get("content") or []
    tokens = [
        _token(
            entry["token"],
            entry["logprob"],
            [(top["token"], top["logprob"]) for top in entry.get("top_logprobs") or []],
        )
        for entry in content
        if is_logprob(entry.get("logprob"))
    ]
    content, reasoning = _content(call, message)
    completion = _completion(call, content, choice.get("finish_reason"), tokens, read_usage(answer))
    return completion.model_copy(update={"reasoning": reasoning})


def read_text(call: Call, answer: dict[str, Any]) -> Completion:
    """The first choice of a plain completion. Raises like `read_chat`."""
    choice = answer["choices"][0]
    logprobs = choice.get("logprobs") or {}
    texts, values = logprobs.get("tokens") or [], logprobs.get("token_logprobs") or []
    tops = logprobs.get("top_logprobs") or [None] * len(texts)
    tokens = [
        _token(text, value, list((top or {}).items()))
        for text, value, top in zip(texts, values, tops, strict=True)
        if is_logprob(value)
    ]
    return _completion(call, choice["text"], choice.get("finish_reason"), tokens, read_usage(answer))


def read_usage(answer: dict[str, Any]) -> Usage:
    """Token counts of an answer, as far as the server reports them: `Usage.known` if prompt and completion are there.

    A part is never larger than its whole. Negative counts are none.
    """
    usage = answer.get("usage") or {}
    prompt, completion = _count(usage, "prompt_tokens"), _count(usage, "completion_tokens")
    if prompt is None or completion is None:
        return Usage(prompt=prompt or 0, completion=completion or 0, known=False)
    cached = _count(usage.get("prompt_tokens_details"), "cached_tokens") or 0
    reasoning = _count(usage.get("completion_tokens_details"), "reasoning_tokens") or 0
    return Usage(prompt=prompt, cached=min(cached, prompt), completion=completion, reasoning=min(reasoning, completion))


def _count(counts: Any, name: str) -> int | None:
    found = counts.get(name) if isinstance(counts, dict) else None
    return found if isinstance(found, int) and not isinstance(found, bool) and found >= 0 else None


def top_k_grid(grid: Sequence[str], text: str, tokens: Sequence[Token]) -> dict[str, float] | None:
    """Log-probabilities of score strings among the alternatives of an answer that is one score in one token.

    Alternatives that differ only in white space (" 3", "3") count together; strings beyond the top-k are absent. None
    without log-probabilities, and for any other answer: digits among the alternatives of "I cannot rate this" are no
    score. With scores of two digits None where no alternative is one of those, because a "1" may then be the first
    half of a "10", and where the answer's own string has no log-probability.
    """
    token = next((token for token in tokens if token.text.strip()), None)
    if token is None or token.text.strip() != text.strip() or text.strip() not in grid:
        return None
    found: dict[str, list[float]] = {}
    for alternative, logprob in token.top.items():
        if alternative.strip() in grid:
            found.setdefault(alternative.strip(), []).append(logprob)
    if text.strip() not in found:
        return None
    longest = max(len(score) for score in grid)
    if longest > 1 and not any(len(score) == longest for score in found):
        return None
    return {score: _log_sum(values) for score, values in found.items()}


def _content(call: Call, message: dict[str, Any]) -> tuple[str, str]:
    """Text and thinking of a message."""
    text = str(message.get("content") or "")
    fields = (message.get("reasoning_content"), message.get("reasoning"))  # vLLM's older and newer name
    thinking = next((field for field in fields if isinstance(field, str) and field.strip()), "")
    if not text.strip() and call.json_schema is not None and thinking.strip().startswith("{"):
        return thinking.strip(), ""  # vLLM puts the constrained JSON of thinking models here
    return text, thinking


def _token(text: str, logprob: float, alternatives: list[tuple[str, float | None]]) -> Token:
    top: dict[str, list[float]] = {}
    for alternative, value in alternatives:
        if value is not None and is_logprob(value) and value > _NO_LOGPROB:
            top.setdefault(alternative, []).append(value)
    if text not in top and logprob > _NO_LOGPROB:
        top[text] = [logprob]
    merged = {key: values[0] if len(values) == 1 else _log_sum(values) for key, values in top.items()}
    return Token(text=text, logprob=logprob, top=merged)


def _log_sum(values: Sequence[float]) -> float:
    highest = max(values)
    return highest + math.log(math.fsum(math.exp(value - highest) for value in values))


def _completion(call: Call, text: str, reason: Any, tokens: list[Token], usage: Usage) -> Completion:
    finish = _finish_reason(reason)
    grid = top_k_grid(call.grid, text, tokens) if call.grid and finish != "refusal" else None
    return Completion(
        text=text, finish_reason=finish, grid_logprobs=grid, tokens=tuple(kept_tokens(text, tokens)), usage=usage
    )


def _finish_reason(reason: Any) -> FinishReason:
    if reason == "stop":
        return "stop"
    if reason == "length":
        return "length"
    return "refusal" if reason == "content_filter" else "other"


def kept_tokens(text: str, tokens: Sequence[Token]) -> list[Token]:
    """The tokens that spell `text` (an end token comes after them), with alternatives only where a number starts."""
    kept, length = [], 0
    for token in tokens:
        length += len(token.text)
        if length > len(text):
            break
        number = token.text.strip()[:1].isdigit()
        kept.append(token if number else token.model_copy(update={"top": {}}))
    return kept
