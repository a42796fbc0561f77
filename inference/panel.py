"""Judges kept ready: engines are built once and stay open, and samples are judged as they come."""

import asyncio
from collections.abc import Iterator, Sequence

from inference.asking import Asker
from inference.budget import BudgetReached, Meter
from inference.config import StrictModel
from inference.engines.base import build_engine
from inference.engines.pool import BuildEngine, EnginePool
from inference.judges import Budget, JudgeConfig, ModelConfig
from inference.record_file import FAILED
from inference.records import Judgement, Sample, Usage
from inference.rubric import Rubric
from inference.runner import Askers, judge_once, unscored_all
from inference.store import Store

BUDGET = "budget: "
"""Opening of an unscored reason where no call was sent because the budget is spent."""


class CallUsage(StrictModel):
    """What the calls behind one judgement used, those included that were answered before and came from the store."""

    calls: int = 0
    prompt: int = 0
    cached: int = 0
    completion: int = 0
    reasoning: int = 0
    known: bool = True
    """False where the server didn't report all tokens; missing counts are then 0."""


class Panel:
    """All judges of a config. Requests may come side by side: they share engines, limits and calls in flight."""

    def __init__(
        self,
        judges: Sequence[JudgeConfig],
        rubric: Rubric,
        store: Store,
        budget: Budget | None = None,
        build: BuildEngine = build_engine,
    ) -> None:
        """Builds the engines; local weights are loaded with the first call. Raises UserError where one can't be built.

        Calls that `store` holds count towards `budget`, so a budget holds for the life of the store.
        """
        self.judges, self.rubric = judges, rubric
        self._store, self._pool = store, EnginePool(build)
        self._meter = Meter(budget, [model for judge in judges for model in judge.models], store)
        self._shared: dict[str, Asker] = {}
        self._askers = [Askers(judge, [self._asker(judge.id, m) for m in judge.models]) for judge in judges]

    async def judge(self, samples: Sequence[Sample]) -> list[list[Judgement]]:
        """For each sample its judgements, judge by judge, in it repeat by repeat.

        A fault of the engine, or a spent budget, leaves the judgements it concerns unscored with the reason. Raises
        UserError where the store cannot be used.
        """
        return await asyncio.gather(*(self._judge_sample(sample) for sample in samples))

    def usage(self, judgement: Judgement) -> CallUsage:
        """Summed over the different calls that were answered."""
        found = [completion.usage for key in dict.fromkeys(judgement.calls) if (completion := self._store.get(key))]
        return CallUsage(calls=len(found), known=all(usage.known for usage in found), **_sums(found))

    @property
    def silent(self) -> bool:
        """Whether the last call to some model, or every one so far, went unanswered."""
        return any(asker.silent for asker in self._shared.values())

    @property
    def models(self) -> Iterator[tuple[ModelConfig, dict[str, str]]]:
        """Settings and engine identity of each model, judges before their analysts."""
        seen = set()
        for model in (model for judge in self.judges for model in judge.models):
            if (key := _key(model)) not in seen:
                seen.add(key)
                yield model, self._pool.get(model).identity

    async def close(self) -> None:
        """Cancel what is in flight and close the engines."""
        for asker in self._shared.values():
            await asker.close()
        await self._pool.keep(())

    def _asker(self, name: str, model: ModelConfig) -> Asker:
        key = _key(model)
        if key not in self._shared:
            self._shared[key] = Asker(f"judge {name}", model, self._pool.get(model), self._store, self._meter)
        return self._shared[key]

    async def _judge_sample(self, sample: Sample) -> list[Judgement]:
        jobs = [
            self._judge_once(sample, judge, repeat, askers)
            for judge, askers in zip(self.judges, self._askers, strict=True)
            for repeat in range(judge.repeats)
        ]
        return await asyncio.gather(*jobs)

    async def _judge_once(self, sample: Sample, judge: JudgeConfig, repeat: int, askers: Askers) -> Judgement:
        try:
            return await judge_once(sample, repeat, judge, self.rubric, askers)
        except BudgetReached as error:
            return Judgement(
                sample_id=sample.id,
                judge=judge.id,
                method=judge.method,
                rubric=f"{self.rubric.name}@{self.rubric.digest}",
                repeat=repeat,
                scores=unscored_all(self.rubric, f"{BUDGET}{error}"),
            )


def fault_of(judgement: Judgement) -> str | None:
    """Why a judgement has no scores, where that is the machinery's fault and no bad answer; None for all others."""
    reasons = (score.unscored for score in judgement.scores if score.unscored)
    return next((reason for reason in reasons if reason.startswith((*FAILED, BUDGET))), None)


def _sums(usages: Sequence[Usage]) -> dict[str, int]:
    return {name: sum(getattr(u, name) for u in usages) for name in ("prompt", "cached", "completion", "reasoning")}


def _key(model: ModelConfig) -> str:
    """The settings that all calls to a model share; temperature and length travel with each call."""
    names = ModelConfig.model_fields.keys() - {"temperature", "max_tokens"}
    return ModelConfig.model_validate({name: getattr(model, name) for name in names}).model_dump_json()
