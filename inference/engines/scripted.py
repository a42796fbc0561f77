"""The engine without a model: answers that follow from the call's content alone. The one fake of all tests."""

import asyncio
import json
import math
import random
from collections.abc import Callable
from typing import Any

from inference.engines.base import EngineConfig
from inference.errors import UserError
from inference.records import Call, Completion, Usage

Answer = Callable[[Call], Completion]


class ScriptedEngine:
    """Deterministic answers, for tests and for trying out a config without a model.

    The model's name is a label; what follows a colon is the time of a call in seconds: ``scripted:0.02``. Without
    `answer`, a call with a grid gets a distribution over it, one with a JSON schema a valid object, any other one
    word. All are drawn with the call's key as seed. `answer` may raise EngineError.
    """

    def __init__(self, config: EngineConfig, answer: Answer | None = None) -> None:
        self.identity = {"engine": "scripted", "model": config.model}
        self._seconds = _seconds(config.model)
        self._answer = answer or self._draw

    async def complete(self, call: Call) -> Completion:
        if self._seconds:
            await asyncio.sleep(self._seconds)
        return self._answer(call)

    async def close(self) -> None:
        """Nothing to release."""

    def _draw(self, call: Call) -> Completion:
        chance = random.Random(call.key(self.identity))
        text, grid_logprobs = "word", None
        if call.grid:
            weights = [chance.random() + 1e-6 for _ in call.grid]
            total = math.fsum(weights)
            grid_logprobs = {score: math.log(weight / total) for score, weight in zip(call.grid, weights, strict=True)}
            text = max(grid_logprobs, key=grid_logprobs.__getitem__)
        elif call.json_schema:
            text = json.dumps(_value(call.json_schema, chance))
        return Completion(text=text, grid_logprobs=grid_logprobs, usage=_usage(call, text), seconds=self._seconds)


def _seconds(model: str) -> float:
    _, _, delay = model.partition(":")
    try:
        return float(delay or 0.0)
    except ValueError:
        raise UserError(f"model {model!r}: after the colon stand seconds per call, as in scripted:0.02") from None


def _usage(call: Call, text: str) -> Usage:
    """About four characters a token."""
    given = call.prompt if call.prompt is not None else "".join(message.content for message in call.messages or ())
    return Usage(prompt=1 + len(given) // 4, completion=1 + len(text) // 4)


def _value(schema: dict[str, Any], chance: random.Random) -> Any:
    """A value that fits a JSON schema of the kinds that rubrics make."""
    if "enum" in schema:
        return chance.choice(schema["enum"])
    if schema["type"] == "object":
        return {key: _value(part, chance) for key, part in schema["properties"].items()}
    if schema["type"] == "array":
        return [_value(schema["items"], chance) for _ in range(schema.get("minItems", 1))]
    if schema["type"] in ("integer", "number"):
        return chance.randint(int(schema.get("minimum", 0)), int(schema.get("maximum", 9)))
    return "word"
