"""Responses in rows, of CSV and JSONL files or of a request, as samples. The project's only reader of them."""

import hashlib
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from inference.config import StrictModel
from inference.errors import UserError, named_list, quoted
from inference.files import plain_number, read_csv, read_json_lines
from inference.records import Sample
from inference.rubric import Rubric

SHOWN_FAULTS = 5
_KINDS: dict[type, str] = {dict: "an object", list: "a list", bool: "true or false"}


class Columns(StrictModel):
    """Which column holds what."""

    id: str = "id"
    """Unless it is named here it may be missing in the file: then the id is made from the content."""
    scenario: str = "scenario"
    response: str = "response"
    """Of rubrics with one step."""
    responses: dict[str, str] = {}
    """Step → column of its response. Default, with several steps: columns with the steps' names, or their labels."""
    scores: dict[str, str] = {}
    """"step.dimension" → column of the human score. Default: columns of these names or, where only one step has the
    dimension, named by the dimension alone, if there."""


def read_samples(
    path: Path | str, rubric: Rubric, columns: Columns | None = None, *, rated: bool = False
) -> list[Sample]:
    """All rows of a ``.csv`` or ``.jsonl`` file (UTF-8) as samples, in file order.

    With `rated` every row needs its human scores. Empty responses are kept: judging them is the method's business.
    Rows without an id that have equal contents get numbered ids, in file order.
    Raises UserError, with the rows, for missing or repeated columns, cells that are no text or number, repeated ids,
    scores that are no numbers or off the scale.
    """
    path = Path(path)
    rows = list(_rows(path))
    if not rows:
        raise UserError(f"{path}: no rows; a header line and at least one response are needed")
    return samples_of(rows, str(path), rubric, columns or Columns(), rated=rated)


def samples_of(
    rows: list[tuple[str, dict[str, Any]]], source: str, rubric: Rubric, columns: Columns, *, rated: bool = False
) -> list[Sample]:
    """At least one row, each with its place, as samples. The errors of `read_samples` name `source` and the places."""
    response_columns = _response_columns(rubric, columns, rows[0][1])
    score_columns = _score_columns(rubric, columns, rows[0][1], rated=rated)
    named_id = [columns.id] if "id" in columns.model_fields_set else []
    needed = [*named_id, columns.scenario, *response_columns.values()]
    _check_columns(source, rubric, rows[0], [*needed, *score_columns.values()])
    faults = [f"{place} has no {named_list([name])}" for place, row in rows[1:] for name in needed if name not in row]
    used = {columns.id, columns.scenario, *response_columns.values(), *score_columns.values()}
    faults += [fault for place, row in rows for fault in _cell_faults(place, row, used)]
    faults += [f"{place} has no id" for place, row in rows if named_id and not _text(row.get(columns.id))]
    made: Counter[str] = Counter()
    samples = [
        _sample(place, row, rubric, columns, response_columns, score_columns, faults, made, rated=rated)
        for place, row in rows
    ]
    _check_ids(samples, [place for place, _ in rows], faults)
    if faults:
        more = f" (and {len(faults) - SHOWN_FAULTS} more)" if len(faults) > SHOWN_FAULTS else ""
        raise UserError(f"{source}: {'; '.join(faults[:SHOWN_FAULTS])}{more}")
    return samples


def _rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """(place, row) for each row; the place names the line for messages."""
    if path.suffix not in (".csv", ".jsonl"):
        raise UserError(f"{path}: the name has to end in .csv or .jsonl")
    rows = read_csv(path) if path.suffix == ".csv" else read_json_lines(path)
    for number, row in rows:
        yield f"line {number}", row


def _response_columns(rubric: Rubric, columns: Columns, row: dict[str, Any]) -> dict[str, str]:
    """Step → column, of the steps with a response."""
    names = [step.name for step in rubric.answered]
    unknown = [name for name in columns.responses if name not in names]
    if unknown:
        raise UserError(
            f"columns.responses: the rubric {rubric.name} has no step {named_list(unknown)} with a response; "
            f"it has {named_list(names)}"
        )
    if len(names) == 1:
        return {names[0]: columns.response} | columns.responses
    if "response" in columns.model_fields_set:
        raise UserError(
            f"columns.response: the rubric {rubric.name} has a response for each of {named_list(names)}; "
            f"write `responses: {{{names[0]}: COLUMN, …}}`"
        )
    labels = {step.name: step.label for step in rubric.answered if step.name not in row and step.label in row}
    return {name: name for name in names} | labels | columns.responses


def _score_columns(rubric: Rubric, columns: Columns, row: dict[str, Any], *, rated: bool) -> dict[str, str]:
    names = Counter(dimension.name for _, dimension in rubric.scored)
    keys = {}
    for step, dimension in rubric.scored:
        key = f"{step.name}.{dimension.name}"
        # A name that several steps have says nothing of whose score it is.
        keys[key] = key if key in row or names[dimension.name] > 1 else dimension.name
    if columns.scores:
        unknown = sorted(set(columns.scores) - set(keys))
        if unknown:
            raise UserError(
                f"columns.scores: {unknown} are no step.dimension of rubric {rubric.name}; it has {sorted(keys)}"
            )
        return columns.scores
    return keys if rated else {key: name for key, name in keys.items() if name in row}


def _check_columns(source: str, rubric: Rubric, first: tuple[str, dict[str, Any]], needed: list[str]) -> None:
    place, row = first
    missing = [name for name in needed if name not in row]
    if missing:
        step = next((step.name for step in rubric.answered if step.name in missing), "")
        mapped = f", as in `columns: {{responses: {{{step}: COLUMN}}}}`" if step else ""
        raise UserError(
            f"{source}: missing column{'s' if len(missing) > 1 else ''} {named_list(missing)}; {place} has "
            f"{named_list(row)}. Rename them, or say which column is which under `columns:` in the config{mapped}"
        )


def _sample(
    place: str,
    row: dict[str, Any],
    rubric: Rubric,
    columns: Columns,
    response_columns: dict[str, str],
    score_columns: dict[str, str],
    faults: list[str],
    made: Counter[str],
    *,
    rated: bool,
) -> Sample:
    responses = {step: _text(row.get(column)) for step, column in response_columns.items()}
    scenario = _text(row.get(columns.scenario))
    identifier = _text(row.get(columns.id)) or _made_id(rubric, [scenario, *responses.values()], made)
    human = {}
    for step, dimension in rubric.scored:
        key = f"{step.name}.{dimension.name}"
        cell = _text(row.get(score_columns[key])).strip() if key in score_columns else ""
        if not cell:
            if rated:
                faults.append(f"{place} has no {dimension.name} rating")
            continue
        rating = plain_number(cell)
        low, high = dimension.range
        if rating is None:
            faults.append(f"{place}: the {dimension.name} rating {quoted(cell, 40)} is not a number")
        elif not low <= rating <= high:
            faults.append(f"{place}: the {dimension.name} rating {cell[:40]} is off the scale {low} to {high}")
        else:
            human[key] = rating
    return Sample(id=identifier, scenario=scenario, responses=responses, human={"human": human} if human else {})


def _made_id(rubric: Rubric, content: list[str], made: Counter[str]) -> str:
    digest = hashlib.sha1("\t".join(content).encode()).hexdigest()[:12]
    made[digest] += 1
    return f"{rubric.name}-{digest}" + (f"-{made[digest]}" if made[digest] > 1 else "")


def _cell_faults(place: str, row: dict[str, Any], used: set[str]) -> Iterator[str]:
    """Cells of JSON lines that would become text only by way of Python's notation."""
    for name in sorted(used & row.keys()):
        cell = row[name]
        kind = _KINDS.get(type(cell))
        if isinstance(cell, float) and not math.isfinite(cell):
            kind = "no finite number"
        if kind:
            yield f"{place}: the {named_list([name])} is {kind}; text or a number is needed"


def _text(cell: Any) -> str:
    """A cell as text; half a surrogate pair, which no engine could be sent, becomes the replacement character."""
    return "" if cell is None else str(cell).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _check_ids(samples: list[Sample], places: list[str], faults: list[str]) -> None:
    seen: dict[str, str] = {}
    for sample, place in zip(samples, places, strict=True):
        if sample.id in seen:
            faults.append(f"{place} repeats the id {quoted(sample.id, 40)} of {seen[sample.id]}")
        else:
            seen[sample.id] = place
