"""Scores of judges that were recorded earlier: CSV in, judgements out, and back.

One line per sample: ``id``, then ``<judge>_top`` and ``<judge>_value`` (or ``<judge>_weighted``) for each judge, or a
bare column ``<judge>`` where both are the same. An empty cell is a missing score; columns ``<judge>_unscored`` with the
reasons, as ``python -m inference judge`` writes them, are passed over. No texts, so a file of scores can be published
where the responses can't, and every table can be computed again from it.

Published scores are taken as they were published: single scores off the rubric's scale are kept and reported, since the
published metrics count them. A judge with more of them than `OFF_SCALE_SHARE` is on another scale and refused.
"""

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from inference.config import StrictModel
from inference.errors import UserError
from inference.records import Judgement, Sample, Score
from inference.rubric import Dimension, Rubric, Step

METHOD = "recorded"
UNSCORED = "no recorded score"
_VALUE_ENDINGS = ("_value", "_weighted")
_REASON_ENDING = "_unscored"
_SHOWN = 5
OFF_SCALE_SHARE = 0.01
"""Largest share of a judge's scores that may lie off the scale."""


class RecordedConfig(StrictModel):
    """One entry of ``recorded:`` in an evaluation config."""

    file: str
    judges: tuple[str, ...] | None = Field(default=None, min_length=1)
    """The judges wanted, at least one. Default: all of the file, whose scores then have to be on the rubric's scale."""


@dataclass(frozen=True)
class Recorded:
    """What a file of scores gave."""

    judgements: list[Judgement]
    """Judge by judge in the file's order, one per sample in the order of the samples."""
    notes: list[str]
    """Sentences to show the user: ids that are not among the samples, samples without a line or a score."""


def read_recorded(
    path: Path | str, samples: Sequence[Sample], rubric: Rubric, judges: Sequence[str] | None = None
) -> Recorded:
    """Judgements (method "recorded") of all judges in the file, or of `judges`.

    Raises UserError for an unreadable file, repeated ids, an unknown judge, cells that are no numbers, a judge on
    another scale, a column without its partner, and rubrics with more than one dimension (the form holds one score).
    """
    path = Path(path)
    step, dimension = _only_dimension(rubric, path)
    header, lines = _read(path)
    columns = _wanted(path, _judge_columns(path, header), judges)
    known = {sample.id for sample in samples}
    if known.isdisjoint(lines):
        raise UserError(
            f"{path}: none of its ids is among the samples; these scores belong to another set of responses"
        )
    notes = _count_note(path, "ids that are not among the samples", [name for name in lines if name not in known])
    notes += _count_note(path, "samples without a line", [sample.id for sample in samples if sample.id not in lines])
    judgements = []
    for judge, pair in columns.items():
        scores = {
            name: _score(step, dimension, [_number(path, number, column, row[column]) for column in pair])
            for name, (number, row) in lines.items()
        }
        notes += _check_scale(path, judge, scores, dimension)
        notes += _count_note(
            path, f"lines without a score of {judge}", [name for name in scores if scores[name].unscored]
        )
        missing = Score(step=step.name, dimension=dimension.name, unscored=UNSCORED)
        judgements += [
            Judgement(
                sample_id=sample.id,
                judge=judge,
                method=METHOD,
                rubric=f"{rubric.name}@{rubric.digest}",
                scores=(scores.get(sample.id, missing),),
            )
            for sample in samples
        ]
    return Recorded(judgements, notes)


def _only_dimension(rubric: Rubric, path: Path) -> tuple[Step, Dimension]:
    if len(rubric.scored) != 1:
        raise UserError(
            f"{path}: files of recorded scores hold one score per judge, but rubric {rubric.name} has "
            f"{len(rubric.scored)} dimensions; use a rubric with the one dimension that was scored"
        )
    return rubric.scored[0]


def _read(path: Path) -> tuple[list[str], dict[str, tuple[int, dict[str, str]]]]:
    """Header, and id → (line number, row)."""
    lines: dict[str, tuple[int, dict[str, str]]] = {}
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            header = list(reader.fieldnames or [])
            if "id" not in header or len(header) < 2:
                raise UserError(f"{path}: needs a column id and columns with judges' scores, found {header}")
            if len(set(header)) < len(header):
                raise UserError(f"{path}: two columns have the same name in {header}")
            for row in reader:
                if None in row or None in row.values():
                    raise UserError(f"{path}: line {reader.line_num} has another number of cells than the header")
                if row["id"] in lines:
                    raise UserError(
                        f"{path}: line {reader.line_num} repeats the id {row['id']!r} of line {lines[row['id']][0]}"
                    )
                lines[row["id"]] = (reader.line_num, row)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; check the path (it is relative to {Path.cwd()})") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path}: cannot be read as a UTF-8 CSV file ({error})") from None
    return header, lines


def _judge_columns(path: Path, header: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Judge → (column of top, column of value), in the order of the header."""
    columns: dict[str, tuple[str, str]] = {}
    for name in header:
        ending = next((end for end in ("_top", *_VALUE_ENDINGS) if name.endswith(end)), None)
        if name == "id" or name.endswith(_REASON_ENDING):
            continue
        if ending is None:
            pair = (name, name)
        else:
            judge = name.removesuffix(ending)
            values = [judge + end for end in _VALUE_ENDINGS if judge + end in header]
            if f"{judge}_top" not in header or len(values) != 1:
                raise UserError(
                    f"{path}: column {name} needs {judge}_top and one of {judge}_value, {judge}_weighted beside it"
                )
            pair = (f"{judge}_top", values[0])
        judge = name.removesuffix(ending or "")
        if not judge.strip():
            raise UserError(
                f"{path}: column {header.index(name) + 1} ({name!r}) names no judge; name it, or remove it "
                "(a comma at the end of the header makes such a column)"
            )
        if columns.setdefault(judge, pair) != pair:
            raise UserError(
                f"{path}: the judge {judge} has both a column of its own and one with an ending; keep one of them"
            )
    return columns


def _wanted(
    path: Path, columns: dict[str, tuple[str, str]], judges: Sequence[str] | None
) -> dict[str, tuple[str, str]]:
    if judges is None:
        return columns
    unknown = [judge for judge in judges if judge not in columns]
    if unknown:
        raise UserError(f"{path}: has no judge {', '.join(unknown)}; it has {', '.join(columns)}")
    return {judge: columns[judge] for judge in judges}


def _number(path: Path, line: int, column: str, cell: str) -> float | None:
    if not cell.strip():
        return None
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UserError(
            f"{path}: line {line}, column {column}: {cell[:40]!r} is not a number; leave missing scores empty"
        )
    return value


def _score(step: Step, dimension: Dimension, pair: Sequence[float | None]) -> Score:
    """From (top, value). Unscored where one of the two is missing: half a score is a missing score."""
    if None in pair:
        return Score(step=step.name, dimension=dimension.name, unscored=UNSCORED)
    return Score(step=step.name, dimension=dimension.name, top=pair[0], value=pair[1])


def _check_scale(path: Path, judge: str, scores: Mapping[str, Score], dimension: Dimension) -> list[str]:
    low, high = dimension.range
    pairs = {name: (score.top, score.value) for name, score in scores.items() if score.unscored is None}
    off = [name for name, pair in pairs.items() if not all(x is not None and low <= x <= high for x in pair)]
    if len(off) > OFF_SCALE_SHARE * len(pairs):
        raise UserError(
            f"{path}: {len(off)} of {len(pairs)} scores of {judge} are off the scale {low} to {high} "
            f"of {dimension.name}; rescale them, or list the judges that are on the scale under `judges:`"
        )
    return _count_note(path, f"scores of {judge} off the scale {low} to {high}, kept as published", off)


def _count_note(path: Path, what: str, names: Sequence[str]) -> list[str]:
    if not names:
        return []
    more = ", …" if len(names) > _SHOWN else ""
    return [f"{path}: {len(names)} {what}: {', '.join(names[:_SHOWN])}{more}"]
