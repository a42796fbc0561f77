"""What judges used: calls, tokens, time and money, from the finished calls of a run's store."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from inference.judges import JudgeConfig
from inference.records import Judgement, Usage
from inference.store import Store


@dataclass
class JudgeCost:
    """Sums over the different calls behind a judge's judgements."""

    calls: int = 0
    prompt: int = 0
    cached: int = 0
    completion: int = 0
    cost: float | None = None
    """In the currency of the config's price; None where it has none."""
    spans: list[tuple[float, float]] = field(default_factory=list)
    """(started, finished) of each call, seconds since 1970."""

    @property
    def seconds(self) -> float:
        """Time in which at least one call was under way; pauses between two starts of a run don't count."""
        total, reached = 0.0, float("-inf")
        for started, finished in sorted(self.spans):
            total += max(0.0, finished - max(started, reached))
            reached = max(reached, finished)
        return total


def judge_costs(
    store: Path, judgements: Iterable[Judgement], judges: Mapping[str, JudgeConfig]
) -> dict[str, JudgeCost]:
    """Judge → use, for the judges whose calls are in the file `store`; empty where there is no such file."""
    if not store.is_file():
        return {}
    judges_of: dict[str, set[str]] = {}
    for judgement in judgements:
        for key in judgement.calls:
            judges_of.setdefault(key, set()).add(judgement.judge)
    costs: dict[str, JudgeCost] = {}
    with Store(store) as opened:
        for call in opened.calls():
            for judge in judges_of.get(call.key, ()):
                settings = judges.get(judge)
                cost = costs.setdefault(judge, JudgeCost(cost=0.0 if settings and settings.price else None))
                _add(cost, call.completion.usage, settings)
                cost.spans.append((call.started, call.finished))
    return costs


def _add(cost: JudgeCost, usage: Usage, settings: JudgeConfig | None) -> None:
    cost.calls += 1
    cost.prompt += usage.prompt
    cost.cached += usage.cached
    cost.completion += usage.completion
    if settings is not None and settings.price is not None and cost.cost is not None:
        cost.cost += settings.price.cost(usage)
