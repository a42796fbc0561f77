"""What a method is given and what it returns."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

from inference import prompts
from inference.config import StrictModel
from inference.copies import Forbidden, forbidden_runs
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
    evidence: Sequence[StepEvidence] | None = None
    """On the one sample that is judged, where it exists already: the analyst is not asked then."""


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
    ask: Ask,
    call: Call,
    read: Callable[[Completion], tuple[T, str | None]],
    merge: Callable[[T, T], T] = lambda _, second: second,
) -> tuple[T, Completion]:
    """What `read` makes of the answer. An unreadable one is asked for once more, with the complaint shown to the model.

    `read` returns what it found and a complaint, None where the answer is in order. `merge` makes one of what was found
    in the first and the second answer. The completion is the first one where nothing of the second was taken.
    """
    first = await ask(call)
    found, complaint = read(first)
    if complaint is None:
        return found, first
    assert call.messages is not None
    corrected = (*call.messages, prompts.assistant(first.text), prompts.complaint_message(complaint))
    second = await ask(call.model_copy(update={"messages": corrected}))
    again, _ = read(second)
    merged = merge(found, again)
    return merged, first if merged == found != again else second


def readable_scores(first: tuple[Score, ...], second: tuple[Score, ...]) -> tuple[Score, ...]:
    """Of each score the second reading, or the first where that could not be read."""
    return tuple(a if b.unscored else b for a, b in zip(first, second, strict=True))


def in_order(rubric: Rubric, scores: Iterable[Score]) -> tuple[Score, ...]:
    """Scores in the rubric's order: step by step, in it item by item, what is about the whole step last."""
    steps = {step.name: number for number, step in enumerate(rubric.steps)}
    dimensions = {(s.name, d.name): number for s in rubric.steps for number, d in enumerate(s.dimensions)}

    def place(score: Score) -> tuple[int, bool, int, int]:
        return steps[score.step], score.item is None, score.item or 0, dimensions[score.step, score.dimension]

    return tuple(sorted(scores, key=place))


def long_quotations(rubric: Rubric, sample: Sample) -> Forbidden:
    """What evidence on a response must not repeat of it: what neither the scenario nor the rubric says."""
    return forbidden_runs(sample.responses.values(), [sample.scenario, sample.subject, prompts.describe(rubric)])
