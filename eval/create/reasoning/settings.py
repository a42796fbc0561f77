"""Settings of ``python -m eval create reasoning``, ``configs/eval/create_reasoning.yaml``."""

from pydantic import Field

from inference.config import StrictModel, Whole
from inference.judges import Budget, ModelConfig

REPLY_TOKENS = 4096
LONGEST_TRACE = 120_000


class ReasoningConfig(StrictModel):
    """Whose traces are read, and by which model. Paths are relative to the working directory."""

    input: str
    """``answers.jsonl`` of `eval create generate`."""
    extractor: ModelConfig
    """Any chat model; one call per trace, of at most `max_tokens` (default: 4096) of reply."""
    longest_trace: Whole = Field(default=LONGEST_TRACE, ge=1)
    """Characters, about four a token. Of a longer trace the extractor sees the first so many, and it counts as cut."""
    budget: Budget | None = None
    out: str
    """Run directory. Starting again with the same settings resumes it."""

    @property
    def reply_tokens(self) -> int:
        return self.extractor.max_tokens or REPLY_TOKENS
