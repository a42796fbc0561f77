"""Tokens of a local model: plain and chat prompts in, token ids out, and the ids of the score characters.

Training and the local engines encode prompts here and nowhere else, so that what is trained is what is served.
Prompts hold untrusted responses: no added or special token that is spelled out in a text becomes that token.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from inference.errors import UserError, quoted
from inference.files import os_errors, parse_json
from inference.records import Message

SCORE_CONTEXT = ":\n"
"""Scores follow a line break in every prompt of the project, so their tokens are looked up after one."""


def model_directory(model: Path | str) -> Path:
    """`model` as a path. Raises UserError where it is no directory with a config.json."""
    path = Path(model)
    with os_errors(path, "cannot be used as a model directory"):
        found = (path / "config.json").is_file()
    if not found:
        raise UserError(
            f"{path}: no model directory with a config.json (relative to {Path.cwd()}); make the base model with "
            "`python scripts/base_model.py`, or give the path of a model in safetensors format"
        )
    return path


def model_context(model: Path | str) -> int | None:
    """Tokens that a model reads at most, as its config.json says; None where it doesn't."""
    path = model_directory(model) / "config.json"
    try:
        with os_errors(path, "cannot be read"):
            settings = parse_json(path.read_bytes())
    except ValueError as error:
        raise UserError(f"{path}: not valid JSON ({error}); copy the model again") from None
    settings = settings if isinstance(settings, dict) else {}
    inner = settings.get("text_config")  # of models that read images, too
    settings = inner if isinstance(inner, dict) else settings
    longest = settings.get("max_position_embeddings")
    if type(longest) is not int:
        return None
    rope = settings.get("rope_parameters") or settings.get("rope_scaling")
    if not isinstance(rope, dict):
        return longest
    # Stretched positions (YaRN and its like): some configs give the length before, some the one after.
    before, factor = rope.get("original_max_position_embeddings", longest), rope.get("factor", 1)
    numbers = all(type(value) in (int, float) for value in (before, factor))
    return max(longest, int(before * factor)) if numbers else longest


def load_tokenizer(model: Path | str) -> Any:
    """The transformers tokenizer of a model directory. Raises UserError for a missing directory or tokenizer."""
    path = model_directory(model)
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(path, local_files_only=True, trust_remote_code=False)
    except (
        Exception
    ) as error:  # a damaged file makes transformers fail in any way, KeyError and AttributeError included
        reason = quoted(f"{type(error).__name__}: {error}".splitlines()[0], 200)
        raise UserError(f"{path}: the tokenizer cannot be loaded ({reason}); copy the model again") from None


def control_strings(tokens: Iterable[str]) -> tuple[str, ...]:
    """Those of a tokenizer's added `tokens` that could act as control tokens if a text spelled them out, longest first.

    Whitespace, single characters and plain words or numbers among the added tokens carry text, not control.
    """
    stripped = {token.strip() for token in tokens}
    return tuple(sorted((t for t in stripped if len(t) > 1 and not t.isalnum()), key=lambda t: (-len(t), t)))


def break_up(text: str, controls: Sequence[str]) -> str:
    """`text` with a space after the first character of every string of `controls`, until none is left."""
    if not controls:
        return text
    pattern = re.compile("|".join(re.escape(control) for control in controls))
    while pattern.search(text):
        text = pattern.sub(lambda match: f"{match.group()[0]} {match.group()[1:]}", text)
    return text


def _controls(tokenizer: Any) -> tuple[str, ...]:
    return control_strings([*tokenizer.get_added_vocab(), *tokenizer.all_special_tokens])


def encode_plain(tokenizer: Any, text: str) -> list[int]:
    """Token ids of a compact prompt, without begin or end tokens. No control token is ever among them."""
    # Breaking up the spelling covers added tokens that aren't marked special, which split_special_tokens lets through.
    ids = tokenizer.encode(break_up(text, _controls(tokenizer)), add_special_tokens=False, split_special_tokens=True)
    return list(ids)


def encode_chat(tokenizer: Any, messages: Sequence[Message]) -> list[int]:
    """Token ids of a conversation in the model's chat template, up to where its next answer starts; thinking off.

    Control tokens come from the template alone: in the contents every added token of this tokenizer is broken up.
    Raises UserError where the model has no chat template.
    """
    if not tokenizer.chat_template:
        raise UserError(
            "the model has no chat template: use an instruction-tuned model, or method compact with an adapter"
        )
    controls = _controls(tokenizer)
    conversation = [{"role": message.role, "content": break_up(message.content, controls)} for message in messages]
    ids = tokenizer.apply_chat_template(
        conversation, add_generation_prompt=True, tokenize=True, return_dict=False, enable_thinking=False
    )
    return list(ids)


def score_token_ids(tokenizer: Any, grid: Sequence[str]) -> dict[str, int]:
    """Character → token id for all characters of the score strings in `grid`.

    Raises UserError where the tokenizer doesn't write every score as one token per character: its distribution over
    the grid could then not be read.
    """
    before = encode_plain(tokenizer, SCORE_CONTEXT)
    ids: dict[str, int] = {}
    for text in grid:
        after = encode_plain(tokenizer, SCORE_CONTEXT + text)
        pieces = [tokenizer.decode([token]) for token in after[len(before) :]]
        ids.update(read_score_ids(text, before, after, pieces))
    return ids


def read_score_ids(text: str, before: list[int], after: list[int], pieces: list[str]) -> dict[str, int]:
    """Character → token id of one score string.

    `before` and `after` are the token ids without and with `text` at the end, `pieces` the texts of the added tokens.
    Raises UserError where they are not the characters of `text`, one token each.
    """
    if after[: len(before)] != before or pieces != list(text):
        raise UserError(
            f"the tokenizer writes the score {text} as {pieces}, not as one token per digit: use a model whose "
            "tokenizer splits digits (SmolLM2, Qwen), or a rubric whose range has one digit"
        )
    return dict(zip(text, after[len(before) :], strict=True))
