"""Ratings and evaluators' scores from CSV files, and the validation as a table."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np
from rich.console import RenderableType

from eval.agreement import Array
from eval.create.columns import Column, side_by_side
from eval.create.validation import Ratings, ValidationRow
from eval.resampling import MIN_CLUSTERS
from eval.tables import MISSING, number, p_value
from inference.errors import UserError, named_list, quoted
from inference.files import plain_number, read_csv

Rows = dict[str, dict[str, str]]
"""Id → row."""
CLUSTERS = ("query", "query_id", "connection")
"""Columns that say which query a row belongs to."""
SCORE_ENDING = "_value"
"""Of the columns of a run's ``scores.csv`` that hold a judge's expected scores."""


def read_ratings(
    path: Path, raters: Sequence[str], judges: Sequence[str], scores: Sequence[Path], cluster: str
) -> Ratings:
    """Rows of `path` with the columns ``id``, `cluster` and `raters`; `judges` are columns of it or of `scores`.

    `scores` are CSV files with a column ``id``, such as ``scores.csv`` of a run; without `judges` all of their columns
    that end in ``_value`` are taken. An empty `cluster` stands for the first of `CLUSTERS` there is. Empty cells are
    missing values.

    Raises UserError for missing columns, repeated ids, and cells that are no numbers.
    """
    if not raters or len(set(raters)) < len(raters):
        raise UserError(f"--raters: {named_list(raters) or 'nothing'}; name one column or more, each once")
    cluster = cluster or _cluster(path)
    tables = {path: _rows(path, ["id", cluster, *raters]), **{file: _rows(file, ["id"]) for file in scores}}
    own, places = tables[path], _places(tables, {"id", cluster, *raters})
    chosen = list(judges) or [name for name, file in places.items() if file != path and name.endswith(SCORE_ENDING)]
    missing = [name for name in chosen if name not in places]
    if missing or not chosen:
        raise UserError(
            f"--judges: no column {named_list(missing) or 'is named'}; there are {named_list(places) or 'no others'}"
        )
    named_judges = {name.removesuffix(SCORE_ENDING): name for name in chosen}
    if len(named_judges) < len(chosen):
        raise UserError(
            f"--judges: {named_list(chosen)}: two are the same but for {SCORE_ENDING}; name each once, "
            "or rename a column"
        )
    return Ratings(
        clusters=[row[cluster] for row in own.values()],
        raters={name: _column(path, own, own, name) for name in raters},
        judges={judge: _column(places[name], tables[places[name]], own, name) for judge, name in named_judges.items()},
    )


def _cluster(path: Path) -> str:
    """The first of `CLUSTERS` that the file has."""
    columns = next((row for _, row in read_csv(path)), {})
    found = next((name for name in CLUSTERS if name in columns), None)
    if found is None:
        raise UserError(f"{path}: has no column {named_list(CLUSTERS)}; name the column of the queries by --cluster")
    return found


def _places(tables: Mapping[Path, Rows], taken: Collection[str]) -> dict[str, Path]:
    """Column → the file that has it. Raises UserError where two have one of the same name."""
    places: dict[str, Path] = {}
    for file, rows in tables.items():
        for name in (name for name in next(iter(rows.values())) if name not in taken):
            if name in places:
                raise UserError(
                    f"{places[name]} and {file} both have a column {named_list([name])}; rename one of them"
                )
            places[name] = file
    return places


def _rows(path: Path, needed: Sequence[str]) -> Rows:
    rows: Rows = {}
    for line, row in read_csv(path):
        missing = [name for name in needed if name not in row]
        if missing:
            raise UserError(f"{path}: missing column {named_list(missing)}; it has {named_list(row)}")
        if row["id"] in rows:
            raise UserError(f"{path}: line {line} repeats the id {quoted(row['id'], 40)}")
        rows[row["id"]] = row
    if not rows:
        raise UserError(f"{path}: no rows; a header line and at least one row are needed")
    return rows


def _column(path: Path, rows: Rows, wanted: Collection[str], name: str) -> Array:
    """(n,): the numbers of a column for the ids `wanted`, NaN where a row or its cell is missing."""
    found = np.full(len(wanted), np.nan)
    for place, identifier in enumerate(wanted):
        cell = rows.get(identifier, {}).get(name, "").strip()
        value = plain_number(cell) if cell else np.nan
        if value is None:
            raise UserError(f"{path}: the {name} of {quoted(identifier, 40)} is {quoted(cell, 20)}, which is no number")
        found[place] = value
    return found


def validation_tables(rows: Sequence[ValidationRow], width: int) -> list[RenderableType]:
    """A column per evaluator and per difference, a line per metric and rater, each value above its interval."""
    lines = list(dict.fromkeys((row.metric, row.rater) for row in rows))
    several = len({rater for _, rater in lines}) > 1
    labels = [f"{metric}, {rater}" if several else metric for metric, rater in lines]
    columns = []
    for judge in dict.fromkeys(row.judge for row in rows):
        own = {(row.metric, row.rater): row for row in rows if row.judge == judge}
        cells = [_cell(own[line]) if line in own else "" for line in lines]
        columns.append(Column(judge or "raters among themselves", [*cells, _counts(list(own.values()))]))
    few = min(row.clusters for row in rows) < MIN_CLUSTERS
    resampled = f"row, for fewer than {MIN_CLUSTERS} queries say nothing of others" if few else "query"
    title = f"{rows[0].what}: agreement, 95 % intervals by {resampled}; p of a difference"
    return list(side_by_side(title, Column("metric", [*labels, "rows, queries"]), columns, width))


def _cell(row: ValidationRow) -> str:
    found = [MISSING if row.value is None else number(row.value)]
    if row.low is not None and row.high is not None:
        found.append(f"{number(row.low)} to {number(row.high)}")
    if row.p is not None:
        found.append(p_value(row.p))
    return "\n".join(found)


def _counts(rows: Sequence[ValidationRow]) -> str:
    """Rows and queries, from the fewest to the most where metrics differ."""
    ends = ((min(values), max(values)) for values in zip(*((row.n, row.clusters) for row in rows), strict=True))
    return ", ".join(f"{low:,}" if low == high else f"{low:,}–{high:,}" for low, high in ends)
