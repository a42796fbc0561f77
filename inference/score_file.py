"""``scores.csv``: judges' scores by sample id, without texts. Written by judging, evaluation and training alike."""

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean

from inference.errors import UserError
from inference.files import write_text
from inference.records import Judgement, Sample, Score
from inference.rubric import Rubric


def write_scores(path: Path | str, samples: Sequence[Sample], rubric: Rubric, judgements: Iterable[Judgement]) -> None:
    """Write one row per sample: ``id``, then per judge ``<judge>_value``, ``<judge>_top`` and ``<judge>_unscored``.

    With several dimensions the columns are ``<judge>_<step>.<dimension>_value`` and so on. Six decimals; repeats are
    averaged. Without a score the cells are empty and ``…_unscored`` holds the reason.
    Raises UserError where two methods share the name of a judge, or the file cannot be written.
    """
    path = Path(path)
    found = _by_judge(judgements, path)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    endings = ("value", "top", "unscored")
    names = [_prefix(judge, key, rubric) for judge in found for key in _keys(rubric)]
    writer.writerow(["id", *(f"{name}_{ending}" for name in names for ending in endings)])
    for sample in samples:
        cells = [cell for scores in found.values() for key in _keys(rubric) for cell in _cells(scores, sample.id, key)]
        writer.writerow([sample.id, *cells])
    write_text(path, text.getvalue())


_Scores = dict[tuple[str, str], list[Score]]
"""(sample id, "step.dimension") → the scores of all repeats."""


def _by_judge(judgements: Iterable[Judgement], path: Path) -> dict[str, _Scores]:
    methods: dict[str, str] = {}
    found: dict[str, _Scores] = {}
    for judgement in judgements:
        if methods.setdefault(judgement.judge, judgement.method) != judgement.method:
            raise UserError(f"{path}: two methods share the judge name {judgement.judge}; give each a name of its own")
        for score in judgement.scores:
            found.setdefault(judgement.judge, {}).setdefault((judgement.sample_id, score.key), []).append(score)
    return found


def _keys(rubric: Rubric) -> list[str]:
    return [f"{step.name}.{dimension.name}" for step, dimension in rubric.scored]


def _prefix(judge: str, key: str, rubric: Rubric) -> str:
    return judge if len(rubric.scored) == 1 else f"{judge}_{key}"


def _cells(scores: _Scores, sample: str, key: str) -> tuple[str, str, str]:
    repeats = scores.get((sample, key), [])
    pairs = [(s.value, s.value if s.top is None else s.top) for s in repeats if s.value is not None]
    if not pairs:
        return "", "", (repeats[0].unscored or "" if repeats else "not judged")
    return f"{fmean(value for value, _ in pairs):.6f}", f"{fmean(top for _, top in pairs):.6f}", ""
