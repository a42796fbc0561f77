"""Several models on the same queries: how good each is, where, whether they differ, and what they find together.

    python -m eval create compare gpt=gpt/evaluated.jsonl qwen=qwen/evaluated.jsonl --queries queries.jsonl

By the rules of the paper; the strings of all paths are embedded together, each once.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from eval.create.compare_rows import Entry
from eval.create.embedding import EmbeddedStrings, Embedder, minilm
from eval.create.judging import Rules
from eval.create.records import JudgedAnswer
from eval.create.scoring import Result, judged_row, paper, score_judged
from eval.create.significance import Comparison, compare_models
from eval.create.strings import path_string
from eval.create.summary import Mean, Summary, mean_of, summarise
from eval.create.union import Union, UnionSummary, pool
from eval.create.union import summarise as summarise_unions
from eval.create.utility import utility

MEASURES = {
    "kept_paths": "paths",
    "quality": "strength",
    "distance": "distance",
    "triples": "triples",
    "entity_redundancy": "entity_redundancy",
    "relation_redundancy": "relation_redundancy",
}
"""Measure of a model → statistic of the kept paths of an answer, of which it is the mean."""
SIGNIFICANCE_PATIENCE = 1.0
NO_RELATION = "–"


@dataclass(frozen=True)
class ModelSummary:
    """One model over its rows that were scored."""

    summary: Summary
    measures: dict[str, Mean | None]
    """`MEASURES` and ``output_tokens``: means over the answers for which each is known."""


@dataclass(frozen=True)
class RelationSummary:
    queries: int
    """Different ones that any model has a score on."""
    utility: dict[str, dict[str, Mean]]
    """Model → patience → mean; a model without scores here is left out."""


@dataclass(frozen=True)
class ModelComparison:
    """All that the command shows."""

    patiences: tuple[str, ...]
    validity: str
    models: dict[str, ModelSummary]
    relations: dict[str, RelationSummary]
    pairs: list[Comparison]
    union_patience: float
    unions: dict[str, Union]
    """Query → what all models found on it: the queries on which every model has a score."""
    union: UnionSummary | None
    """None where there is no such query."""
    failed: list[dict[str, str | None]]
    """``model``, ``query``, ``why`` of each row without a score."""
    results: list[Result]
    """One per row, with its ``model`` and ``query_id``."""

    def as_json(self) -> dict[str, Any]:
        """One object, without the results and the names behind the counts."""
        return {
            "patience": self.patiences,
            "validity": self.validity,
            "models": {name: _model_json(found) for name, found in self.models.items()},
            "relations": {name: asdict(found) for name, found in self.relations.items()},
            "significance": {
                "patience": SIGNIFICANCE_PATIENCE,
                "pairs": [{**_finite(asdict(pair)), "significant": pair.significant} for pair in self.pairs],
            },
            "union": None if self.union is None else {"patience": self.union_patience, **asdict(self.union)},
            "failed": self.failed,
        }

    def tail_entities(self) -> list[dict[str, Any]]:
        """Every name on the way that one model alone found on a query, with the number of its paths that have it."""
        return [
            {"query_id": query, "model": model, "entity": entity, "paths": paths}
            for query, union in self.unions.items()
            for model, names in union.tail.items()
            for entity, paths in names.items()
        ]


def compare(
    entries: Sequence[Entry],
    patiences: Sequence[float],
    *,
    rules: Rules | None = None,
    union_patience: float = 1.0,
    embedder: Callable[[], Embedder] = minilm,
) -> ModelComparison:
    """Score `entries`, as `read_entries` gives them, and compare their models."""
    rules = rules or Rules()
    mode = paper(rules)
    judged = [judged_row(entry.row, mode) for entry in entries]
    kept = (path for answer in judged if isinstance(answer, JudgedAnswer) for path in answer.kept_paths)
    strings = EmbeddedStrings(map(path_string, kept), embedder)
    results = [score_judged(answer, strings, mode, patiences) for answer in judged]
    models = list(dict.fromkeys(entry.model for entry in entries if entry.model is not None))
    unions = {
        query: pool(answers, strings, union_patience) for query, answers in _common(entries, judged, models).items()
    }
    return ModelComparison(
        patiences=tuple(f"{patience:g}" for patience in patiences),
        validity=rules.validity,
        models={model: _model(model, entries, results) for model in models},
        relations=_relations(entries, results, models),
        pairs=compare_models(_full_utilities(entries, results, models)),
        union_patience=union_patience,
        unions=unions,
        union=summarise_unions(list(unions.values())) if unions else None,
        failed=_failed(entries, results),
        results=[
            {"model": entry.model, "query_id": entry.query, **result}
            for entry, result in zip(entries, results, strict=True)
        ],
    )


def _model(model: str, entries: Sequence[Entry], results: Sequence[Result]) -> ModelSummary:
    rows = [(entry, result) for entry, result in zip(entries, results, strict=True) if entry.model == model]
    scored = [(entry, result["statistics"]["kept"]) for entry, result in rows if "error" not in result]
    measures = {name: mean_of(kept[key] for _, kept in scored) for name, key in MEASURES.items()}
    measures["output_tokens"] = mean_of(entry.tokens for entry, _ in scored)
    return ModelSummary(summarise([result for _, result in rows], "paper"), measures)


def _model_json(found: ModelSummary) -> dict[str, Any]:
    return {
        **found.summary.as_json(),
        "valid": found.summary.valid,
        **{name: None if mean is None else asdict(mean) for name, mean in found.measures.items()},
    }


def _relations(
    entries: Sequence[Entry], results: Sequence[Result], models: Sequence[str]
) -> dict[str, RelationSummary]:
    """By name; rows of unknown relation last."""
    scored = [(entry, result) for entry, result in zip(entries, results, strict=True) if "error" not in result]
    of_query: dict[str | None, str] = {}
    for entry, _ in scored:  # one file may know the relation of a query that another does not tell
        if entry.relation is not None:
            of_query.setdefault(entry.query, entry.relation)
    groups: dict[str, list[tuple[Entry, Result]]] = {}
    for entry, result in scored:
        groups.setdefault(of_query.get(entry.query, NO_RELATION), []).append((entry, result))
    return {
        name: _relation(groups[name], models) for name in sorted(groups, key=lambda name: (name == NO_RELATION, name))
    }


def _relation(rows: Sequence[tuple[Entry, Result]], models: Sequence[str]) -> RelationSummary:
    found = {model: summarise([result for entry, result in rows if entry.model == model], "paper") for model in models}
    return RelationSummary(
        queries=len({entry.query for entry, _ in rows}),
        utility={model: summary.utility for model, summary in found.items() if summary.rows},
    )


def _full_utilities(
    entries: Sequence[Entry], results: Sequence[Result], models: Sequence[str]
) -> dict[str, dict[str, float]]:
    """Model → query → utility at patience 1."""
    found: dict[str, dict[str, float]] = {model: {} for model in models}
    for entry, result in zip(entries, results, strict=True):
        if entry.model is not None and entry.query is not None and "error" not in result:
            found[entry.model][entry.query] = utility(result["gains"], SIGNIFICANCE_PATIENCE)
    return found


def _common(
    entries: Sequence[Entry], judged: Sequence[Any], models: Sequence[str]
) -> dict[str, dict[str, JudgedAnswer]]:
    """Query → model → answer, where every model has one that can be scored."""
    found: dict[str, dict[str, JudgedAnswer]] = {}
    for entry, answer in zip(entries, judged, strict=True):
        if entry.model is not None and entry.query is not None and isinstance(answer, JudgedAnswer):
            found.setdefault(entry.query, {})[entry.model] = answer
    return {query: answers for query, answers in found.items() if len(answers) == len(models)}


def _failed(entries: Sequence[Entry], results: Sequence[Result]) -> list[dict[str, str | None]]:
    return [
        {"model": entry.model, "query": entry.query, "why": result["error"]["message"]}
        for entry, result in zip(entries, results, strict=True)
        if "error" in result
    ]


def _finite(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: None if isinstance(value, float) and math.isnan(value) else value for key, value in values.items()}
