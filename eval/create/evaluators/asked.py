"""Evaluators that are models: prompted with a whole path, or trained on single triples."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence

from eval.create.evaluators.kinds import Kind
from eval.create.evaluators.plan import Job
from eval.create.evaluators.prompts import answer_tokens, judgments_schema, path_messages
from eval.create.evaluators.readings import Reading, ReadingFile
from eval.create.evaluators.settings import AskedEvaluator, LearnedEvaluator
from eval.create.triples import triple_text
from inference.asking import Asker, shown_error
from inference.engines.base import EngineError
from inference.errors import UserError
from inference.methods.base import Ask, Asks, Settings, ask_readable
from inference.methods.compact import compact
from inference.records import Call, Completion, Sample
from inference.rubric import Rubric, load_rubric
from inference.work import Work

logger = logging.getLogger(__name__)

Evaluate = Callable[[Job, Ask], Awaitable[Reading]]


class EvaluatorWork(Work[Reading]):
    """One evaluator on all paths, side by side."""

    kind = "evaluator"
    records = "readings"

    def __init__(
        self,
        kind: Kind,
        evaluator: AskedEvaluator,
        jobs: Sequence[Job],
        sink: ReadingFile,
        first: int,
        pending: Iterable[int],
    ) -> None:
        """`first`: line of `sink` with the first of `jobs`. Raises UserError for a rubric that does not fit `kind`."""
        self._of, self._jobs, self._key_env = kind, jobs, evaluator.api_key_env
        self._evaluate = (
            learned(kind, evaluator) if isinstance(evaluator, LearnedEvaluator) else prompted(kind, evaluator)
        )
        super().__init__(kind.name, [evaluator], sink, range(first, first + len(jobs)), pending)

    async def make(self, index: int, askers: Sequence[Asker]) -> Reading:
        job, asker, keys = self._jobs[index], askers[0], list[str]()

        async def ask(call: Call) -> Completion:
            keys.append(asker.key(call))
            return await asker(call)

        try:
            reading = await self._evaluate(job, ask)
        except UserError:
            raise
        except EngineError as error:
            reading = self._failed_reading(job, f"engine: {shown_error(error, self._key_env)}")
        except Exception as error:
            logger.exception("evaluator %s, path %s", self.name, job.id)
            reading = self._failed_reading(job, f"method: {type(error).__name__}: {shown_error(error, self._key_env)}")
        return reading.model_copy(update={"calls": tuple(sorted(keys))})

    def _failed_reading(self, job: Job, fault: str) -> Reading:
        return Reading(evaluator=self._of.name, job=job.id, status="failed", fault=fault)

    @property
    def askable(self) -> int:
        return len(self._jobs)


def prompted(kind: Kind, evaluator: AskedEvaluator) -> Evaluate:
    """One call per path. A reply that cannot be read whole is asked for once more, with the complaint."""

    async def evaluate(job: Job, ask: Ask) -> Reading:
        count = len(job.path)
        call = Call(
            messages=path_messages(kind.instructions, job.path),
            json_schema=judgments_schema(kind.judgment, count),
            max_tokens=evaluator.max_tokens or answer_tokens(count),
            temperature=evaluator.temperature,
        )

        def read(completion: Completion) -> tuple[Reading, str | None]:
            _, status = kind.read(completion.text, count)
            reading = Reading(evaluator=kind.name, job=job.id, status=status, reply=completion.text)
            return reading, kind.complaint(completion.text, count)

        reading, _ = await ask_readable(ask, call, read, _readable)
        return reading

    return evaluate


def _readable(first: Reading, second: Reading) -> Reading:
    """The second reply where it can be read, else the first."""
    return (second if second.status == "ok" else first).model_copy(update={"asked_again": True})


def learned(kind: Kind, evaluator: LearnedEvaluator) -> Evaluate:
    """One call of one token per triple, on the prompt that the model was trained on."""
    rubric = load_evaluator_rubric(kind, evaluator.rubric)
    step = rubric.asked[0][0].name
    settings = Settings(temperature=evaluator.temperature)

    async def evaluate(job: Job, ask: Ask) -> Reading:
        samples = [
            Sample(id=job.id, scenario=job.connection, responses={step: triple_text(triple)}) for triple in job.path
        ]
        answers = await asyncio.gather(*(compact(rubric, sample, Asks(ask, ask), settings) for sample in samples))
        values = tuple(answer.scores[0].value for answer in answers)
        status = "unreadable" if None in values else "ok"
        return Reading(evaluator=kind.name, job=job.id, status=status, values=values)

    return evaluate


def load_evaluator_rubric(kind: Kind, path: str) -> Rubric:
    """Raises UserError for a rubric of several dimensions, or of another scale than the judgement's."""
    rubric = load_rubric(path)
    found = rubric.asked[0][1].range if rubric.single else None
    if found != kind.score_range:
        given = "several dimensions" if found is None else f"a scale from {found[0]} to {found[1]}"
        raise UserError(
            f"{path}: a learned evaluator of {kind.name} scores one dimension from {kind.score_range[0]} to "
            f"{kind.score_range[1]}, and this rubric has {given}; use configs/rubrics/create_{kind.name}.yaml"
        )
    return rubric
