"""Learned models on plain prompts, one step or item a call.

`compact` asks a judge of raw responses, one number a call. `compact_creaeval` has a learned analyst write evidence,
item by item and step by step, each call with what was quoted before, and a learned judge score each piece of it alone.
"""

import asyncio
from collections.abc import Iterable, Sequence

from inference import prompts
from inference.answers import read_evidence_line
from inference.copies import Forbidden
from inference.items import item_texts
from inference.methods.base import Answers, Ask, Asks, Settings, in_order, long_quotations
from inference.methods.creaeval import TOKENS_PER_NAME, TOKENS_PER_TEXT
from inference.methods.evidence import given_evidence, missing_scores, nothing
from inference.quotations import cut_memory, cut_quotations
from inference.records import Call, Sample, Score, StepEvidence
from inference.rubric import Rubric, Step
from inference.scoring import read_number_answer, unscored


async def compact(rubric: Rubric, sample: Sample, asks: Asks, settings: Settings) -> Answers:
    """One call of one token per number that a judge has learned, on the prompt it was trained on.

    A blank item does not count, and is not asked about.
    """
    asked = await _ask(rubric, prompts.raw_questions(rubric, sample), asks.judge, settings)
    return Answers(in_order(rubric, [*asked, *prompts.raw_known(rubric, sample)]))


async def compact_creaeval(rubric: Rubric, sample: Sample, asks: Asks, settings: Settings) -> Answers:
    """Evidence first, then scores. An item, or a step without items, that has no readable evidence is unscored."""
    if asks.evidence is None:
        evidence, missing = await analyse_compact(rubric, sample, asks.analyst, settings)
    else:
        evidence, missing = _given(rubric, sample, asks.evidence)
    scores = await judge_compact_evidence(rubric, evidence, asks.judge, settings)
    return Answers(in_order(rubric, [*scores, *missing]), tuple(evidence))


async def analyse_compact(
    rubric: Rubric, sample: Sample, ask: Ask, settings: Settings
) -> tuple[list[StepEvidence], list[Score]]:
    """Phase 1: the evidence, and the scores that are missing for want of it. What can't be read has no texts.

    No run of eight words of the response is left in a text.
    """
    return await _Analysis(rubric, sample, ask, settings).run()


def _given(rubric: Rubric, sample: Sample, evidence: Sequence[StepEvidence]) -> tuple[list[StepEvidence], list[Score]]:
    """The same of evidence that exists already."""
    given, forbidden = given_evidence(rubric, sample, evidence), long_quotations(rubric, sample)
    return [cut_memory(cut_quotations(part, forbidden), forbidden) for part in given], missing_scores(rubric, given)


async def judge_compact_evidence(
    rubric: Rubric, evidence: Sequence[StepEvidence], ask: Ask, settings: Settings
) -> list[Score]:
    """Phase 2: scores of what `evidence` says. The raw response is not among what it is given."""
    asked = await _ask(rubric, prompts.evidence_questions(rubric, evidence), ask, settings)
    return [*asked, *prompts.evidence_known(rubric, evidence)]


async def _ask(rubric: Rubric, questions: Iterable[prompts.Question], ask: Ask, settings: Settings) -> list[Score]:
    async def answer(question: prompts.Question) -> Score:
        step, dimension, _ = rubric.learned[question.learned]
        call = Call(
            prompt=question.prompt,
            grid=dimension.grid,
            max_tokens=len(dimension.grid[-1]),
            temperature=settings.temperature,
            repeat=settings.repeat,
        )
        return read_number_answer(step.name, dimension, await ask(call), question.item)

    # Side by side: none depends on another, and local engines compute them in batches.
    return list(await asyncio.gather(*map(answer, questions)))


class _Analysis:
    """Takes evidence from one response, step by step."""

    def __init__(self, rubric: Rubric, sample: Sample, ask: Ask, settings: Settings) -> None:
        self._rubric, self._sample, self._ask, self._settings = rubric, sample, ask, settings
        self._missing: list[Score] = []
        self._memories: dict[str, str] = {}

    async def run(self) -> tuple[list[StepEvidence], list[Score]]:
        forbidden = long_quotations(self._rubric, self._sample)
        evidence = []
        for step in self._rubric.answered:
            part = await (self._whole(step, forbidden) if step.items is None else self._by_item(step, forbidden))
            if part is not None:
                self._memories[step.name] = prompts.step_memory(step, part)
                remembered = part.model_copy(update={"memory": self._memories[step.name]})
                evidence.append(cut_memory(remembered, forbidden))
        return evidence, self._missing

    async def _whole(self, step: Step, forbidden: Forbidden) -> StepEvidence | None:
        if not self._sample.responses.get(step.name, "").strip():
            return nothing(step)  # there is nothing to ask about
        texts = await self._texts(step, None, ())
        return cut_quotations(StepEvidence(step=step.name, texts=texts), forbidden) if texts else None

    async def _by_item(self, step: Step, forbidden: Forbidden) -> StepEvidence:
        blank = nothing(step).items[0]
        part = StepEvidence(step=step.name)
        for number, text in enumerate(item_texts(step, self._sample), 1):
            so_far = prompts.item_quotations(step, part.items)
            row = await self._texts(step, number, so_far) if text else blank
            shown = cut_quotations(StepEvidence(step=step.name, items=(row,)), forbidden)
            part = part.model_copy(update={"items": (*part.items, *shown.items), "cut": part.cut + shown.cut})
        return part

    async def _texts(self, step: Step, item: int | None, so_far: Sequence[str]) -> dict[str, str]:
        """Dimension → evidence; empty, and noted as missing, where the answer can't be read."""
        memory = prompts.remembered(self._rubric, step, self._memories)
        tokens = sum(TOKENS_PER_NAME if d.choices else TOKENS_PER_TEXT for d in step.asked)
        call = Call(
            prompt=prompts.analyst_prompt(self._sample, step, item, memory, so_far),
            max_tokens=self._settings.analysis_tokens or tokens,
            temperature=self._settings.temperature,
            repeat=self._settings.repeat,
        )
        found = read_evidence_line(step, await self._ask(call))
        if isinstance(found, str):
            self._missing += [unscored(step.name, dimension, found, item) for dimension in step.asked]
            return {}
        return found
