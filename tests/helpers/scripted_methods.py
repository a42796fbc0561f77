"""Methods on scripted answers, with every call that they make written down."""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from eval.benchmarks.simulation.pools import scenario_pool
from eval.benchmarks.simulation.simulate import SimulatedResponse, simulate
from inference.judges import JudgeConfig
from inference.methods import METHODS, Answers, Asks
from inference.records import Call, Completion, Sample, StepEvidence
from inference.rubric import Rubric, load_rubric

CGPST = load_rubric("cgpst")
Reply = Callable[[Call, int], Completion]
"""Answers a call, given its number (from 0)."""


@dataclass(frozen=True)
class Run:
    """What a method made of one sample."""

    answers: Answers
    calls: list[Call]
    models: list[str]
    """Of each call the model that was asked: "judge" or "analyst"."""

    def unscored(self) -> dict[str, set[str]]:
        """Step → reasons."""
        found: dict[str, set[str]] = {}
        for score in self.answers.scores:
            if score.unscored is not None:
                found.setdefault(score.step, set()).add(score.unscored)
        return found


def run(
    rubric: Rubric,
    sample: Sample,
    reply: Reply | None = None,
    given: Sequence[StepEvidence] | None = None,
    **settings: object,
) -> Run:
    """One sample judged with the judge's `settings`; by default every call is answered by `labelled`.

    With `given`, that evidence is judged in place of an analysis.
    """
    judge = JudgeConfig.model_validate({"id": "judge", "engine": "scripted", "model": "scripted", **settings})
    calls: list[Call] = []
    models: list[str] = []

    def asked(model: str) -> Callable[[Call], Any]:
        async def ask(call: Call) -> Completion:
            calls.append(call)
            models.append(model)
            return (reply or labelled)(call, len(calls) - 1)

        return ask

    asks = Asks(asked("judge"), asked("analyst"), given)
    answers = asyncio.run(METHODS[judge.asked](rubric, sample, asks, judge.settings(0)))
    return Run(answers, calls, models)


def labelled(call: Call, number: int) -> Completion:
    """A valid answer whose texts say where they come from: ``memory of call 3``. Scores and names are the first ones.

    Texts that are neither notes nor memory are evidence.
    """
    if call.json_schema is None:
        assert call.grid
        return Completion(text=call.grid[0])

    def text(key: str) -> str:
        return f"{key if key in ('notes', 'memory') else 'evidence'} of call {number}"

    return Completion(text=json.dumps(filled(call.json_schema, text)))


def filled(schema: dict[str, Any], text: Callable[[str], str], key: str = "", chosen: int = 0) -> Any:
    """A value that fits `schema`; strings are made by `text` from the key they stand under.

    Of an enumeration the entry at position `chosen` is taken.
    """
    if "enum" in schema:
        return schema["enum"][chosen]
    if schema["type"] == "object":
        return {name: filled(part, text, name, chosen) for name, part in schema["properties"].items()}
    if schema["type"] == "array":
        return [filled(schema["items"], text, key, chosen) for _ in range(schema["minItems"])]
    assert schema["type"] == "string"
    return text(key)


def text_of(call: Call) -> str:
    """All that the model sees."""
    return "\n".join(message.content for message in call.messages or ())


@cache
def simulated(count: int, step: int = 1) -> tuple[SimulatedResponse, ...]:
    """Every `step`-th of the simulated responses, `count` in all."""
    return tuple(simulate(CGPST, 0))[::step][:count]


def as_sample(response: SimulatedResponse) -> Sample:
    texts = {step: "\n".join(filter(None, parts)) for step, parts in response.texts.items()}
    pool = scenario_pool(response.parts.scenario)
    return Sample(id=response.id, scenario=pool.text, scenario_id=pool.id, responses=texts)
