"""Offline vLLM engine: the model in this process, with an adapter, prefix cache, exact grids and enforced JSON schemas.

Engines that differ in their adapters share one running model (`vllm_model`), each with batches of its own.

vLLM starts processes of its own, so a script that uses this engine needs ``if __name__ == "__main__":``.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from inference.engines.base import EngineConfig
from inference.engines.local import LocalEngine, require
from inference.engines.openai_answers import kept_tokens
from inference.engines.vllm_model import INSTALL, shared_model
from inference.engines.vllm_server import DIGITS, grid_completion
from inference.records import Call, Completion, Token, Usage
from inference.scoring import grid_branches
from inference.tokens import score_token_ids


class VLLMEngine(LocalEngine):
    """See the module."""

    kind = "vllm"

    def __init__(self, config: EngineConfig) -> None:
        require("vllm", INSTALL)
        super().__init__(config)
        self._model = shared_model(self.folder, config.dtype)
        self._model.join(self)

    def group(self, call: Call) -> str:
        """Grid calls in one batch, all others in another: a batch that mixes their log-probabilities loses some."""
        return "grid" if call.grid else "text"

    def answer(self, calls: Sequence[Call], prompts: Sequence[list[int]]) -> Sequence[Completion]:
        if calls[0].grid:
            return self._read_grids(calls, prompts)
        settings = [self.text_settings(call) for call in calls]
        outputs = self._model.generate(self, prompts, settings)
        return [self._text(output) for output in outputs]

    def _read_grids(self, calls: Sequence[Call], prompts: Sequence[list[int]]) -> list[Completion]:
        from vllm import SamplingParams

        rows: list[list[int]] = []
        settings = []
        places: list[tuple[int, str, tuple[str, ...]]] = []
        for place, (call, prompt) in enumerate(zip(calls, prompts, strict=True)):
            ids = score_token_ids(self.tokenizer, call.grid or ())
            for prefix, followers in grid_branches(call.grid or ()).items():
                rows.append([*prompt, *(ids[character] for character in prefix)])
                settings.append(SamplingParams(max_tokens=1, temperature=0.0, logprob_token_ids=sorted(ids.values())))
                places.append((place, prefix, followers))
        outputs = self._model.generate(self, rows, settings)
        read: list[dict[str, Mapping[str, float]]] = [{} for _ in calls]
        usage = [Usage(completion=1) for _ in calls]
        for (place, prefix, followers), output in zip(places, outputs, strict=True):
            ids = score_token_ids(self.tokenizer, followers)
            found = output.outputs[0].logprobs[0]
            read[place][prefix] = {character: found[ids[character]].logprob for character in followers}
            usage[place] = _added(usage[place], output)
        return [
            grid_completion(call.grid or (), found).model_copy(update={"usage": used})
            for call, found, used in zip(calls, read, usage, strict=True)
        ]

    def text_settings(self, call: Call) -> Any:
        """vLLM's sampling parameters for a call without a grid."""
        from vllm import SamplingParams
        from vllm.sampling_params import StructuredOutputsParams

        settings: dict[str, Any] = {
            "max_tokens": call.max_tokens,
            "temperature": call.temperature,
            # The same content asked for again is another sample, so it needs another seed.
            "seed": call.seed + call.repeat if call.temperature > 0 else None,
        }
        if call.json_schema is not None:
            settings["structured_outputs"] = StructuredOutputsParams(json=json.dumps(call.json_schema))
            settings["logprob_token_ids"] = list(score_token_ids(self.tokenizer, DIGITS).values())
        return SamplingParams(**settings)

    def _text(self, output: Any) -> Completion:
        answer = output.outputs[0]
        usage = _added(Usage(completion=len(answer.token_ids)), output)
        tokens = [
            _token(self.tokenizer, token, top)
            for token, top in zip(answer.token_ids, answer.logprobs or (), strict=False)
        ]
        return Completion(
            text=answer.text,
            finish_reason="length" if answer.finish_reason == "length" else "stop",
            tokens=tuple(kept_tokens(answer.text, tokens)),
            usage=usage,
        )

    def release(self) -> None:
        """Give up the model, which ends with its last engine."""
        self._model.leave(self)


def _added(usage: Usage, output: Any) -> Usage:
    prompt, cached = len(output.prompt_token_ids), output.num_cached_tokens or 0
    return usage.model_copy(update={"prompt": usage.prompt + prompt, "cached": usage.cached + cached})


def _token(tokenizer: Any, token: int, top: Mapping[int, Any]) -> Token:
    found = {tokenizer.decode([other]): entry.logprob for other, entry in top.items() if entry.logprob > -9998.0}
    return Token(text=tokenizer.decode([token]), logprob=top[token].logprob, top=found)
