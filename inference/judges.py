"""What a judge is: an engine, a method and how often to ask, as settings in a config."""

from typing import Any, Literal

from pydantic import Field

from inference.config import StrictModel
from inference.engines.base import EngineConfig
from inference.methods.base import Sampling
from inference.records import Usage

FREE_SETTINGS = ("batch_size", "concurrency", "max_retries", "timeout", "api_key_env", "price")
"""Settings that may change when a run is resumed: they don't touch what is asked or answered."""


class Price(StrictModel):
    """Price of tokens in the currency of your bill, per million."""

    input: float = Field(ge=0)
    cached: float | None = Field(default=None, ge=0)
    """Prompt tokens served from the provider's cache. Default: the price of `input`."""
    output: float = Field(ge=0)

    def cost(self, usage: Usage) -> float:
        """What `usage` costs; reasoning tokens are part of the completion and billed with it."""
        cached = self.input if self.cached is None else self.cached
        fresh = usage.prompt - usage.cached
        return (fresh * self.input + usage.cached * cached + usage.completion * self.output) / 1e6


class JudgeConfig(EngineConfig):
    """One judge. Its engine's settings stand beside its own: ``{id: …, engine: hf, model: …, method: compact}``."""

    id: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=80)
    """Name in judgements, tables and columns."""
    method: Literal["direct", "compact"]
    """A name of `inference.methods.METHODS`."""
    temperature: float = Field(default=0.0, ge=0)
    max_tokens: int | None = Field(default=None, ge=1)
    """Longest answer in tokens. Default: what the method's answer needs; models that reason first need more."""
    repeats: int = Field(default=1, ge=1)
    """Judgements per sample, each from calls of its own."""
    concurrency: int | None = Field(default=None, ge=1)
    """Most calls in flight. Default: 16 for `openai` and `scripted`; for `hf` and `vllm` four times `batch_size`, so
    that the engine has a choice of calls of similar length for each batch."""
    max_retries: int = Field(default=4, ge=0)
    """Extra tries of a call that failed for a passing reason (rate limit, time-out, server error)."""
    price: Price | None = None

    def sampling(self, repeat: int) -> Sampling:
        """How the calls of a repetition are sampled."""
        return Sampling(temperature=self.temperature, max_tokens=self.max_tokens, repeat=repeat)

    @property
    def calls_in_flight(self) -> int:
        return self.concurrency or (4 * self.batch_size if self.engine in ("hf", "vllm") else 16)


def resolved_judge(judge: JudgeConfig) -> dict[str, Any]:
    """The settings as plain data for a run directory, with digests of the local model and adapter.

    A model or an adapter trained anew under the same name so counts as a changed setting. Raises UserError where the
    directory of either is missing.
    """
    from inference.adapters import adapter_digest, model_digest

    resolved = judge.model_dump(mode="json")
    if judge.engine in ("hf", "vllm"):
        resolved["model_digest"] = model_digest(judge.model)
    if judge.adapter:
        resolved["adapter_digest"] = adapter_digest(judge.adapter)
    return resolved
