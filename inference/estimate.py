"""What a run would ask before it asks: calls, tokens and price per judge, without any call to a model."""

from collections.abc import Callable, Sequence

from inference.config import StrictModel
from inference.engines.base import EngineConfig
from inference.engines.scripted import ScriptedEngine
from inference.judges import JudgeConfig, ModelConfig
from inference.methods import METHODS, Asks
from inference.prompts import evidence_line
from inference.records import Call, Completion, Sample, Usage
from inference.rubric import Rubric
from inference.scoring import grid_branches

CHARACTERS_PER_TOKEN = 4
FOLLOWING = ("cot", "tot", "got", "creaeval", "compact_creaeval")
"""Methods in whose prompts earlier answers stand: of one conversation, or of an analyst."""
CountTokens = Callable[[Call], int]


class Estimate(StrictModel):
    """What one judge would ask for all samples, if each answer can be read at once."""

    judge: str
    calls: int
    """Different calls. Equal ones, of equal responses, are asked once."""
    prompt_tokens: int
    exact: bool
    """Whether the prompt tokens were counted with the models' tokenizers; otherwise characters / 4."""
    follows: bool
    """Whether prompts hold earlier answers, here short made-up ones: there will be more prompt tokens."""
    completion_tokens: int
    """The sum of the calls' `max_tokens`: an upper bound where no answer has to be asked for again."""
    price: float | None
    """In the currency of the config's prices, for these tokens; None where a model that is asked has no price."""


class _Asked:
    """The calls to one model."""

    def __init__(self, model: ModelConfig) -> None:
        self.model = model
        self.calls: dict[str, Call] = {}
        self._engine = ScriptedEngine(EngineConfig(engine="scripted", model="estimate"))

    async def ask(self, call: Call) -> Completion:
        self.calls[call.key(self._engine.identity)] = call
        return await self._engine.complete(call)

    def usage(self) -> tuple[Usage, bool]:
        """Tokens of the calls, and whether those of the prompts are exact."""
        if not self.calls:
            return Usage(), True
        count, exact = _counter(self.model)
        prompt = sum(count(call) for call in self.calls.values())
        return Usage(prompt=prompt, completion=sum(call.max_tokens for call in self.calls.values())), exact


async def estimate(samples: Sequence[Sample], judge: JudgeConfig, rubric: Rubric) -> Estimate:
    """Run the judge's method on scripted answers and add up its calls. Raises UserError for a missing local model."""
    models = [_Asked(model) for model in judge.models]

    async def analyse(call: Call) -> Completion:
        # Scripted words are no evidence, and what has no evidence would not be judged.
        completion = await models[-1].ask(call)
        return completion if call.prompt is None else _readable(call.prompt, completion, rubric)

    method = METHODS[judge.asked]
    for sample in (sample for sample in samples if not sample.blank):
        for repeat in range(judge.repeats):
            await method(rubric, sample, Asks(models[0].ask, analyse), judge.settings(repeat))
    counted = [asked.usage() for asked in models]
    return Estimate(
        judge=judge.id,
        calls=sum(len(asked.calls) for asked in models),
        prompt_tokens=sum(usage.prompt for usage, _ in counted),
        exact=all(exact for _, exact in counted),
        follows=judge.asked in FOLLOWING,
        completion_tokens=sum(usage.completion for usage, _ in counted),
        price=_price([(asked.model, usage) for asked, (usage, _) in zip(models, counted, strict=True) if asked.calls]),
    )


def _price(used: Sequence[tuple[ModelConfig, Usage]]) -> float | None:
    costs = [model.price.cost(usage) for model, usage in used if model.price]
    return sum(costs) if len(costs) == len(used) and used else None


def _readable(prompt: str, completion: Completion, rubric: Rubric) -> Completion:
    """The answer to an analyst's plain prompt, whose last line but one begins with the step."""
    name = prompt.splitlines()[-2].split()[0]
    (step,) = (step for step in rubric.answered if step.name == name)
    return completion.model_copy(update={"text": evidence_line(step, {d.name: "word" for d in step.asked})})


def _counter(model: ModelConfig) -> tuple[CountTokens, bool]:
    """How to count a call's prompt tokens, and whether that is exact."""
    if model.engine not in ("hf", "vllm"):
        return _estimated_tokens, False
    from inference.tokens import encode_chat, encode_plain, load_tokenizer

    tokenizer = load_tokenizer(model.model)

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
