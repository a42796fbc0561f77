"""What a run would ask before it asks: calls, tokens and price per judge, without any call to a model."""

from collections.abc import Callable, Sequence

from inference.config import StrictModel
from inference.engines.base import EngineConfig
from inference.engines.scripted import ScriptedEngine
from inference.judges import JudgeConfig
from inference.methods import METHODS, Asks
from inference.records import Call, Completion, Sample, Usage
from inference.rubric import Rubric
from inference.scoring import grid_branches

CHARACTERS_PER_TOKEN = 4
CountTokens = Callable[[Call], int]


class Estimate(StrictModel):
    """What one judge would ask for all samples, if each answer can be read at once."""

    judge: str
    calls: int
    """Different calls. Equal ones, of equal responses, are asked once."""
    prompt_tokens: int
    exact: bool
    """Whether the prompt tokens were counted with the model's tokenizer; otherwise characters / 4."""
    completion_tokens: int
    """The sum of the calls' `max_tokens`: an upper bound where no answer has to be asked for again."""
    price: float | None
    """In the currency of the config's prices, for these tokens; None without prices."""


async def estimate(samples: Sequence[Sample], judge: JudgeConfig, rubric: Rubric) -> Estimate:
    """Run the judge's method on scripted answers and add up its calls. Raises UserError for a missing local model."""
    engine = ScriptedEngine(EngineConfig(engine="scripted", model="estimate"))
    calls: dict[str, Call] = {}

    async def ask(call: Call) -> Completion:
        calls[call.key(engine.identity)] = call
        return await engine.complete(call)

    method = METHODS[judge.asked]
    for sample in samples:
        for repeat in range(judge.repeats):
            await method(rubric, sample, Asks(ask, ask), judge.settings(repeat))
    count, exact = _counter(judge)
    usage = Usage(
        prompt=sum(count(call) for call in calls.values()),
        completion=sum(call.max_tokens for call in calls.values()),
    )
    return Estimate(
        judge=judge.id,
        calls=len(calls),
        prompt_tokens=usage.prompt,
        exact=exact,
        completion_tokens=usage.completion,
        price=judge.price.cost(usage) if judge.price else None,
    )


def _counter(judge: JudgeConfig) -> tuple[CountTokens, bool]:
    """How to count a call's prompt tokens, and whether that is exact."""
    if judge.engine not in ("hf", "vllm"):
        return _estimated_tokens, False
    from inference.tokens import encode_chat, encode_plain, load_tokenizer

    tokenizer = load_tokenizer(judge.model)

    def count(call: Call) -> int:
        if call.prompt is not None:
            tokens = len(encode_plain(tokenizer, call.prompt))
        else:
            tokens = len(encode_chat(tokenizer, call.messages or ()))
        # A grid whose scores share a first digit is read once more behind that digit.
        return sum(tokens + len(prefix) for prefix in grid_branches(call.grid or ("0",)))

    return count, True


def _estimated_tokens(call: Call) -> int:
    characters = len(call.prompt or "") + sum(len(message.content) for message in call.messages or ())
    return -(-characters // CHARACTERS_PER_TOKEN)
