"""The calls behind an answer, strategy by strategy."""

import asyncio

from eval.create.answers import answer_text, split_reasoning
from eval.create.generation.prompts import opening, second_turn
from eval.create.generation.settings import Generator
from eval.create.queries.records import Query
from inference.methods import Ask
from inference.records import Call, Completion


async def completions(query: Query, generator: Generator, ask: Ask) -> list[Completion]:
    """A model's answers to one query, in order: one, two rounds of `iterate`, or as many as are sampled.

    Raises EngineError where a call fails: part of the answers would be another strategy.
    """
    first = opening(query, generator.strategy, encourage_guessing=generator.encourage_guessing)
    call = Call(messages=first, max_tokens=generator.answer_tokens, temperature=generator.temperature)
    if generator.strategy == "resample":
        calls = [call.model_copy(update={"repeat": repeat}) for repeat in range(generator.repeats)]
        return await asyncio.gather(*map(ask, calls))
    answer = await ask(call)
    if generator.strategy != "iterate":
        return [answer]
    messages = second_turn(first, separated(answer)[0], query)
    return [answer, await ask(call.model_copy(update={"messages": messages}))]


def separated(completion: Completion) -> tuple[str, str]:
    """(answer, thinking). Text up to its last closing tag is thinking, as is what the server reports apart.

    A text that holds its answer inside the thinking stays whole, so that the parser finds it there.
    """
    thinking, rest = split_reasoning(completion.text)
    if thinking and not rest.strip() and "answer_in_reasoning" in answer_text(completion.text).flags:
        return completion.text, completion.reasoning
    return rest, "\n".join(filter(None, [completion.reasoning, thinking]))
