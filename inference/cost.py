"""What judges used: calls, tokens, time and money, from the finished calls of a run's store and the judgements."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from inference.judges import JudgeConfig, ModelConfig, Price
from inference.records import Judgement
from inference.store import StoredCall


@dataclass(frozen=True)
class Spread:
    """Median and 95th percentile over responses, interpolated linearly."""

    p50: float
    p95: float


@dataclass
class Cost:
    """Sums over different calls. A call behind several responses, or several judges, counts once for each judge."""

    method: str = ""
    calls: int = 0
    prompt: int = 0
    cached: int = 0
    completion: int = 0
    reasoning: int = 0
    uncounted: int = 0
    """Calls whose server didn't report all tokens; what is missing counts as 0 in the sums."""
    money: float | None = 0.0
    """In the currency of the config's prices; None where a call's model has none, or a paid call was not counted."""
    spans: list[tuple[float, float]] = field(default_factory=list)
    """(started, finished) of each call, seconds since 1970."""
    responses: list["ResponseCost"] = field(default_factory=list)
    """One per judgement that any call was made for."""

    @property
    def seconds(self) -> float:
        """Time in which at least one call was under way; pauses between two starts of a run don't count."""
        total, reached = 0.0, float("-inf")
        for started, finished in sorted(self.spans):
            total += max(0.0, finished - max(started, reached))
            reached = max(reached, finished)
        return total

    @property
    def calls_per_response(self) -> float | None:
        return sum(r.calls for r in self.responses) / len(self.responses) if self.responses else None

    @property
    def tokens_per_response(self) -> Spread | None:
        return spread([float(r.tokens) for r in self.responses])

    @property
    def seconds_per_response(self) -> Spread | None:
        return spread([r.seconds for r in self.responses])

    def add(self, call: StoredCall, price: Price | None) -> None:
        usage = call.completion.usage
        self.calls += 1
        self.prompt += usage.prompt
        self.cached += usage.cached
        self.completion += usage.completion
        self.reasoning += usage.reasoning
        self.spans.append((call.started, call.finished))
        self.uncounted += not usage.known
        payable = price is not None and (usage.known or price.free)
        self.money = self.money + price.cost(usage) if price and payable and self.money is not None else None


@dataclass(frozen=True)
class ResponseCost:
    """All calls behind one judgement, those that other judgements share included."""

    calls: int
    tokens: int
    """Prompt and completion."""
    seconds: float
    """The calls' durations added up, each from being sent to its answer: what one response takes if nothing of it runs
    side by side. For engines that compute in batches the wait for a batch is part of it."""


@dataclass(frozen=True)
class Costs:
    """What a run used."""

    judges: dict[str, Cost]
    """In the order in which the judgements name the judges; those without a call on record are left out."""
    total: Cost
    """Every call once. Has no method and no responses."""


def judge_costs(
    calls: Iterable[StoredCall], judgements: Sequence[Judgement], judges: Mapping[str, JudgeConfig]
) -> Costs:
    """Add up `calls` for the judges of `judgements`; `judges` are their settings by id, for the prices.

    A call costs what the judge's config says of the model that answered, its own or its analyst; where the store
    doesn't say which model that was (version 0.1 noted none) it counts at the price of the judge's own.
    """
    found = {judgement.judge: Cost(method=judgement.method) for judgement in judgements}
    users: dict[str, dict[str, None]] = {}
    for judgement in judgements:
        for key in judgement.calls:
            users.setdefault(key, {})[judgement.judge] = None
    prices = {name: model_prices(judge.models) for name, judge in judges.items()}
    total, used = Cost(), dict[str, tuple[int, float]]()
    for call in calls:
        if call.key not in users:
            continue
        paid = {name: _price(call.model, judges.get(name), prices.get(name, {})) for name in users[call.key]}
        for name, price in paid.items():
            found[name].add(call, price)
        total.add(call, next(filter(None, paid.values()), None))
        usage = call.completion.usage
        used[call.key] = usage.prompt + usage.completion, max(0.0, call.finished - call.started)
    for judgement in judgements:
        if parts := [used[key] for key in dict.fromkeys(judgement.calls) if key in used]:
            tokens, seconds = zip(*parts, strict=True)
            found[judgement.judge].responses.append(ResponseCost(len(parts), sum(tokens), math.fsum(seconds)))
    return Costs({name: cost for name, cost in found.items() if cost.calls}, total)


def model_prices(models: Iterable[ModelConfig]) -> dict[str, Price | None]:
    """`ModelConfig.label` → price; a model that is named twice needs its price once."""
    prices: dict[str, Price | None] = {}
    for model in models:
        prices[model.label] = model.price or prices.get(model.label)
    return prices


def _price(label: str, judge: JudgeConfig | None, prices: Mapping[str, Price | None]) -> Price | None:
    return prices.get(label, judge.price if judge else None)


def spread(values: Sequence[float]) -> Spread | None:
    """None without values."""
    if not values:
        return None
    in_order = sorted(values)
    return Spread(_percentile(in_order, 0.5), _percentile(in_order, 0.95))


def _percentile(in_order: Sequence[float], share: float) -> float:
    place = share * (len(in_order) - 1)
    low = int(place)
    high = min(low + 1, len(in_order) - 1)
    return in_order[low] + (place - low) * (in_order[high] - in_order[low])


def cost_json(cost: Cost) -> dict[str, Any]:
    """Calls, tokens, seconds and money of a report in JSON."""
    return {
        "calls": cost.calls,
        "prompt_tokens": cost.prompt,
        "completion_tokens": cost.completion,
        "seconds": round(cost.seconds, 1),
        "cost": cost.money,
    }
