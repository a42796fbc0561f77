"""Judging the raw response at once: all scores in one call, without an analysis before them.

`direct` prompts any chat model, `tat` has it write a table of evidence and scores together (Table as Thought).
"""

from collections.abc import Sequence

from inference import prompts
from inference.answers import complaint_of, read_scores, read_table
from inference.methods.base import Answers, Ask, Asks, Settings, ask_readable, long_quotations, readable_scores
from inference.quotations import cut_quotations
from inference.records import Call, Completion, Sample, Score
from inference.rubric import Rubric, Step
from inference.schemas import scores_schema, table_schema
from inference.scoring import read_number_answer

TOKENS_PER_SCORE = 16
TOKENS_PER_ROW = 56
"""Evidence in a table, with its scores."""


async def direct(rubric: Rubric, sample: Sample, asks: Asks, settings: Settings) -> Answers:
    """One chat call; a rubric with a single dimension is answered by its number, others by a JSON object.

    With ``judge_scope: step`` one call per step, each with the response to that step alone.
    """
    if rubric.single:
        return Answers((await _number(rubric, sample, asks.judge, settings),))
    scopes = [rubric.answered] if settings.judge_scope == "response" else [(step,) for step in rubric.answered]
    scores: list[Score] = []
    for steps in scopes:
        call = settings.call(
            prompts.chat_messages(rubric, sample, steps), scores_schema(steps), TOKENS_PER_SCORE * answers(steps)
        )
        scores += await ask_scores(asks.judge, call, steps)
    return Answers(tuple(scores))


async def ask_scores(ask: Ask, call: Call, steps: Sequence[Step]) -> tuple[Score, ...]:
    """The scores of `steps` that a JSON answer holds."""

    def read(completion: Completion) -> tuple[tuple[Score, ...], str | None]:
        found = read_scores(steps, completion)
        return found, complaint_of(found)

    scores, _ = await ask_readable(ask, call, read, readable_scores)
    return scores


def answers(steps: Sequence[Step]) -> int:
    """Numbers and names in a whole answer on `steps`."""
    return sum(len(step.asked) * rows(step) for step in steps)


def rows(step: Step) -> int:
    return step.items.count if step.items else 1


async def _number(rubric: Rubric, sample: Sample, ask: Ask, settings: Settings) -> Score:
    step, dimension = rubric.asked[0]
    call = Call(
        messages=prompts.chat_messages(rubric, sample),
        grid=dimension.grid,
        max_tokens=settings.max_tokens or 8,
        temperature=settings.temperature,
        repeat=settings.repeat,
    )

    def read(completion: Completion) -> tuple[Score, str | None]:
        score = read_number_answer(step.name, dimension, completion)
        return score, score.unscored

    score, _ = await ask_readable(ask, call, read)
    return score


async def tat(rubric: Rubric, sample: Sample, asks: Asks, settings: Settings) -> Answers:
    """One call that writes evidence and scores row by row."""
    tokens = TOKENS_PER_ROW * sum(rows(step) for step in rubric.answered) + TOKENS_PER_SCORE * answers(rubric.answered)
    call = settings.call(prompts.table_messages(rubric, sample), table_schema(rubric), tokens)

    def read(completion: Completion) -> tuple[Answers, str | None]:
        scores, evidence = read_table(rubric, completion)
        return Answers(scores, evidence), complaint_of(scores)

    found, _ = await ask_readable(asks.judge, call, read, _readable_rows)
    forbidden = long_quotations(rubric, sample)
    return Answers(found.scores, tuple(cut_quotations(part, forbidden) for part in found.evidence))


def _readable_rows(first: Answers, second: Answers) -> Answers:
    """Of each score and each step's evidence the second reading, or the first where that could not be read."""
    evidence = {part.step: part for part in first.evidence}
    evidence |= {part.step: part for part in second.evidence if part.texts or any(part.items)}
    return Answers(readable_scores(first.scores, second.scores), tuple(evidence.values()))
