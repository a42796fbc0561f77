"""Samples × judges → judgements: judge by judge, samples side by side, interruptible at any moment.

Samples are sent ordered by scenario, so that an engine's prefix cache works; judgements are written in the order of
the samples, so that the file's bytes depend on the completions alone.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from inference.adapter_notes import check_trained_for
from inference.aggregation import aggregate
from inference.asking import Asker, shown_error
from inference.budget import BudgetReached, Meter
from inference.config import StrictModel
from inference.engines.base import EngineError, build_engine
from inference.engines.pool import BuildEngine, EnginePool
from inference.errors import UserError, named_list
from inference.judgement_file import JobKey, JudgementFile, has_failed
from inference.judges import Budget, JudgeConfig
from inference.methods import METHODS, Answers, Ask, Asks
from inference.methods.evidence import Evidence
from inference.progress import ProgressReport
from inference.records import Call, Completion, Judgement, Sample, Score, StepEvidence
from inference.rubric import Rubric
from inference.store import Store

logger = logging.getLogger(__name__)

SAMPLES_PER_SLOT = 4
"""Samples under way per call in flight, for methods with several calls in a row: else slots stand empty at the end."""
SINGLE_CALL = frozenset({"direct", "tat", "compact"})


class JudgeRun(StrictModel):
    """What one start of a run did for one judge."""

    judge: str
    judgements: int
    """All judgements of the judge in the file, from earlier starts too."""
    new: int
    """Judgements made in this start."""
    failed: int
    """Judgements left unscored by a fault of the engine or the method; a restart asks again."""
    sent: int
    """Calls sent to the engine, retries included."""
    seconds: float
    """Wall-clock time of this start, the loading of the engine included."""


def job_keys(samples: Sequence[Sample], judges: Sequence[JudgeConfig]) -> list[JobKey]:
    """All jobs in the order of the file: judge by judge, in it sample by sample, in it repeat by repeat."""
    return [(judge.id, sample.id, repeat) for judge in judges for sample in samples for repeat in range(judge.repeats)]


def check_judges(
    samples: Sequence[Sample],
    judges: Sequence[JudgeConfig],
    rubric: Rubric,
    evidence: Mapping[str, Evidence] | None = None,
) -> None:
    """Raise UserError for what `run_judges` would refuse before anything is asked."""
    ids = [judge.id for judge in judges]
    if len(set(ids)) < len(ids):
        raise UserError(f"two judges have the same id in {ids}: give each an id of its own")
    repeated = [sample_id for sample_id, count in Counter(sample.id for sample in samples).items() if count > 1]
    if repeated:
        raise UserError(f"samples need ids of their own, but these occur more than once: {repeated[:5]}")
    for judge in judges:
        _check_evidence(samples, judge, (evidence or {}).get(judge.id))
    check_trained_for(judges, rubric)


def _check_evidence(samples: Sequence[Sample], judge: JudgeConfig, given: Evidence | None) -> None:
    if judge.evidence_file is None:
        if given is not None:
            raise UserError(f"judge {judge.id}: evidence is given, but the judge has no evidence_file that says so")
        return
    if given is None:
        raise UserError(
            f"judge {judge.id}: nobody has read {judge.evidence_file}; `python -m eval run` does, and in Python "
            "run_judges takes what is in it as `evidence`"
        )
    if not any(given.get(sample.id) for sample in samples):
        raise UserError(
            f"judge {judge.id}: {judge.evidence_file} has evidence on none of the {len(samples)} responses, but on "
            f"{named_list(given) or 'nothing'}; give the evidence of the same data"
        )


async def run_judges(
    samples: Sequence[Sample],
    judges: Sequence[JudgeConfig],
    rubric: Rubric,
    store: Store,
    sink: JudgementFile,
    *,
    quiet: bool = False,
    budget: Budget | None = None,
    build: BuildEngine = build_engine,
    evidence: Mapping[str, Evidence] | None = None,
) -> list[JudgeRun]:
    """Judge every sample with every judge. Finished judgements are skipped, finished calls come from the store.

    Args:
        samples: with unique ids; their order is the order of the lines.
        store, sink: of a run directory (`RunDir`), or free-standing.
        quiet: no progress on stderr.
        budget: what all judges together may spend.
        build: how an engine is made; only called for a judge with something left to do. Judges with the same model
            share it.
        evidence: judge → sample id → evidence, for the judges that have an `evidence_file`, in place of an analysis.

    Returns:
        One `JudgeRun` per judge. The judgements themselves are in `sink`.

    Raises:
        UserError: a judge was trained for something else, or has no evidence on any sample (`check_judges`); an engine
            cannot be built or doesn't answer, all judgements of a judge failed, or the budget is spent. Everything
            finished is kept.
    """
    check_judges(samples, judges, rubric, evidence)
    pending = sink.pending(job_keys(samples, judges))
    meter = Meter(budget, [model for judge in judges for model in judge.models], store)
    works, first = [], 0
    for judge in judges:
        positions = range(first, first + len(samples) * judge.repeats)
        first = positions.stop
        mine, given = [p for p in pending if p in positions], (evidence or {}).get(judge.id)
        works.append(_JudgeWork(samples, judge, rubric, sink, positions, mine, given))
    pool, runs = EnginePool(build), []
    try:
        # All before the first call: engines that share a model start it with room for each other's adapters.
        for model in (model for work in works if work.pending for model in work.judge.models):
            pool.get(model)
        for number, work in enumerate(works, 1):
            runs.append(await work.run(store, pool, meter, quiet=quiet))
            await pool.keep(model for later in works[number:] if later.pending for model in later.judge.models)
    finally:
        await pool.keep(())
    return runs


class _JudgeWork:
    """The part of a run that belongs to one judge: its pending jobs and the judgements that wait for their turn."""

    def __init__(
        self,
        samples: Sequence[Sample],
        judge: JudgeConfig,
        rubric: Rubric,
        sink: JudgementFile,
        positions: range,
        pending: list[int],
        evidence: Evidence | None,
    ) -> None:
        self.judge, self.pending = judge, pending
        self._evidence = evidence
        self._samples, self._judge, self._rubric, self._sink = samples, judge, rubric, sink
        self._positions, self._pending = positions, pending
        self._ready: dict[int, Judgement] = {}
        self._failed = 0
        self._last_fault = ""

    async def run(self, store: Store, pool: EnginePool, meter: Meter, *, quiet: bool) -> JudgeRun:
        started, sent = time.monotonic(), 0
        if self._pending:
            logger.info("judge %s: %d of %d to do", self._judge.id, len(self._pending), len(self._positions))
            askers = []
            for model in self._judge.models:
                engine = pool.get(model)
                logger.info("judge %s: engine %s", self._judge.id, engine.identity)
                askers.append(Asker(self._judge.id, model, engine, store, meter))
            sent = await self._run_pending(Askers(self._judge, askers), quiet=quiet)
            logger.info("judge %s: done, %d failed", self._judge.id, self._failed)
        return JudgeRun(
            judge=self._judge.id,
            judgements=len(self._positions),
            new=len(self._pending),
            failed=self._failed,
            sent=sent,
            seconds=time.monotonic() - started,
        )

    async def _run_pending(self, asker: "Askers", *, quiet: bool) -> int:
        total = len(self._positions)
        done = total - len(self._pending)
        jobs = iter(self._in_sending_order())
        workers, drain = [], False
        try:
            with ProgressReport(self._judge.id, total, done, quiet) as report:
                share = 1 if self._judge.asked in SINGLE_CALL else SAMPLES_PER_SLOT
                count = min(share * self._judge.calls_in_flight, len(self._pending))
                workers = [asyncio.create_task(self._work(jobs, asker, report)) for _ in range(count)]
                await asyncio.gather(*workers)
            self._check_any_answer(asker)
            self._write()
            self._sink.settle()
            self._check_any_use()
        except BudgetReached as stop:
            drain, stop.waiting = True, tuple(self._ready.values())
            raise
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            await asker.close(drain=drain)
        return asker.sent

    async def _work(self, jobs: Iterator[int], asker: "Askers", report: ProgressReport) -> None:
        for position in jobs:
            self._take(position, await self._judge_one(position, asker))
            asker.check_health()
            # Faults are held back until the engine has answered once: a wrong set-up must leave no trace in the file.
            if asker.answered or not asker.failed:
                self._write()
            report.advance()

    def _take(self, position: int, judgement: Judgement) -> None:
        failed = has_failed(judgement)
        self._failed += failed
        if failed:
            self._last_fault = next(score.unscored for score in judgement.scores if score.unscored)
        if position >= self._sink.length:
            self._ready[position] = judgement
        elif not failed:
            self._sink.replace(position, judgement)

    async def _judge_one(self, position: int, asker: "Askers") -> Judgement:
        index, repeat = divmod(position - self._positions.start, self._judge.repeats)
        return await judge_once(self._samples[index], repeat, self._judge, self._rubric, asker, self._evidence)

    def _in_sending_order(self) -> list[int]:
        """Pending positions grouped by scenario, scenarios in the order of their first sample."""
        first_seen: dict[str, int] = {}
        for index, sample in enumerate(self._samples):
            first_seen.setdefault(sample.scenario, index)

        def scenario_of(position: int) -> int:
            sample = self._samples[(position - self._positions.start) // self._judge.repeats]
            return first_seen[sample.scenario]

        return sorted(self._pending, key=scenario_of)

    def _write(self) -> None:
        """Append the judgements that are ready and next in order."""
        ready: list[Judgement] = []
        while (position := self._sink.length + len(ready)) in self._ready:
            ready.append(self._ready.pop(position))
        if ready:
            self._sink.append(ready)

    def _useless(self) -> bool:
        """Whether every judgement that needs the engine has failed, in earlier starts too."""
        askable = self._judge.repeats * sum(not sample.blank for sample in self._samples)
        return 0 < askable <= self._failed

    def _check_any_answer(self, asker: "Askers") -> None:
        if self._useless() and asker.failed and not asker.answered:
            raise UserError(
                f"judge {self._judge.id}: none of its {asker.failed} calls was answered ({asker.last_error}); "
                "nothing was written for it: mend it and start the same command again"
            )

    def _check_any_use(self) -> None:
        if self._useless():
            raise UserError(
                f"judge {self._judge.id}: all of its {self._failed} judgements failed ({self._last_fault}); the "
                "answers are kept, the log holds the faults: mend it and start the same command again"
            )


async def judge_once(
    sample: Sample,
    repeat: int,
    judge: JudgeConfig,
    rubric: Rubric,
    asker: "Askers",
    evidence: Evidence | None = None,
) -> Judgement:
    """One judgement of one sample. A fault of the engine or the method leaves it unscored, with the reason.

    `evidence`: for a judge with an `evidence_file`, which is never asked where there is none on the sample.
    Raises UserError where going on is of no use: the budget is spent, or the store cannot be used.
    """

    def judgement(scores: tuple[Score, ...], answers: Answers | None = None) -> Judgement:
        return Judgement(
            sample_id=sample.id,
            judge=judge.id,
            method=judge.method,
            rubric=f"{rubric.name}@{rubric.digest}",
            repeat=repeat,
            scores=scores,
            items=tuple(score for score in answers.scores if score.item is not None) if answers else (),
            evidence=answers.evidence if answers else (),
            # Methods may ask for several answers at once, which come in any order.
            calls=tuple(sorted(keys)),
        )

    keys: list[str] = []
    if sample.blank:
        return judgement(unscored_all(rubric, "the response is empty"))
    given = None if judge.evidence_file is None else (evidence or {}).get(sample.id, ())
    if given is not None and not given:
        return judgement(unscored_all(rubric, "no evidence: none is given on this response"))
    try:
        answers = await METHODS[judge.asked](rubric, sample, asker.asks(keys, given), judge.settings(repeat))
        return judgement(aggregate(rubric, answers.scores), answers)
    except UserError:
        raise
    except EngineError as error:
        return judgement(unscored_all(rubric, f"engine: {shown_error(error, judge.api_key_env)}"))
    except Exception as error:
        logger.exception("judge %s, sample %s: fault in method %s", judge.id, sample.id, judge.method)
        reason = f"method: {type(error).__name__}: {shown_error(error, judge.api_key_env)}"
        return judgement(unscored_all(rubric, reason))


def unscored_all(rubric: Rubric, reason: str) -> tuple[Score, ...]:
    """Every score of `rubric`, missing for one `reason`."""
    return tuple(Score(step=step.name, dimension=dimension.name, unscored=reason) for step, dimension in rubric.scored)


class Askers:
    """The models of one judge, counted together."""

    def __init__(self, judge: JudgeConfig, askers: Sequence[Asker]) -> None:
        self._judge, self._askers = judge, askers

    def asks(self, keys: list[str], evidence: Sequence[StepEvidence] | None = None) -> Asks:
        """For one sample, and the evidence that exists on it; the keys of its calls are added to `keys`."""

        def of(asker: Asker) -> Ask:
            async def ask(call: Call) -> Completion:
                keys.append(asker.key(call))
                return await asker(call)

            return ask

        judge = of(self._askers[0])
        analyst = self._judge.analyst
        if analyst is None:
            return Asks(judge, judge, evidence)
        own = of(self._askers[1])

        async def analyse(call: Call) -> Completion:
            # The analyst's own setting, so that judges with another one share its evidence.
            return await own(call.model_copy(update={"temperature": analyst.temperature}))

        return Asks(judge, analyse)

    @property
    def sent(self) -> int:
        return sum(asker.sent for asker in self._askers)

    @property
    def answered(self) -> int:
        return sum(asker.answered for asker in self._askers)

    @property
    def failed(self) -> int:
        return sum(asker.failed for asker in self._askers)

    @property
    def last_error(self) -> str:
        return next((asker.last_error for asker in self._askers if asker.last_error), "")

    def check_health(self) -> None:
        for asker in self._askers:
            asker.check_health()

    async def close(self, *, drain: bool = False) -> None:
        for asker in self._askers:
            await asker.close(drain=drain)
