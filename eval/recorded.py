"""Scores of judges that were recorded earlier: CSV in, judgements out, and back.

One line per sample: ``id``, then ``<judge>_top`` and ``<judge>_value`` (or ``<judge>_weighted``) for each judge, or a
bare column ``<judge>`` where both are the same. With several dimensions the name of the dimension stands before the
ending: ``<judge>_<step>.<dimension>_top``; sums without a column are computed. An empty cell is a missing score;
columns ``…_unscored`` with the reasons, as ``python -m inference judge`` writes them, are passed over. No texts, so a
file of scores can be published where the responses can't, and every table can be computed again from it.

Published scores are taken as they were published: single scores off the rubric's scale are kept and reported, since the
published metrics count them. A judge with more of them than `OFF_SCALE_SHARE` is on another scale and refused.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from eval.benchmarks.cgpst.score_json import read_scores
from eval.rows import HUMAN_HUMAN, MEAN_OF_JUDGES
from inference.aggregation import aggregate
from inference.config import StrictModel
from inference.errors import UserError, named, named_list, quoted
from inference.files import plain_number, read_csv
from inference.records import Judgement, Sample, Score
from inference.rubric import Dimension, Rubric, Step
from inference.score_file import UNSCORED_ENDING

METHOD = "recorded"
UNSCORED = "no recorded score"
_VALUE_ENDINGS = ("_value", "_weighted")
_SHOWN = 5
OFF_SCALE_SHARE = 0.01
"""Largest share of a judge's scores that may lie off the scale."""
MOST_OFF = 100
"""Scores farther off the scale than so many times its width are slips of writing, and refused."""


class RecordedConfig(StrictModel):
    """One entry of ``recorded:`` in an evaluation config."""

    file: str
    """CSV as described above, or JSON in the layout of the CGPST scripts, whose judge is named by the file."""
    judges: tuple[str, ...] | None = Field(default=None, min_length=1)
    """The judges wanted, at least one. Default: all of the file, whose scores then have to be on the rubric's scale."""


@dataclass(frozen=True)
class Recorded:
    """What a file of scores gave."""

    judgements: list[Judgement]
    """Judge by judge in the file's order, one per sample in the order of the samples."""
    notes: list[str]
    """Sentences to show the user: ids that are not among the samples, samples without a line or a score."""


_Columns = dict[str, dict[str, tuple[str, str]]]
"""Judge → "step.dimension" → (column of top, column of value)."""
_Lines = dict[str, tuple[int, dict[str, str]]]
"""Id → (line number, row)."""


def read_recorded(
    path: Path | str, samples: Sequence[Sample], rubric: Rubric, judges: Sequence[str] | None = None
) -> Recorded:
    """Judgements (method "recorded") of all judges in the file, or of `judges`.

    Raises UserError for an unreadable file, repeated ids, an unknown judge or dimension, cells that are no numbers, a
    judge on another scale, and a column without its partner.
    """
    path = Path(path)
    if path.suffix == ".json":
        return _read_official(path, samples, rubric, judges)
    header, lines = _read(path)
    columns = _wanted(path, _judge_columns(path, header, rubric), judges)
    known = {sample.id for sample in samples}
    if known.isdisjoint(lines):
        raise UserError(
            f"{path}: none of its ids is among the samples; these scores belong to another set of responses"
        )
    notes = _count_note(path, "ids that are not among the samples", [name for name in lines if name not in known])
    notes += _count_note(path, "samples without a line", [sample.id for sample in samples if sample.id not in lines])
    judgements = []
    for judge, of_judge in columns.items():
        scores, found = _scores(path, judge, of_judge, lines, rubric)
        notes += found
        missing = _answers(rubric)
        judgements += [
            Judgement(
                sample_id=sample.id,
                judge=judge,
                method=METHOD,
                rubric=f"{rubric.name}@{rubric.digest}",
                scores=aggregate(rubric, scores.get(sample.id, missing)),
            )
            for sample in samples
        ]
    return Recorded(judgements, notes)


def _read_official(path: Path, samples: Sequence[Sample], rubric: Rubric, judges: Sequence[str] | None) -> Recorded:
    """One judge from the score file of the CGPST scripts."""
    judge = path.stem.removesuffix("_scores")
    _wanted(path, {judge: {}}, judges)
    found = {judgement.sample_id: judgement for judgement in read_scores(path, rubric, judge)}
    known = {sample.id for sample in samples}
    if known.isdisjoint(found):
        raise UserError(
            f"{path}: none of its ids is among the samples; these scores belong to another set of responses"
        )
    notes = _count_note(path, "ids that are not among the samples", [name for name in found if name not in known])
    notes += _count_note(path, "samples without scores", [sample.id for sample in samples if sample.id not in found])
    missing = Judgement(
        sample_id="",
        judge=judge,
        method=METHOD,
        rubric=f"{rubric.name}@{rubric.digest}",
        scores=aggregate(rubric, _answers(rubric)),
    )
    return Recorded([found.get(s.id, missing.model_copy(update={"sample_id": s.id})) for s in samples], notes)


def _read(path: Path) -> tuple[list[str], _Lines]:
    """Header, and the lines."""
    lines: _Lines = {}
    header: list[str] = []
    for number, row in read_csv(path):
        header = list(row)
        if "id" not in row or len(row) < 2:
            break
        if row["id"] in lines:
            raise UserError(
                f"{path}: line {number} repeats the id {quoted(row['id'], 40)} of line {lines[row['id']][0]}"
            )
        lines[row["id"]] = (number, row)
    if not lines:
        raise UserError(
            f"{path}: needs a column id, columns with judges' scores and a line per sample, found "
            f"{f'the columns {named_list(header)}' if header else 'no line below the header'}"
        )
    return header, lines


def _judge_columns(path: Path, header: Sequence[str], rubric: Rubric) -> _Columns:
    """In the order of the header."""
    columns: _Columns = {}
    for name in header:
        if name == "id" or name.endswith(UNSCORED_ENDING):
            continue
        stem, pair = _pair(path, name, header)
        if not stem.strip():
            raise UserError(
                f"{path}: column {header.index(name) + 1} ({name!r}) names no judge; name it, or remove it "
                "(a comma at the end of the header makes such a column)"
            )
        judge, key = _judge_and_key(path, name, stem, rubric)
        if judge in (MEAN_OF_JUDGES, HUMAN_HUMAN):
            raise UserError(f"{path}: column {named(name)}: no judge can be named {judge!r}, as lines of reports are")
        if columns.setdefault(judge, {}).setdefault(key, pair) != pair:
            raise UserError(
                f"{path}: the judge {stem} has both a column of its own and one with an ending; keep one of them"
            )
    return columns


def _pair(path: Path, name: str, header: Sequence[str]) -> tuple[str, tuple[str, str]]:
    """Name without its ending, and the columns of (top, value)."""
    ending = next((end for end in ("_top", *_VALUE_ENDINGS) if name.endswith(end)), None)
    if ending is None:
        return name, (name, name)
    stem = name.removesuffix(ending)
    values = [stem + end for end in _VALUE_ENDINGS if stem + end in header]
    if f"{stem}_top" not in header or len(values) != 1:
        raise UserError(f"{path}: column {name} needs {stem}_top and one of {stem}_value, {stem}_weighted beside it")
    return stem, (f"{stem}_top", values[0])


def _judge_and_key(path: Path, column: str, stem: str, rubric: Rubric) -> tuple[str, str]:
    if rubric.single:
        step, dimension = rubric.asked[0]
        return stem, f"{step.name}.{dimension.name}"
    keys = [f"{step.name}.{dimension.name}" for step, dimension in rubric.scored]
    # The longest: names of steps may hold the ends of others.
    key = max((key for key in keys if stem.endswith(f"_{key}") and len(stem) > len(key) + 1), key=len, default="")
    if not key:
        raise UserError(
            f"{path}: column {named(column)} names no judge and dimension of rubric {rubric.name}; write it like "
            f"judge_{keys[0]}_value, or remove it"
        )
    return stem.removesuffix(f"_{key}"), key


def _wanted(path: Path, columns: _Columns, judges: Sequence[str] | None) -> _Columns:
    if judges is None:
        return columns
    unknown = [judge for judge in judges if judge not in columns]
    if unknown:
        raise UserError(f"{path}: has no judge {', '.join(unknown)}; it has {', '.join(columns)}")
    return {judge: columns[judge] for judge in judges}


def _answers(rubric: Rubric) -> list[Score]:
    """What a file has to hold, unscored: all but sums."""
    return [Score(step=step.name, dimension=dimension.name, unscored=UNSCORED) for step, dimension in rubric.unsummed]


def _scores(
    path: Path, judge: str, columns: Mapping[str, tuple[str, str]], lines: _Lines, rubric: Rubric
) -> tuple[dict[str, list[Score]], list[str]]:
    """Id → scores of a judge without what is derived, and notes."""
    absent = [score for score in _answers(rubric) if score.key not in columns]
    scores: dict[str, list[Score]] = {name: list(absent) for name in lines}
    notes: list[str] = []
    given: list[str] = []
    unscored: dict[str, None] = {}
    for step, dimension in rubric.scored:
        key = f"{step.name}.{dimension.name}"
        if key not in columns:
            continue
        found = {
            name: _score(
                step, dimension, [_number(path, number, column, row[column], dimension) for column in columns[key]]
            )
            for name, (number, row) in lines.items()
        }
        what = judge if rubric.single else f"{judge} on {key}"
        notes += _check_scale(path, what, found, dimension)
        lacking = [name for name, score in found.items() if score.unscored]
        if rubric.single or len(lacking) < len(lines):
            given.append(key)
            unscored |= dict.fromkeys(lacking)
        for name, score in found.items():
            scores[name].append(score)
    notes += _dimension_note(path, judge, given, rubric)
    what = "a score" if rubric.single else "all scores" if len(given) >= len(rubric.unsummed) else "all other scores"
    return scores, notes + _count_note(path, f"lines without {what} of {judge}", list(unscored))


def _dimension_note(path: Path, judge: str, given: Sequence[str], rubric: Rubric) -> list[str]:
    """Which dimensions have no score at all, and whether averages miss them; `given` are those that have."""
    absent = [score.key for score in _answers(rubric) if score.key not in given]
    if not absent:
        return []
    known = [Score(step=step, dimension=name, value=0.0) for step, name in (key.split(".") for key in given)]
    reported = {f"{step.name}.{dimension.name}" for step, dimension in rubric.reported}
    missed = [score.key for score in aggregate(rubric, known) if score.unscored and score.key in reported]
    if missed:
        effect = f"so averages that need {named_list(missed)} are missing"
    else:
        effect = "averages need only the reported dimensions, and those are there"
    return [f"{path}: {judge} has no scores for {named_list(absent)}; {effect}"]


def _number(path: Path, line: int, column: str, cell: str, dimension: Dimension) -> float | None:
    if not cell.strip():
        return None
    value, place = plain_number(cell), f"{path}: line {line}, column {named(column)}"
    if value is None:
        raise UserError(f"{place}: {quoted(cell, 40)} is not a number; leave missing scores empty")
    low, high = dimension.range
    if not low - MOST_OFF * (high - low) <= value <= high + MOST_OFF * (high - low):
        raise UserError(
            f"{place}: {quoted(cell, 20)} is farther from the scale {low} to {high} than {MOST_OFF} times its width; "
            "correct it, or list the judges that are on the scale under `judges:`"
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
