"""``scores.csv``: judges' scores by sample id, without texts. Written by judging, evaluation and training alike."""

import csv
import io
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean

from inference.aggregation import aggregate
from inference.errors import UserError
from inference.files import write_text
from inference.records import Judgement, Sample, Score
from inference.rubric import Rubric

UNSCORED_ENDING = "_unscored"
_Pair = tuple[float, float] | None
"""(value, top), repeats averaged; None without a score."""


def write_scores(
    path: Path | str,
    samples: Sequence[Sample],
    rubric: Rubric,
    judgements: Iterable[Judgement],
    *,
    sums: bool = True,
) -> None:
    """Write one row per sample: ``id``, then per judge ``<judge>_value``, ``<judge>_top`` and ``<judge>_unscored``.

    Six decimals; repeats are averaged. Without a score the cells are empty and ``…_unscored`` holds the reason.
    With several dimensions the columns are ``<judge>_<step>.<dimension>_value`` and so on, for all scores of `rubric`,
    with at most eight decimals; ``…_unscored`` is left out where every sample is scored. Without `sums` those are left
    out that are no more than the sums of other columns, which readers compute.
    Raises UserError where two methods share the name of a judge, or the file cannot be written.
    """
    path = Path(path)
    found = _by_judge(judgements, path)
    columns = {"id": [sample.id for sample in samples]}
    for judge, scores in found.items():
        columns |= (
            _single(judge, scores, samples, rubric)
            if rubric.single
            else _several(judge, scores, samples, rubric, sums=sums)
        )
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
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


def _single(judge: str, scores: _Scores, samples: Sequence[Sample], rubric: Rubric) -> dict[str, list[str]]:
    step, dimension = rubric.asked[0]
    key = f"{step.name}.{dimension.name}"
    pairs = [_pair(scores, sample.id, key) for sample in samples]
    return {
        f"{judge}_value": [f"{pair[0]:.6f}" if pair else "" for pair in pairs],
        f"{judge}_top": [f"{pair[1]:.6f}" if pair else "" for pair in pairs],
        f"{judge}{UNSCORED_ENDING}": _reasons(scores, samples, key, pairs),
    }


def _several(
    judge: str, scores: _Scores, samples: Sequence[Sample], rubric: Rubric, *, sums: bool
) -> dict[str, list[str]]:
    keys = [f"{step.name}.{dimension.name}" for step, dimension in rubric.scored]
    pairs = {key: [_pair(scores, sample.id, key) for sample in samples] for key in keys}
    mere = set() if sums else _mere_sums(rubric, pairs)
    columns: dict[str, list[str]] = {}
    for key in (key for key in keys if key not in mere):
        columns[f"{judge}_{key}_value"] = ["" if pair is None else _short(pair[0]) for pair in pairs[key]]
        columns[f"{judge}_{key}_top"] = ["" if pair is None else _short(pair[1]) for pair in pairs[key]]
        reasons = _reasons(scores, samples, key, pairs[key])
        if any(reasons):
            columns[f"{judge}_{key}{UNSCORED_ENDING}"] = reasons
    return columns


def _pair(scores: _Scores, sample: str, key: str) -> _Pair:
    pairs = [
        (s.value, s.value if s.top is None else s.top) for s in scores.get((sample, key), []) if s.value is not None
    ]
    return (fmean(value for value, _ in pairs), fmean(top for _, top in pairs)) if pairs else None


def _reasons(scores: _Scores, samples: Sequence[Sample], key: str, pairs: Sequence[_Pair]) -> list[str]:
    reasons = []
    for sample, pair in zip(samples, pairs, strict=True):
        repeats = scores.get((sample.id, key), [])
        reasons.append("" if pair else (repeats[0].unscored or "") if repeats else "not judged")
    return reasons


def _mere_sums(rubric: Rubric, pairs: dict[str, list[_Pair]]) -> set[str]:
    """The sums that for every sample are what the other columns add up to, or missing where one of these is."""
    mere = {f"{step.name}.{dimension.name}" for step, dimension in rubric.scored if dimension.sum_of}
    while mere:
        others = [key for key in pairs if key not in mere]
        odd = {
            added.key
            for number in range(len(next(iter(pairs.values()))))
            for added in aggregate(rubric, [_score(key, pairs[key][number]) for key in others])
            if added.key in mere and not _same(pairs[added.key][number], added)
        }
        if not odd:
            break
        # Sums of a sum that is written are sums of what is written.
        mere -= odd
    return mere


def _score(key: str, pair: _Pair) -> Score:
    step, dimension = key.split(".")
    if pair is None:
        return Score(step=step, dimension=dimension, unscored="missing")
    return Score(step=step, dimension=dimension, value=pair[0], top=pair[1])


def _same(given: _Pair, added: Score) -> bool:
    if given is None or added.value is None or added.top is None:
        return given is None and added.value is None
    return math.isclose(given[0], added.value, abs_tol=1e-8) and math.isclose(given[1], added.top, abs_tol=1e-8)


def _short(value: float) -> str:
    return f"{value:.8f}".rstrip("0").rstrip(".")
