"""Samples × judges → judgements: judge by judge, samples side by side, interruptible at any moment.

Samples are sent ordered by scenario, so that an engine's prefix cache works; judgements are written in the order of
the samples, so that the file's bytes depend on the completions alone.
"""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from inference.adapter_notes import check_trained_for
from inference.aggregation import aggregate
from inference.asking import Asker, shown_error
from inference.config import StrictModel
from inference.engines.base import EngineError, build_engine
from inference.engines.pool import BuildEngine
from inference.errors import UserError, named_list
from inference.judgement_file import JobKey, JudgementFile
from inference.judges import Budget, JudgeConfig
from inference.methods import METHODS, Answers, Ask, Asks
from inference.methods.evidence import Evidence
from inference.records import Call, Completion, Judgement, Sample, Score, StepEvidence
from inference.rubric import Rubric
from inference.store import Store
from inference.work import Work, run_works

logger = logging.getLogger(__name__)

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
    works, first = [], 0
    for judge in judges:
        positions = range(first, first + len(samples) * judge.repeats)
        first = positions.stop
        works.append(_JudgeWork(samples, judge, rubric, sink, positions, pending, (evidence or {}).get(judge.id)))
    done = await run_works(works, store, quiet=quiet, budget=budget, build=build)
    return [
        JudgeRun(judge=work.name, judgements=len(work.positions), **asdict(found))
        for work, found in zip(works, done, strict=True)
    ]


class _JudgeWork(Work[Judgement]):
    """The part of a run that belongs to one judge: samples grouped by scenario, for the prefix cache."""

    def __init__(
        self,
        samples: Sequence[Sample],
        judge: JudgeConfig,
        rubric: Rubric,
        sink: JudgementFile,
        positions: range,
        pending: Sequence[int],
        evidence: Evidence | None,
    ) -> None:
        self._samples, self._judge, self._rubric, self._evidence = samples, judge, rubric, evidence
        mine = _in_sending_order(samples, judge.repeats, positions, pending)
        super().__init__(judge.id, judge.models, sink, positions, mine)

    async def make(self, index: int, askers: Sequence[Asker]) -> Judgement:
        sample, repeat = divmod(index, self._judge.repeats)
        asked = Askers(self._judge, askers)
        return await judge_once(self._samples[sample], repeat, self._judge, self._rubric, asked, self._evidence)

    @property
    def askable(self) -> int:
        return self._judge.repeats * sum(not sample.blank for sample in self._samples)

    @property
    def single_call(self) -> bool:
        return self._judge.asked in SINGLE_CALL


def _in_sending_order(samples: Sequence[Sample], repeats: int, positions: range, pending: Sequence[int]) -> list[int]:
    """The `pending` ones of `positions` grouped by scenario, scenarios in the order of their first sample."""
    first_seen: dict[str, int] = {}
    for index, sample in enumerate(samples):
        first_seen.setdefault(sample.scenario, index)
    mine = [position for position in pending if position in positions]
    return sorted(mine, key=lambda position: first_seen[samples[(position - positions.start) // repeats].scenario])


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
    """The models of one judge."""

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
