"""Queries × generators → answers.

    python -m eval create generate --config configs/eval/create_demo_smollm2.yaml --dry-run
    python -m eval create generate --config configs/eval/create_demo_smollm2.yaml

The run directory holds ``answers.jsonl``, in the order of generators and queries, which `eval create evaluate` takes.
The same command goes on where a run was interrupted; queries that failed are asked again.
"""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Group

from eval.create.generation.prompts import templates_digest
from eval.create.generation.records import ANSWERS, Answer, AnswerFile, Tokens
from eval.create.generation.settings import GenerationConfig, Generator
from eval.create.generation.strategies import completions, separated
from eval.create.generation.tables import answers_summary, estimated
from eval.create.queries.read import query_files, read_queries
from eval.create.queries.records import Query
from inference.adapters import file_digest
from inference.asking import Asker, shown_error
from inference.config import load_config
from inference.engines.base import EngineError, build_engine
from inference.engines.pool import BuildEngine
from inference.errors import UserError
from inference.judge import run_to_end
from inference.judges import Budget, resolved_model
from inference.record_file import RecordFile
from inference.records import Call, Completion
from inference.run_dir import RunDir
from inference.store import Store
from inference.work import Work, run_works

logger = logging.getLogger(__name__)


def generate(
    config_path: Path,
    out: Path | None = None,
    limit: int | None = None,
    *,
    quiet: bool = False,
    build: BuildEngine = build_engine,
) -> tuple[Path, Group]:
    """The command: the file of answers, and what they took. `limit`: the first so many queries only.

    Raises UserError for a faulty config or query set, an engine that doesn't answer, and a budget that is spent.
    """
    config = load_config(config_path, GenerationConfig)
    queries = read_queries(config.queries)[:limit]
    with RunDir.open(out or config.out, _resolved(config, limit), judged=False) as run:
        sink = run.keep(AnswerFile(run.path / ANSWERS))
        run_to_end(run_generators(queries, config.generators, run.store, sink, config.budget, build, quiet=quiet))
        return sink.path, answers_summary(config.generators, list(sink.read()), run.store)


def dry_run(config_path: Path, limit: int | None = None) -> Group:
    """Calls, tokens and price of what `generate` would ask; nothing is asked or written. Raises UserError as it."""
    config = load_config(config_path, GenerationConfig)
    return estimated(read_queries(config.queries)[:limit], config)


async def run_generators(
    queries: Sequence[Query],
    generators: Sequence[Generator],
    store: Store,
    sink: RecordFile[Answer],
    budget: Budget | None = None,
    build: BuildEngine = build_engine,
    *,
    quiet: bool = False,
) -> None:
    """Ask every generator every query. Finished answers are skipped, finished calls come from the store.

    Raises UserError as `run_works`.
    """
    pending = sink.pending([(generator.id, query.id) for generator in generators for query in queries])
    count = len(queries)
    works = [
        _GeneratorWork(queries, generator, sink, range(count * number, count * (number + 1)), pending)
        for number, generator in enumerate(generators)
    ]
    await run_works(works, store, quiet=quiet, budget=budget, build=build)


class _GeneratorWork(Work[Answer]):
    kind, records = "generator", "answers"

    def __init__(
        self,
        queries: Sequence[Query],
        generator: Generator,
        sink: RecordFile[Answer],
        positions: range,
        pending: Sequence[int],
    ) -> None:
        super().__init__(generator.id, [generator], sink, positions, pending)
        self._queries, self._generator = queries, generator

    @property
    def askable(self) -> int:
        return len(self._queries)

    @property
    def single_call(self) -> bool:
        return self._generator.strategy not in ("iterate", "resample")

    async def make(self, index: int, askers: Sequence[Asker]) -> Answer:
        return await answer_query(self._queries[index], self._generator, askers[0])


async def answer_query(query: Query, generator: Generator, asker: Asker) -> Answer:
    """One generator's answer to one query. A fault of the engine leaves it without samples, with the reason.

    Raises UserError where going on is of no use: the budget is spent, or the store cannot be used.
    """
    keys: list[str] = []

    async def ask(call: Call) -> Completion:
        keys.append(asker.key(call))
        return await asker(call)

    found: dict[str, Any]
    try:
        found = _told(await completions(query, generator, ask))
    except UserError:
        raise
    except EngineError as error:
        found = {"failed": f"engine: {shown_error(error, generator.api_key_env)}"}
    except Exception as error:
        logger.exception("generator %s, query %s: fault", generator.id, query.id)
        found = {"failed": f"method: {type(error).__name__}: {shown_error(error, generator.api_key_env)}"}
    return Answer(
        id=f"{generator.id}/{query.id}",
        query_id=query.id,
        **query.model_dump(include={"query", "entity_a", "rel_b", "entity_b", "description"}),
        generator=generator.id,
        model=generator.model,
        strategy=generator.strategy,
        encourage_guessing=generator.encourage_guessing,
        calls=tuple(keys),
        **found,
    )


def _told(answers: Sequence[Completion]) -> dict[str, Any]:
    texts, thoughts = zip(*map(separated, answers), strict=True)
    usages = [answer.usage for answer in answers]
    return {
        "samples": texts,
        "reasoning": thoughts if any(thoughts) else (),
        "finish": tuple(answer.finish_reason for answer in answers),
        "tokens": Tokens(
            prompt=sum(usage.prompt for usage in usages),
            completion=sum(usage.completion for usage in usages),
            reasoning=sum(usage.reasoning for usage in usages),
            known=all(usage.known for usage in usages),
        ),
    }


def _resolved(config: GenerationConfig, limit: int | None) -> dict[str, Any]:
    return {
        "queries": config.queries,
        "queries_sha256": [file_digest(file) for file in query_files(Path(config.queries))],
        **({} if limit is None else {"limit": limit}),
        "generation_templates": templates_digest(),
        "generators": [resolved_model(generator) for generator in config.generators],
    }
