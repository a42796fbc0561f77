"""What a method is given and what it returns."""

from collections.abc import Awaitable, Callable
from typing import Protocol

from inference.records import Call, Completion, Sample, Score
from inference.rubric import Rubric

Ask = Callable[[Call], Awaitable[Completion]]
"""Answers a call from the store or the engine, with bounded retries behind it."""


class Method(Protocol):
    """Scores one sample: one `Score` per dimension, in the rubric's order; a bad answer is unscored, with a reason."""

    async def __call__(
        self, rubric: Rubric, sample: Sample, ask: Ask, *, temperature: float, repeat: int
    ) -> tuple[Score, ...]: ...
