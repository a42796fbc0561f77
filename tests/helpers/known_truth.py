"""A scripted model that knows the properties of simulated responses, and answers every call as they imply.

It finds the response by its text in the prompt. What the prompt does not show it does not use: a judge of evidence
scores by the lines of evidence alone. Answers that must not count (scores of items that are invalid, proposals that
are not chosen) are wrong on purpose.
"""

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from scripted_methods import as_sample, text_of

from eval.benchmarks.simulation.simulate import SimulatedResponse
from inference.records import Call, Completion, Score, StepEvidence
from inference.rubric import Dimension, Rubric, Step
from inference.schemas import NO_CHOICE

_RESPONSE = re.compile(r"Response to step (\w+):\n```\n(.*?)\n```", re.DOTALL)
_PROPOSAL = re.compile(r"Proposal (\d):\n```\n(.*?)\n```", re.DOTALL)
_EVIDENCE = re.compile(r"Evidence on step (\w+):\n```\n(.*?)\n```", re.DOTALL)
_WORTH = re.compile(r"\(worth (\w+)\)")

Value = Callable[[Step, Dimension, int | None], Any]
"""What stands under a dimension of an item (None: of the step) in an answer."""


class KnownTruth:
    """Answers calls on the `responses`.

    Of `scorers` one is right, which one depends on response and step. `hasty`: drafts and first choices are wrong,
    second thoughts right.
    """

    def __init__(
        self, rubric: Rubric, responses: Sequence[SimulatedResponse], *, scorers: int = 3, hasty: bool = False
    ) -> None:
        self._steps = {step.name: step for step in rubric.answered}
        self._scorers, self._hasty = scorers, hasty
        self._truth: dict[str, dict[tuple[str, str, int | None], Score]] = {}
        self._evidence: dict[str, dict[str, StepEvidence]] = {}
        self._by_text: dict[tuple[str, str], str] = {}
        for response in responses:
            self._truth[response.id] = {(s.step, s.dimension, s.item): s for s in response.truth}
            self._evidence[response.id] = {part.step: part for part in response.evidence}
            for step, text in as_sample(response).responses.items():
                assert self._by_text.setdefault((step, text), response.id) == response.id, "two responses are the same"

    def __call__(self, call: Call) -> Completion:
        schema = call.json_schema or {}
        wanted = set(schema["properties"])
        if wanted == {"choice"}:
            answer: dict[str, Any] = {"choice": self._choice(call)}
        elif wanted == {"notes", "scores"}:
            answer = self._proposal(call)
        elif "memory" in json.dumps(schema):
            answer = self._analysis(call, wanted)
        elif "Evidence on step" in text_of(call):
            answer = self._judged(call)
        else:
            answer = self._scored(call, wanted, table="evidence" in json.dumps(schema))
        return Completion(text=json.dumps(answer))

    # -- the raw response

    def _shown(self, call: Call) -> tuple[str, list[str]]:
        """The response in a prompt, and the steps of it that are shown, in order."""
        found = _RESPONSE.findall(text_of(call))
        (response,) = {self._by_text[step, text] for step, text in found}
        return response, [step for step, _ in found]

    def _true(self, response: str) -> Value:
        def value(step: Step, dimension: Dimension, item: int | None) -> Any:
            score = self._truth[response].get((step.name, dimension.name, item))
            if score is None:  # the item is invalid
                return dimension.choices[-1] if dimension.choices else dimension.range[1]
            return score.choice if dimension.choices else int(score.value or 0)

        return value

    def _scored(self, call: Call, wanted: set[str], *, table: bool) -> dict[str, Any]:
        response, steps = self._shown(call)
        assert wanted == set(steps)
        beside = {"evidence": "as the text says"} if table else {}
        return {step: rows(self._steps[step], self._true(response), beside) for step in steps}

    # -- proposals

    def _proposal(self, call: Call) -> dict[str, Any]:
        response, steps = self._shown(call)
        step = self._steps[steps[-1]]
        refining = "Go over your own answer" in (call.messages or ())[-1].content
        right = call.seed == self._right_scorer(response, step) and (refining or not self._hasty)
        true = self._true(response)
        return {"notes": f"proposal of {call.seed}", "scores": rows(step, true if right else _wrong(true))}

    def _right_scorer(self, response: str, step: Step) -> int:
        return (sum(map(ord, response)) + int(step.name[-1])) % self._scorers

    def _choice(self, call: Call) -> int:
        response, (name,) = self._shown(call)
        step = self._steps[name]
        proposals = {int(number): json.loads(text) for number, text in _PROPOSAL.findall(text_of(call))}
        assert sorted(proposals) == [1, 2, 3]
        true = rows(step, self._true(response))
        (best,) = (number for number, proposal in proposals.items() if proposal["scores"] == true)
        reconsidering = "Think your choice over" in (call.messages or ())[-1].content
        return best if reconsidering or not self._hasty else best % self._scorers + 1

    # -- evidence

    def _analysis(self, call: Call, wanted: set[str]) -> dict[str, Any]:
        response, steps = self._shown(call)
        parts = {name: self._analysed(response, self._steps[name]) for name in steps}
        return parts if wanted == set(steps) else parts[steps[0]]

    def _analysed(self, response: str, step: Step) -> dict[str, Any]:
        """The simulated analyst's evidence, each text with what it is worth."""
        part = self._evidence[response][step.name]

        def text(_: Step, dimension: Dimension, item: int | None) -> str:
            score = self._truth[response].get((step.name, dimension.name, item))
            if dimension.choices:
                return NO_CHOICE if score is None or score.choice is None else score.choice
            said = (part.texts if item is None else part.items[item - 1])[dimension.name]
            return said if score is None else f"{said} (worth {score.value:.0f})"

        return {"evidence": rows(step, text), "memory": part.memory}

    def _judged(self, call: Call) -> dict[str, Any]:
        answer = {}
        for name, text in _EVIDENCE.findall(text_of(call)):
            lines = dict(line.split(": ", 1) for line in text.splitlines())
            answer[name] = rows(self._steps[name], _by_evidence(lines))
        return answer


def rows(step: Step, value: Value, beside: dict[str, Any] | None = None) -> Any:
    """The part of an answer on one step: keys as models write them."""
    numbers = range(1, step.items.count + 1) if step.items else (None,)
    found = [{**(beside or {}), **{d.short: value(step, d, item) for d in step.asked}} for item in numbers]
    return found if step.items else found[0]


def _by_evidence(lines: dict[str, str]) -> Value:
    def value(step: Step, dimension: Dimension, item: int | None) -> Any:
        place = "" if step.items is None else f"{step.items.kind} {item} "
        text = lines[place + dimension.name]
        if dimension.choices:
            return text if text in dimension.choices else dimension.choices[-1]
        worth = _WORTH.search(text)
        return int(worth[1]) if worth else dimension.range[1]

    return value


def _wrong(value: Value) -> Value:
    """Another value for everything."""

    def other(step: Step, dimension: Dimension, item: int | None) -> Any:
        true = value(step, dimension, item)
        if dimension.choices:
            return dimension.choices[dimension.choices.index(true) - 1]
        low, high = dimension.range
        return low if true == high else true + 1

    return other
