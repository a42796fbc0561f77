"""The engine protocol, the settings that name an engine, and the lazy constructor."""

from typing import Literal, Protocol

from pydantic import Field, model_validator

from inference.config import Number, StrictModel, Whole
from inference.records import Call, Completion


class EngineError(Exception):
    """A call failed. `retryable` says whether the same call may succeed later."""

    def __init__(self, message: str, *, retryable: bool = False, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retryable = retryable
        self.retry_after = retry_after
        """Seconds the server asked us to wait, if it did."""


class Engine(Protocol):
    """Anything that answers calls."""

    @property
    def identity(self) -> dict[str, str]:
        """What determines the completions besides the call: kind, model, adapter digest. Part of the store's key."""
        ...

    async def complete(self, call: Call) -> Completion:
        """Answer one call. Raises EngineError; never retries by itself."""
        ...

    async def close(self) -> None:
        """Release connections, threads and memory."""
        ...


class EngineConfig(StrictModel):
    """How a judge's model is reached."""

    engine: Literal["openai", "hf", "vllm", "scripted"]
    model: str
    """A directory with a model (`hf`, `vllm`) or the name a server knows (`openai`)."""
    adapter: str | None = None
    """Directory of a PEFT adapter. With `openai` it is served by our `serve` under the name `model`, and the served
    name, which holds the hash of its content, is worked out from the directory."""
    base_url: str | None = None
    """`openai`: the endpoint, such as http://127.0.0.1:8000/v1. Default: the official API."""
    api_key_env: str = Field(default="OPENAI_API_KEY", pattern=r"^[A-Z][A-Z0-9_]*$")
    """`openai`: the name of the environment variable that holds the key, never the key. Local servers need none."""
    timeout: Number = Field(default=120.0, gt=0)
    """`openai`: seconds until a call counts as failed."""
    exact_grid: bool = False
    """`openai`: the server is vLLM, so the log-probabilities of all score strings can be asked for by token id."""
    reasoning_effort: str | None = Field(default=None, pattern=r"^[a-z]+$")
    """`openai`: how much the model is to think, in the words of its server, such as low, medium, high."""
    batch_size: Whole = Field(default=32, ge=1)
    """`hf`, `vllm`: calls computed together."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    max_model_len: Whole = Field(default=2048, ge=8)
    """`hf`, `vllm`: longest prompt plus answer, in tokens."""

    @model_validator(mode="after")
    def _fits_engine(self) -> "EngineConfig":
        if self.adapter and self.engine == "scripted":
            raise ValueError("engine scripted takes no adapter: remove it")
        if self.adapter and self.engine == "openai" and not self.base_url:
            raise ValueError("an adapter with engine openai needs the base_url of the server that holds it")
        if self.engine != "openai" and (self.base_url or self.exact_grid or self.reasoning_effort):
            raise ValueError(f"base_url, exact_grid and reasoning_effort belong to engine openai, not {self.engine}")
        return self


def build_engine(config: EngineConfig) -> Engine:
    """The engine a config names; torch, vLLM and openai are imported here only. UserError for a missing model."""
    if config.engine == "openai":
        from inference.engines.openai import OpenAIEngine

        return OpenAIEngine(config)
    if config.engine == "hf":
        from inference.engines.hf import HFEngine

        return HFEngine(config)
    if config.engine == "vllm":
        from inference.engines.vllm import VLLMEngine

        return VLLMEngine(config)
    from inference.engines.scripted import ScriptedEngine

    return ScriptedEngine(config)
