"""Judging the raw response step by step: chain, tree and graph of thoughts.

`cot` goes through the steps in one conversation. `tot` has three scorers propose, each in a conversation of its own,
and a selector choose one proposal per step. `got` adds that each scorer goes over its proposal once, and the selector
thinks its choice over once.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from inference import prompts
from inference.answers import complaint_of, read_choice, read_noted_scores
from inference.methods.base import Answers, Ask, Asks, Settings, ask_readable, readable_scores
from inference.methods.direct import TOKENS_PER_SCORE, answers
from inference.records import Completion, Message, Sample, Score
from inference.rubric import Rubric, Step
from inference.schemas import choice_schema, noted_schema

SCORERS = 3
NOTE_TOKENS = 160
CHOICE_TOKENS = 16


async def cot(rubric: Rubric, sample: Sample, asks: Asks, settings: Settings) -> Answers:
    """One conversation, one call per step."""
    scorer = _Scorer(rubric, sample, asks.judge, settings, seed=0)
    scores: list[Score] = []
    for step in rubric.answered:
        scores += (await scorer.propose(step)).scores
    return Answers(tuple(scores))


async def tot(rubric: Rubric, sample: Sample, asks: Asks, settings: Settings) -> Answers:
    """Per step three proposals and a choice."""
    return await _choose_by_step(rubric, sample, asks, settings, refine=False)


async def got(rubric: Rubric, sample: Sample, asks: Asks, settings: Settings) -> Answers:
    """Per step three proposals, each gone over once, and a choice, thought over once."""
    return await _choose_by_step(rubric, sample, asks, settings, refine=True)


async def _choose_by_step(rubric: Rubric, sample: Sample, asks: Asks, settings: Settings, *, refine: bool) -> Answers:
    scorers = [_Scorer(rubric, sample, asks.judge, settings, seed) for seed in range(SCORERS)]
    scores: list[Score] = []
    for step in rubric.answered:
        proposals = await asyncio.gather(*(scorer.propose(step) for scorer in scorers))
        if refine:
            proposals = await asyncio.gather(*(scorer.refine(step) for scorer in scorers))
        chosen = await _select(rubric, sample, step, proposals, asks.judge, settings, reconsider=refine)
        scores += chosen
    return Answers(tuple(scores))


@dataclass(frozen=True)
class _Proposal:
    text: str
    scores: tuple[Score, ...]


class _Scorer:
    """One conversation through the steps. `seed` tells scorers with the same prompts apart."""

    def __init__(self, rubric: Rubric, sample: Sample, ask: Ask, settings: Settings, seed: int) -> None:
        self._rubric, self._sample, self._ask, self._settings, self._seed = rubric, sample, ask, settings, seed
        self._messages: tuple[Message, ...] = prompts.steps_opening(rubric)

    async def propose(self, step: Step) -> _Proposal:
        self._messages = (*self._messages, prompts.step_message(self._rubric, self._sample, step))
        proposal = await self._answer(step, self._messages)
        self._messages = (*self._messages, prompts.assistant(proposal.text))
        return proposal

    async def refine(self, step: Step) -> _Proposal:
        """Goes over the latest proposal. The refined one takes its place in the conversation, which so stays short."""
        proposal = await self._answer(step, (*self._messages, prompts.refine_message(step)))
        self._messages = (*self._messages[:-1], prompts.assistant(proposal.text))
        return proposal

    async def _answer(self, step: Step, messages: tuple[Message, ...]) -> _Proposal:
        tokens = NOTE_TOKENS + TOKENS_PER_SCORE * answers([step])
        call = self._settings.call(messages, noted_schema(step), tokens, self._seed)

        def read(completion: Completion) -> tuple[tuple[Score, ...], str | None]:
            found = read_noted_scores(step, completion)
            return found, complaint_of(found)

        scores, completion = await ask_readable(self._ask, call, read, readable_scores)
        return _Proposal(completion.text, scores)


async def _select(
    rubric: Rubric,
    sample: Sample,
    step: Step,
    proposals: Sequence[_Proposal],
    ask: Ask,
    settings: Settings,
    *,
    reconsider: bool,
) -> tuple[Score, ...]:
    """The chosen proposal's scores; unscored, with the reason, where no choice can be read."""
    messages = prompts.choice_messages(rubric, sample, step, [proposal.text for proposal in proposals])
    schema = choice_schema(len(proposals))

    def read(completion: Completion) -> tuple[int | str, str | None]:
        found = read_choice(len(proposals), completion)
        return found, found if isinstance(found, str) else None

    choice, completion = await ask_readable(ask, settings.call(messages, schema, CHOICE_TOKENS), read)
    if reconsider:
        messages = (*messages, prompts.assistant(completion.text), prompts.reconsider_message())
        choice, _ = await ask_readable(ask, settings.call(messages, schema, CHOICE_TOKENS), read)
    if isinstance(choice, int):
        return proposals[choice - 1].scores
    return tuple(
        score.model_copy(update={"value": None, "top": None, "choice": None, "distribution": None, "unscored": choice})
        for score in proposals[0].scores
    )
