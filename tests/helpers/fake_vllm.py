"""A stand-in for the package vllm: remembers how it was started and what it was asked, and answers at once."""

import sys
import threading
import time
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

Write = Callable[[list[int]], list[int]]
"""Token ids of a prompt → those of the answer."""


class FakeVLLM:
    """All models that were started, and the batches of each."""

    def __init__(self, write: Write) -> None:
        self.started: list[LLM] = []
        self.write = write

    @property
    def running(self) -> list["LLM"]:
        return [llm for llm in self.started if not llm.ended]

    def start(self, **options: Any) -> "LLM":
        self.started.append(LLM(self.write, options))
        return self.started[-1]


class LLM:
    """One started model."""

    def __init__(self, write: Write, options: dict[str, Any]) -> None:
        self.options, self.ended = options, False
        self.batches: list[tuple[str, str | None]] = []
        """Of each batch "grid", "text" or "mixed", and the adapter's name."""
        self.numbers: dict[str, int] = {}
        self.settings: list[Any] = []
        self._write, self._busy = write, threading.Lock()
        self.llm_engine = SimpleNamespace(engine_core=SimpleNamespace(shutdown=self._end))

    def generate(
        self, inputs: Sequence[dict[str, Any]], settings: Sequence[Any], *, lora_request: Any, use_tqdm: bool
    ) -> list[Any]:
        assert not self.ended, "asked after its end"
        assert self._busy.acquire(blocking=False), "asked from two threads at the same time"
        try:
            time.sleep(0.002)
            kinds = {"grid" if _is_grid(one) else "text" for one in settings}
            self.batches.append((kinds.pop() if len(kinds) == 1 else "mixed", lora_request and lora_request.name))
            self.settings += settings
            number = 0
            if lora_request:
                assert self.options.get("enable_lora"), "an adapter, but no room for any"
                number = self.numbers.setdefault(lora_request.name, lora_request.number)
            prompts = [one["prompt_token_ids"] for one in inputs]
            return [self._answer(*pair, number) for pair in zip(prompts, settings, strict=True)]
        finally:
            self._busy.release()

    def _answer(self, prompt: list[int], settings: Any, number: int) -> Any:
        written = [0] if _is_grid(settings) else self._write(prompt)[: settings.max_tokens]
        # Log-probabilities that tell prompts, tokens and adapters apart.
        top = {
            token: SimpleNamespace(logprob=-1.0 - (hash((sum(prompt), token)) % 7) / 7 - number / 100)
            for token in getattr(settings, "logprob_token_ids", ())
        }
        answer = SimpleNamespace(
            token_ids=written,
            logprobs=[top] if _is_grid(settings) else None,
            finish_reason="stop",
            text="".join(map(chr, written)),
        )
        return SimpleNamespace(outputs=[answer], prompt_token_ids=prompt, num_cached_tokens=0)

    def _end(self) -> None:
        self.ended = True


def _is_grid(settings: Any) -> bool:
    return settings.max_tokens == 1 and hasattr(settings, "logprob_token_ids")


def install(monkeypatch: pytest.MonkeyPatch, write: Write = lambda _: [ord("x")]) -> FakeVLLM:
    """Put the stand-in in place of the package, for the time of a test. `write` gives the characters of an answer."""
    fake = FakeVLLM(write)

    def request(name: str, number: int, path: str) -> Any:
        return SimpleNamespace(name=name, number=number, path=path)

    modules = {
        "vllm": {"LLM": fake.start, "SamplingParams": SimpleNamespace},
        "vllm.lora": {},
        "vllm.lora.request": {"LoRARequest": request},
        "vllm.sampling_params": {"StructuredOutputsParams": SimpleNamespace},
    }
    for name, content in modules.items():
        module = ModuleType(name)
        module.__spec__ = ModuleSpec(name, None)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
    return fake
