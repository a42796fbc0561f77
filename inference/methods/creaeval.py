"""CreaEval: an analyst (SoT-LLM) takes evidence from the raw response; a judge scores the evidence alone.

Source: Wang, Wu, Li, Zheng and Zhou, "Decoupled Analysis-Judging". Phase 1: one call per step, in order, with the
memories of the earlier steps. Phase 2: one call with all evidence, or one per step (``judge_scope: step``).
Ablations: no memory (``memory: false``), all evidence in one call (``stepwise: false``); without decoupling it is
`tat`, without evidence `direct`.
"""

from collections.abc import Sequence

from inference import prompts
from inference.answers import read_evidence, unscored_step
from inference.methods.base import Answers, Ask, Asks, Settings, ask_readable, in_order, long_quotations
from inference.methods.direct import TOKENS_PER_SCORE, answers, ask_scores, rows
from inference.methods.evidence import given_evidence, missing_scores, nothing
from inference.quotations import cut_across, cut_memory, cut_quotations
from inference.records import Completion, Sample, Score, StepEvidence
from inference.rubric import Dimension, Rubric, Step
from inference.schemas import evidence_schema, scores_schema

TOKENS_PER_TEXT, TOKENS_PER_NAME, MEMORY_TOKENS = 128, 12, 170
"""Of an answer at worst: each text of evidence, each name in place of one, each memory, with its key."""


async def creaeval(rubric: Rubric, sample: Sample, asks: Asks, settings: Settings) -> Answers:
    """Evidence first, then scores. A step without readable evidence is unscored, the others are judged."""
    if asks.evidence is None:
        found = await analyse(rubric, sample, asks.analyst, settings)
        evidence = [part for part in found.values() if isinstance(part, StepEvidence)]
        missing = [s for step in rubric.answered for s in _unscored(step, found[step.name])]
    else:
        evidence = _guarded(rubric, sample, given_evidence(rubric, sample, asks.evidence))
        missing = missing_scores(rubric, evidence)
    scores = await judge_evidence(rubric, sample.scenario, evidence, asks.judge, settings)
    # A judge answers on whole steps; what it says on an item without evidence does not count.
    known = {(score.key, score.item): score for score in (*scores, *missing)}
    return Answers(in_order(rubric, known.values()), tuple(evidence))


def _unscored(step: Step, found: StepEvidence | str) -> tuple[Score, ...]:
    return unscored_step(step, found) if isinstance(found, str) else ()


async def analyse(rubric: Rubric, sample: Sample, ask: Ask, settings: Settings) -> dict[str, StepEvidence | str]:
    """Phase 1: step → its evidence, or why there is none. No run of eight words of the response is left in it."""
    if settings.stepwise:
        found = await _by_step(rubric, sample, ask, settings)
    else:
        found = await _at_once(rubric, sample, ask, settings)
    parts = [part for step in rubric.answered if isinstance(part := found[step.name], StepEvidence)]
    # No later analysis is to come, so memories are cut as well.
    return found | {part.step: part for part in _guarded(rubric, sample, parts)}


def _guarded(rubric: Rubric, sample: Sample, parts: Sequence[StepEvidence]) -> list[StepEvidence]:
    """`parts`, in the rubric's order, without longer quotations, also where texts are read one after the other."""
    forbidden = long_quotations(rubric, sample)
    steps = {step.name: step for step in rubric.answered}
    # In the order in which the judge reads them: what is left of a quotation may go on in the next label.
    labels = [prompts.evidence_labels(steps[part.step], part) for part in parts]
    cut = cut_across([cut_quotations(part, forbidden) for part in parts], labels, forbidden)
    return [cut_memory(part, forbidden) for part in cut]


async def _by_step(rubric: Rubric, sample: Sample, ask: Ask, settings: Settings) -> dict[str, StepEvidence | str]:
    found: dict[str, StepEvidence | str] = {}
    memories: dict[str, str] = {}
    for step in rubric.answered:
        if not _is_answered(sample, step):
            found[step.name] = nothing(step)  # there is nothing to ask about
            continue
        remembered = memories if settings.memory else {}
        found |= await _ask_evidence(rubric, sample, (step,), remembered, ask, settings)
        part = found[step.name]
        if isinstance(part, StepEvidence):
            memories[step.name] = part.memory
    return found


async def _at_once(rubric: Rubric, sample: Sample, ask: Ask, settings: Settings) -> dict[str, StepEvidence | str]:
    steps = [step for step in rubric.answered if _is_answered(sample, step)]
    asked = await _ask_evidence(rubric, sample, steps, {}, ask, settings) if steps else {}
    return {step.name: asked.get(step.name, nothing(step)) for step in rubric.answered}


def _is_answered(sample: Sample, step: Step) -> bool:
    return bool(sample.responses.get(step.name, "").strip())


async def _ask_evidence(
    rubric: Rubric,
    sample: Sample,
    steps: Sequence[Step],
    memories: dict[str, str],
    ask: Ask,
    settings: Settings,
) -> dict[str, StepEvidence | str]:
    remembered = [(step, memories[step.name]) for step in rubric.answered if step.name in memories]
    tokens = sum(MEMORY_TOKENS + rows(step) * sum(map(_tokens, step.asked)) for step in steps)
    own = settings.model_copy(update={"max_tokens": settings.analysis_tokens})
    call = own.call(prompts.analysis_messages(rubric, sample, steps, remembered), evidence_schema(steps), tokens)

    def read(completion: Completion) -> tuple[dict[str, StepEvidence | str], str | None]:
        found = read_evidence(steps, completion)
        return found, next((part for part in found.values() if isinstance(part, str)), None)

    found, _ = await ask_readable(ask, call, read, _readable)
    return found


def _readable(
    first: dict[str, StepEvidence | str], second: dict[str, StepEvidence | str]
) -> dict[str, StepEvidence | str]:
    """Of each step the second reading, or the first where that could not be read."""
    return {name: first[name] if isinstance(part, str) else part for name, part in second.items()}


def _tokens(dimension: Dimension) -> int:
    return TOKENS_PER_NAME if dimension.choices else TOKENS_PER_TEXT


async def judge_evidence(
    rubric: Rubric, scenario: str, evidence: Sequence[StepEvidence], ask: Ask, settings: Settings
) -> tuple[Score, ...]:
    """Phase 2: scores of the steps that have evidence. The raw response is not among what it is given."""
    there = {part.step for part in evidence}
    steps = tuple(step for step in rubric.answered if step.name in there)
    scopes = [steps] if settings.judge_scope == "response" else [(step,) for step in steps]
    scores: list[Score] = []
    for chosen in filter(None, scopes):
        call = settings.call(
            prompts.evidence_messages(rubric, scenario, evidence, chosen),
            scores_schema(chosen),
            TOKENS_PER_SCORE * answers(chosen),
        )
        scores += await ask_scores(ask, call, chosen)
    return tuple(scores)
