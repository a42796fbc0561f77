"""What a method is given and what it returns."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

from inference import prompts
from inference.config import StrictModel
from inference.records import Call, Completion, Message, Sample, Score, StepEvidence
from inference.rubric import Rubric

Ask = Callable[[Call], Awaitable[Completion]]
"""Answers a call from the store or the engine, with bounded retries behind it."""

T = TypeVar("T")


@dataclass(frozen=True)
class Asks:
    """The models of a judge."""

    judge: Ask
    analyst: Ask
    """Writes the evidence, for methods with an analysis of its own. The judge's own model where no other is named."""


class Settings(StrictModel):
    """How a method asks."""

    temperature: float = 0.0
    max_tokens: int | None = None
    """Longest answer in tokens, where the method's own choice doesn't do."""
    analysis_tokens: int | None = None
    """The same for the analyst's answers: a limit of the judge must not change what the analyst is asked."""
    repeat: int = 0
    """Index of a repetition: same content, another sample."""
    judge_scope: Literal["response", "step"] = "response"
    memory: bool = True
    stepwise: bool = True

    def call(self, messages: tuple[Message, ...], schema: dict, tokens: int, seed: int = 0) -> Call:  # type: ignore[type-arg]
        """A chat call answered by JSON; `tokens` is the method's own limit."""
        return Call(
            messages=messages,
            json_schema=schema,
            max_tokens=self.max_tokens or tokens,
            temperature=self.temperature,
            seed=seed,
            repeat=self.repeat,
        )


@dataclass(frozen=True)
class Answers:
    """What a method found out about one sample."""

    scores: tuple[Score, ...]
    """One per dimension asked (and item, where the step has items), in the rubric's order; a bad answer is unscored."""
    evidence: tuple[StepEvidence, ...] = ()


class Method(Protocol):
    """Scores one sample. Sums and derived dimensions are computed from its answers by the runner."""

    async def __call__(self, rubric: Rubric, sample: Sample, asks: Asks, settings: Settings) -> Answers: ...


async def ask_readable(
    ask: Ask, call: Call, read: Callable[[Completion], tuple[T, str | None]]
) -> tuple[T, Completion]:
    """What `read` makes of the answer. An unreadable one is asked for once more, with the complaint shown to the model.

    `read` returns what it found and a complaint, None where the answer is in order. The second answer stands as it is.
    """
    completion = await ask(call)
    found, complaint = read(completion)
    if complaint is None:
        return found, completion
    assert call.messages is not None
    corrected = (*call.messages, prompts.assistant(completion.text), prompts.complaint_message(complaint))
    completion = await ask(call.model_copy(update={"messages": corrected}))
    return read(completion)[0], completion
