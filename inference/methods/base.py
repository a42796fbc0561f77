"""What a method is given and what it returns."""

from collections.abc import Awaitable, Callable
from typing import Protocol

from inference.config import StrictModel
from inference.records import Call, Completion, Sample, Score
from inference.rubric import Rubric

Ask = Callable[[Call], Awaitable[Completion]]
"""Answers a call from the store or the engine, with bounded retries behind it."""


class Sampling(StrictModel):
    """How a method's calls are sampled."""

    temperature: float = 0.0
    max_tokens: int | None = None
    """Longest answer in tokens, where the method's own choice doesn't do."""
    repeat: int = 0
    """Index of a repetition: same content, another sample."""


class Method(Protocol):
    """Scores one sample: a `Score` per dimension asked (and item, where the step has items), in the rubric's order.

    A bad answer is unscored, with a reason. Sums and derived dimensions are computed from the answers by the runner.
    """

    async def __call__(self, rubric: Rubric, sample: Sample, ask: Ask, sampling: Sampling) -> tuple[Score, ...]: ...
