"""Ratings and evaluators' scores from CSV files, and the validation as a table."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np
from rich.markup import escape
from rich.table import Table

from eval.agreement import Array
from eval.create.validation import Ratings, ValidationRow
from eval.tables import MISSING, number
from inference.errors import UserError, named_list, quoted
from inference.files import plain_number, read_csv

Rows = dict[str, dict[str, str]]
"""Id → row."""
SCORE_ENDING = "_value"
"""Of the columns of a run's ``scores.csv`` that hold a judge's expected scores."""


def read_ratings(
    path: Path, raters: Sequence[str], judges: Sequence[str], scores: Sequence[Path], cluster: str
) -> Ratings:
    """Rows of `path` with the columns ``id``, `cluster` and `raters`; `judges` are columns of it or of `scores`.

    `scores` are CSV files with a column ``id``, such as ``scores.csv`` of a run; without `judges` all of their columns
    that end in ``_value`` are taken. Empty cells are missing values.

    Raises UserError for missing columns, repeated ids, and cells that are no numbers.
    """
    if not raters or len(set(raters)) < len(raters):
        raise UserError(f"--raters: {named_list(raters) or 'nothing'}; name one column or more, each once")
    tables = {path: _rows(path, ["id", cluster, *raters]), **{file: _rows(file, ["id"]) for file in scores}}
    own, places = tables[path], _places(tables, {"id", cluster, *raters})
    chosen = list(judges) or [name for name, file in places.items() if file != path and name.endswith(SCORE_ENDING)]
    missing = [name for name in chosen if name not in places]
    if missing or not chosen:
        raise UserError(
            f"--judges: no column {named_list(missing) or 'is named'}; there are {named_list(places) or 'no others'}"
        )
    return Ratings(
        clusters=[row[cluster] for row in own.values()],
        raters={name: _column(path, own, own, name) for name in raters},
        judges={
            name.removesuffix(SCORE_ENDING): _column(places[name], tables[places[name]], own, name) for name in chosen
        },
    )


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


def validation_table(rows: Sequence[ValidationRow]) -> Table:
    """One line per value, with its interval."""
    table = Table(title=f"{rows[0].what}: agreement, 95 % intervals by query", title_justify="left")
    for name in ("judge", "rater"):
        table.add_column(name, overflow="fold")
    table.add_column("metric", no_wrap=True)
    for name in ("value", "low", "high", "p", "n", "queries"):
        table.add_column(name, justify="right")
    for row in rows:
        values = (MISSING if value is None else number(value) for value in (row.value, row.low, row.high, row.p))
        table.add_row(escape(row.judge), escape(row.rater), row.metric, *values, str(row.n), str(row.clusters))
    return table
