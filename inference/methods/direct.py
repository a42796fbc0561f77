"""Direct judging: the raw response and the rubric in, all scores out. One call; no analysis before the scores.

`direct` prompts any chat model. `compact` asks a learned judge, one token per dimension.
"""

from inference import prompts
from inference.methods.base import Ask, Sampling
from inference.records import Call, Completion, Message, Sample, Score
from inference.rubric import Rubric
from inference.scoring import read_json_answer, read_number_answer

JSON_TOKENS_PER_SCORE = 32


async def direct(rubric: Rubric, sample: Sample, ask: Ask, sampling: Sampling) -> tuple[Score, ...]:
    """One chat call; a rubric with a single dimension is answered by its number, others by a JSON object.

    An unreadable answer is asked for once more, with the parser's complaint shown to the model.
    """
    single = rubric.single
    call = Call(
        messages=prompts.chat_messages(rubric, sample, answer="number" if single else "json"),
        grid=rubric.asked[0][1].grid if single else None,
        json_schema=None if single else rubric.json_schema(),
        max_tokens=sampling.max_tokens or (8 if single else JSON_TOKENS_PER_SCORE * _answers(rubric)),
        temperature=sampling.temperature,
        repeat=sampling.repeat,
    )
    completion = await ask(call)
    scores = _read(rubric, completion)
    complaint = next((score.unscored for score in scores if score.unscored), None)
    if complaint is None:
        return scores
    return _read(rubric, await ask(_complained(call, completion, complaint)))


def _read(rubric: Rubric, completion: Completion) -> tuple[Score, ...]:
    if not rubric.single:
        return read_json_answer(rubric, completion)
    step, dimension = rubric.asked[0]
    return (read_number_answer(step.name, dimension, completion),)


def _answers(rubric: Rubric) -> int:
    """Numbers and names in a whole answer."""
    return sum(step.items.count if step.items else 1 for step, _ in rubric.asked)


def _complained(call: Call, completion: Completion, complaint: str) -> Call:
    assert call.messages is not None
    # The complaint quotes the answer, which may echo control tokens of the response.
    quoted = prompts.defuse(complaint)
    correction = f"That could not be used: {quoted}. Answer again, in the form asked for and with nothing else."
    answer = Message(role="assistant", content=prompts.defuse(completion.text) or "(empty)")
    return call.model_copy(update={"messages": (*call.messages, answer, Message(role="user", content=correction))})


async def compact(rubric: Rubric, sample: Sample, ask: Ask, sampling: Sampling) -> tuple[Score, ...]:
    """One call of one token per dimension, on the plain prompt the judge was trained on.

    Items are not asked for one by one: the judge has learned the score of the whole step.
    """
    scores = []
    for step, dimension in rubric.predicted:
        prompt = prompts.compact_prompt(rubric, step, dimension, sample)
        call = Call(
            prompt=prompt,
            grid=dimension.grid,
            max_tokens=len(dimension.grid[-1]),
            temperature=sampling.temperature,
            repeat=sampling.repeat,
        )
        scores.append(read_number_answer(step.name, dimension, await ask(call)))
    return tuple(scores)
