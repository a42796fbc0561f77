"""Exact score log-probabilities from a vLLM server: prompts and scores as token ids, read without any top-k.

A vLLM batch that mixes requests by token id with requests for top-k alternatives loses the latter (seen with 0.32), so
with `exact_grid` every call asks by token id. Start the server with `python -m inference serve`: it switches on the
endpoint that lists the tokenizer's control tokens.
"""

import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any

from inference.engines.openai_answers import json_object, read_usage
from inference.records import Call, Completion
from inference.scoring import grid_branches, grid_logprobs, is_logprob
from inference.tokens import SCORE_CONTEXT, break_up, control_strings, read_score_ids

DIGITS = tuple("0123456789")
_NO_THINKING = {"enable_thinking": False}

log = logging.getLogger(__name__)


class ExactGrid:
    """Tokenizer look-ups and grid calls of one served model. `url` ends in /v1, the look-ups lie beside it."""

    def __init__(self, url: str, model: str) -> None:
        self._root = url.removesuffix("/v1")
        self._model = model
        self._controls: tuple[str, ...] | None = None
        self._ids: dict[str, int] = {}

    async def defused(self, client: Any, call: Call) -> Call:
        """`call` with every control token of the server's tokenizer broken up in its texts; digits looked up."""
        if self._controls is None:
            self._controls = await self._read_controls(client)
        await self._look_up(client, [*DIGITS, *(call.grid or ())])
        controls = self._controls
        if call.prompt is not None:
            return call.model_copy(update={"prompt": break_up(call.prompt, controls)})
        messages = tuple(
            message.model_copy(update={"content": break_up(message.content, controls)})
            for message in call.messages or ()
        )
        return call.model_copy(update={"messages": messages})

    async def complete(self, client: Any, call: Call) -> Completion:
        """The distribution over `call.grid`; the text is its most likely string. One request, one row per branch."""
        grid = call.grid or ()
        branches = grid_branches(grid)
        ids = await self._prompt_ids(client, call)
        rows = [[*ids, *(self._ids[character] for character in prefix)] for prefix in branches]
        answer = await client.completions.create(
            model=self._model,
            prompt=rows,
            max_tokens=1,
            temperature=0.0,
            logprobs=0,
            extra_body={
                "logprob_token_ids": sorted({self._ids[character] for text in grid for character in text}),
                "return_tokens_as_token_ids": True,
            },
        )
        found = json_object(answer)
        tops = {choice["index"]: choice["logprobs"]["top_logprobs"][0] for choice in found["choices"]}
        read = {
            prefix: {c: value for c in followers if is_logprob(value := self._value(tops[row], c))}
            for row, (prefix, followers) in enumerate(branches.items())
        }
        return grid_completion(grid, read).model_copy(update={"usage": read_usage(found)})

    def chat_options(self, call: Call) -> dict[str, Any]:
        """Extra settings of a chat request: no thinking, and the digits' log-probabilities at every token of JSON."""
        options: dict[str, Any] = {"chat_template_kwargs": _NO_THINKING}
        if call.json_schema is None:
            return options
        return {**options, "logprobs": True, "logprob_token_ids": [self._ids[digit] for digit in DIGITS]}

    def _value(self, top: Mapping[str, Any], character: str) -> Any:
        return top[f"token_id:{self._ids[character]}"]

    async def _prompt_ids(self, client: Any, call: Call) -> list[int]:
        if call.prompt is not None:
            return (await self._tokenize(client, call.prompt))[0]
        messages = [message.model_dump() for message in call.messages or ()]
        body = {"model": self._model, "messages": messages, "chat_template_kwargs": _NO_THINKING}
        answer = json_object(await client.post(f"{self._root}/tokenize", cast_to=object, body=body))
        return list(answer["tokens"])

    async def _tokenize(self, client: Any, text: str) -> tuple[list[int], list[str]]:
        body = {"model": self._model, "prompt": text, "add_special_tokens": False, "return_token_strs": True}
        answer = json_object(await client.post(f"{self._root}/tokenize", cast_to=object, body=body))
        return list(answer["tokens"]), list(answer["token_strs"])

    async def _look_up(self, client: Any, texts: Sequence[str]) -> None:
        missing = [text for text in texts if not set(text) <= set(self._ids)]
        if not missing:
            return
        before, _ = await self._tokenize(client, SCORE_CONTEXT)
        for text in missing:
            after, pieces = await self._tokenize(client, SCORE_CONTEXT + text)
            self._ids.update(read_score_ids(text, before, after, pieces[len(before) :]))

    async def _read_controls(self, client: Any) -> tuple[str, ...]:
        import openai

        try:
            info = json_object(await client.get(f"{self._root}/tokenizer_info", cast_to=object))
        except openai.NotFoundError:
            log.warning(
                "%s doesn't list its control tokens: only the common ones are broken up in responses; start it with "
                "`python -m inference serve`, or add --enable-tokenizer-info-endpoint",
                self._root,
            )
            return ()
        return control_strings((info.get("added_tokens_decoder") or {}).values())


def grid_completion(grid: Sequence[str], read: Mapping[str, Mapping[str, float]]) -> Completion:
    """What was read for each prefix of `grid_branches` as a completion; the text is the most likely string."""
    # Infinities have no JSON form, so a string without any probability is absent.
    logprobs = {text: value for text, value in grid_logprobs(grid, read).items() if math.isfinite(value)}
    return Completion(text=max(logprobs, key=lambda text: logprobs[text], default=""), grid_logprobs=logprobs)
