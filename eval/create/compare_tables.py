"""A comparison of models as tables for people."""

import math
from collections.abc import Callable, Iterator, Mapping

from rich.console import RenderableType

from eval.create.columns import Column, shown_text, side_by_side
from eval.create.compare import SIGNIFICANCE_PATIENCE, ModelComparison
from eval.create.judging import VALIDITY_RULES
from eval.create.summary import SHOWN_ROWS, Mean
from eval.create.union import Part
from eval.resampling import MIN_CLUSTERS
from eval.tables import MISSING, interval, p_value, percent

SHOWN_MEASURES = {
    "kept paths": "kept_paths",
    "quality": "quality",
    "distance": "distance",
    "triples per path": "triples",
    "entity redundancy": "entity_redundancy",
    "relation redundancy": "relation_redundancy",
    "output tokens": "output_tokens",
}
PART_COLUMNS: Mapping[str, Callable[[Part], str]] = {
    "utility alone": lambda part: decimals(part.single),
    "coverage": lambda part: share(part.coverage),
    "share": lambda part: share(part.share),
    "paths of it alone": lambda part: f"{part.sole_paths:,}",
    "entities": lambda part: f"{part.entities:,}",
    "entities of it alone": lambda part: f"{part.tail_entities:,}",
}


def comparison_tables(found: ModelComparison, width: int) -> list[RenderableType]:
    """Models, relations, pairs of models and their union; what could not be scored; each within `width` characters."""
    return [
        *_models(found, width),
        f"Below each utility its 95 % interval over queries, where there are {MIN_CLUSTERS} or more. Measures are "
        "means over answers, of kept paths alone; valid shares are of all paths, “no judgement” of the valid ones.\n",
        *_relations(found, width),
        *_pairs(found, width),
        *_union(found, width),
        *_failed(found),
    ]


def _models(found: ModelComparison, width: int) -> Iterator[RenderableType]:
    models = [model.summary for model in found.models.values()]
    columns = [Column("scored", [f"{model.rows - model.failed}/{model.rows}" for model in models])]
    columns += [
        Column(f"utility {patience}", [with_interval(model.utility.get(patience)) for model in models])
        for patience in found.patiences
    ]
    for label, name in SHOWN_MEASURES.items():
        means = [model.measures[name] for model in found.models.values()]
        columns.append(Column(label, [measure(mean, whole=name == "output_tokens") for mean in means]))
    columns += [Column(f"valid, {rule}", [share(model.valid.get(rule)) for model in models]) for rule in VALIDITY_RULES]
    columns.append(Column("no judgement", [share(model.unjudged) for model in models]))
    title = f"CREATE: models, {found.validity} validity"
    return side_by_side(title, Column("model", list(found.models)), columns, width)


def _relations(found: ModelComparison, width: int) -> Iterator[RenderableType]:
    patience = found.patiences[-1]
    relations = dict(list(found.relations.items())[:SHOWN_ROWS])
    if not relations:
        return
    columns = [Column("queries", [str(relation.queries) for relation in relations.values()])]
    for model in found.models:
        means = [relation.utility.get(model, {}).get(patience) for relation in relations.values()]
        columns.append(Column(model, [measure(mean) for mean in means]))
    yield from side_by_side(
        f"utility at patience {patience} by relation", Column("relation", list(relations)), columns, width
    )
    if len(found.relations) > len(relations):
        yield f"{len(found.relations) - len(relations)} more relations: --json"
    yield ""


def _pairs(found: ModelComparison, width: int) -> Iterator[RenderableType]:
    pairs = found.pairs
    columns = [
        Column("Δ utility", [signed(pair.difference) if pair.n else MISSING for pair in pairs]),
        Column("95 % interval", [interval(_known(pair.low), _known(pair.high), signed) or MISSING for pair in pairs]),
        Column(
            "p, corrected", [p_value(_known(pair.p_corrected)) + (" *" if pair.significant else "  ") for pair in pairs]
        ),
        Column("queries", [str(pair.n) for pair in pairs]),
    ]
    title = f"utility at patience {SIGNIFICANCE_PATIENCE:g}: pairs of models on their common queries"
    yield from side_by_side(title, Column("models", [f"{pair.a} − {pair.b}" for pair in pairs]), columns, width)
    yield f"* differs: p of a paired bootstrap × {len(pairs)} pairs (Bonferroni) below 0.05.\n"


def _union(found: ModelComparison, width: int) -> Iterator[RenderableType]:
    union = found.union
    if union is None:
        yield "union of the models: no query has a score of every model\n"
        return
    parts = list(union.models.values())
    columns = [Column(name, [cell(part) for part in parts]) for name, cell in PART_COLUMNS.items()]
    title = f"union of the models at patience {found.union_patience:g}, {union.queries} queries"
    yield from side_by_side(title, Column("model", list(union.models)), columns, width)
    yield (
        f"pooled utility {decimals(union.pooled)}; {union.paths:,} different paths, {union.entities:,} different "
        "entities on them, counted query by query. Coverage: utility alone / pooled. Of it alone: found by no other "
        "model.\n"
    )


def _failed(found: ModelComparison) -> Iterator[RenderableType]:
    if not found.failed:
        return
    yield f"not scored: {len(found.failed)} rows"
    for row in found.failed[:SHOWN_ROWS]:
        yield shown_text(f"  {row['model'] or 'no model'}, {row['query'] or 'no query'}: {row['why']}")
    if len(found.failed) > SHOWN_ROWS:
        yield f"  and {len(found.failed) - SHOWN_ROWS} more: --json"


def decimals(value: float | None) -> str:
    """Two decimals, as in the published tables."""
    return MISSING if value is None else _minus(f"{value:,.2f}")


def signed(value: float | None) -> str:
    return MISSING if value is None else _minus(f"{value:+,.2f}")


def share(value: float | None) -> str:
    return MISSING if value is None else percent(value)


def measure(mean: Mean | None, *, whole: bool = False) -> str:
    if mean is None:
        return MISSING
    return f"{mean.value:,.0f}" if whole else decimals(mean.value)


def with_interval(mean: Mean | None) -> str:
    """The mean, and its interval in a second line."""
    if mean is None:
        return MISSING
    ends = interval(mean.low, mean.high, decimals)
    return f"{decimals(mean.value)}\n{ends}" if ends else decimals(mean.value)


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def _minus(text: str) -> str:
    return text.replace("-", "−")
