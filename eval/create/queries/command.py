"""Build a query set and write it; look at one.

    python -m eval create queries build --config configs/eval/create_queries_demo.yaml \\
        --store eval/create/samples/facts.nt --out runs/create_demo/queries.jsonl
    python -m eval create queries show runs/create_demo/queries.jsonl

Where a model words the questions, its answers are kept beside the file (``queries.jsonl.calls.sqlite``), so that the
same command goes on where it was interrupted.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rich.markup import escape
from rich.table import Table

from eval.create.queries import sparql
from eval.create.queries.build import Draft, draft_queries
from eval.create.queries.graph import Graph
from eval.create.queries.question import template_question, worded_question
from eval.create.queries.records import Query
from eval.create.queries.settings import BuildConfig
from inference.asking import Asker
from inference.budget import Meter
from inference.engines.base import build_engine
from inference.engines.pool import BuildEngine, EnginePool
from inference.errors import UserError, printable
from inference.files import write_text
from inference.judge import run_to_end
from inference.store import Store


def build_queries(graph: Graph, config: BuildConfig, out: Path, build: BuildEngine = build_engine) -> list[str]:
    """Write queries to `out`, replacing it; notes for the user. Raises UserError as `draft_queries`, and where the
    model that is to word them cannot be built or doesn't answer, or the budget is spent."""
    drafts = draft_queries(graph, config)
    if config.rewrite is None:
        queries = [_by_template(draft, graph, config) for draft in drafts.kept]
    else:
        queries = run_to_end(_worded(drafts.kept, graph, config, out, build))
    write_text(out, "".join(f"{to_line(query)}\n" for query in queries))
    dropped = ", ".join(f"{reason} {count}" for reason, count in sorted(drafts.dropped.items()))
    notes = [f"{len(queries)} queries: {out}", f"pairs that were dropped: {dropped or 'none'}"]
    plain = sum(query.phrasing == "template" for query in queries)
    if config.rewrite is not None and plain:
        notes.append(f"{plain} questions are by the template, as the model's broke the rules or did not come")
    return notes


def to_line(query: Query) -> str:
    return json.dumps(query.model_dump(mode="json", exclude_defaults=True), ensure_ascii=False)


def queries_table(queries: Sequence[Query], limit: int) -> list[Table | str]:
    """How many queries there are of each relation, and the first `limit` of them."""
    counts = Table("relation behind the query", "queries", "different starts", title=f"{len(queries)} queries")
    starts: dict[str, set[str]] = {}
    for query in queries:
        starts.setdefault(_group(query), set()).add(query.entity_a)
    sizes = Counter(map(_group, queries))
    for name, size in sorted(sizes.items()):
        counts.add_row(escape(printable(name)), str(size), str(len(starts[name])))
    lines = [f"{q.id}  {q.entity_a} → … → {q.rel_b} → {q.entity_b}\n    {q.query}" for q in queries[:limit]]
    return [counts, *lines]


def _group(query: Query) -> str:
    return query.description.rsplit("__", 1)[-1] or "unknown"


def _about(graph: Graph, config: BuildConfig, item: str) -> str:
    rows = graph.select(sparql.description(item, language=config.language))
    return rows[0]["label"] if rows else ""


def _by_template(draft: Draft, graph: Graph, config: BuildConfig) -> Query:
    return draft.query(template_question(draft, _about(graph, config, draft.start.iri)), "template")


async def _worded(
    drafts: Sequence[Draft], graph: Graph, config: BuildConfig, out: Path, build: BuildEngine
) -> list[Query]:
    model = config.rewrite
    assert model is not None
    about = [(_about(graph, config, d.start.iri), _about(graph, config, d.middle.iri)) for d in drafts]
    pool = EnginePool(build)
    out.parent.mkdir(parents=True, exist_ok=True)
    with Store(out.with_name(out.name + ".calls.sqlite")) as store:
        asker = Asker("rewriting", model, pool.get(model), store, Meter(config.budget, [model], store))

        async def one(draft: Draft, known: tuple[str, str]) -> Query:
            question = await worded_question(draft, known, asker, model.max_tokens)
            asker.check_health()
            if question is None:
                return draft.query(template_question(draft, known[0]), "template")
            return draft.query(question, "model")

        try:
            queries = await asyncio.gather(*map(one, drafts, about))
        finally:
            await asker.close()
            await pool.keep(())
    if asker.failed and not asker.answered:
        raise UserError(
            f"rewriting: none of its {asker.failed} calls was answered ({asker.last_error}); mend the settings of the "
            "model, or remove `rewrite` for questions by the template"
        )
    return queries
