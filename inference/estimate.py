"""What a run would ask before it asks: calls, tokens and price per judge, without any call to a model."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from inference.config import StrictModel
from inference.cost import model_prices
from inference.engines.base import EngineConfig
from inference.engines.scripted import ScriptedEngine
from inference.judges import JudgeConfig, ModelConfig
from inference.methods import METHODS, Asks
from inference.methods.evidence import Evidence
from inference.prompts import evidence_line
from inference.records import Call, Completion, Sample, Usage
from inference.rubric import Rubric
from inference.runner import check_judges
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


class Estimates(StrictModel):
    """What several judges would ask."""

    judges: tuple[Estimate, ...]
    total: Estimate
    """Of all judges; calls that they share count once, as they do in a budget."""


class Asked:
    """The calls to one model. Its `ask` answers with scripted words and keeps the call."""

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
    """`estimate_all` of one judge."""
    return (await estimate_all(samples, [judge], rubric)).total


async def estimate_all(
    samples: Sequence[Sample],
    judges: Sequence[JudgeConfig],
    rubric: Rubric,
    evidence: Mapping[str, Evidence] | None = None,
) -> Estimates:
    """Run the judges' methods on scripted answers and add up the calls. Raises UserError for what `run_judges` refuses,
    and for a missing local model.

    `evidence`: as `run_judges` takes it. A judge that has some asks no analyst.
    """
    check_judges(samples, judges, rubric, evidence)
    given = evidence or {}
    asked = {judge.id: await _calls(samples, judge, rubric, given.get(judge.id)) for judge in judges}
    return added_up(asked, {judge.id for judge in judges if _follows(judge)})


def added_up(asked: Mapping[str, Sequence[Asked]], following: Collection[str], kind: str = "judge") -> Estimates:
    """What each of several judges, or of another `kind`, asked its models; `following`: those whose prompts hold
    earlier answers. Raises UserError for a missing local model."""
    each = tuple(_added(name, models, follows=name in following) for name, models in asked.items())
    if len(each) == 1:
        return Estimates(judges=each, total=each[0])
    every = [model for models in asked.values() for model in models]
    return Estimates(judges=each, total=_added(f"all {kind}s", every, follows=bool(following)))


def _follows(judge: JudgeConfig) -> bool:
    return judge.asked in FOLLOWING and judge.evidence_file is None


async def _calls(
    samples: Sequence[Sample], judge: JudgeConfig, rubric: Rubric, evidence: Evidence | None
) -> list[Asked]:
    models = [Asked(model) for model in judge.models]

    async def analyse(call: Call) -> Completion:
        # Scripted words are no evidence, and what has no evidence would not be judged.
        completion = await models[-1].ask(call)
        return completion if call.prompt is None else _readable(call.prompt, completion, rubric)

    method = METHODS[judge.asked]
    for sample in (sample for sample in samples if not sample.blank):
        given = None if evidence is None else evidence.get(sample.id, ())
        if given is not None and not given:
            continue  # nothing to be judged
        for repeat in range(judge.repeats):
            await method(rubric, sample, Asks(models[0].ask, analyse, given), judge.settings(repeat))
    return models


def _added(judge: str, asked: Sequence[Asked], *, follows: bool) -> Estimate:
    models = _merged(asked)
    counted = [model.usage() for model in models]
    prices = model_prices(one.model for one in asked)
    paid = [(prices[m.model.label], usage) for m, (usage, _) in zip(models, counted, strict=True) if m.calls]
    costs = [price.cost(usage) for price, usage in paid if price]
    return Estimate(
        judge=judge,
        calls=sum(len(model.calls) for model in models),
        prompt_tokens=sum(usage.prompt for usage, _ in counted),
        exact=all(exact for _, exact in counted),
        follows=follows,
        completion_tokens=sum(usage.completion for usage, _ in counted),
        price=sum(costs) if costs and len(costs) == len(paid) else None,
    )


def _merged(asked: Iterable[Asked]) -> list[Asked]:
    """One for each model that is asked, whoever asks it."""
    found: dict[str, Asked] = {}
    for one in asked:
        found.setdefault(one.model.label, Asked(one.model)).calls |= one.calls
    return list(found.values())


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
