"""Rows in, scores out, by the rules of the paper or of the released code. Needs no model but the embedder.

All strings of all rows are embedded together, each once; a row that cannot be scored becomes ``{id, error}``.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from eval.create.distance import path_distances
from eval.create.embedding import EmbeddedStrings, Embedder, Vectors, minilm
from eval.create.judging import VALIDITY_RULES, Rules, judge_row
from eval.create.official import judging as official_judging
from eval.create.official import utility as official
from eval.create.official.errors import QuirkError
from eval.create.official.replies import SingleTriple
from eval.create.records import JudgedAnswer
from eval.create.rows import BadRow, Row, RowError
from eval.create.statistics import answer_statistics
from eval.create.strings import path_string
from eval.create.utility import greedy, utility

Result = dict[str, Any]
"""One row of output, ready for JSON."""
PATIENCES = (0.7, 0.9, 1.0)


@dataclass(frozen=True)
class Failure:
    """A row without scores."""

    id: Any
    quirk: str | None
    """Which fault of the released code ends the run here; None where the row itself is faulty."""
    message: str

    def result(self) -> Result:
        return {"id": self.id, "error": {"quirk": self.quirk, "message": self.message}}


@dataclass(frozen=True)
class Mode:
    """How a row is judged, and how its kept paths become a score."""

    name: Literal["paper", "official"]
    judge: Callable[[Row], JudgedAnswer]
    result: Callable[[JudgedAnswer, Vectors, Sequence[float]], Result]


def paper(rules: Rules | None = None) -> Mode:
    """The paper's formulas, by strict rules where it leaves a choice."""
    return Mode("paper", partial(judge_row, rules=rules or Rules()), paper_result)


def released(single_triple: SingleTriple = "error") -> Mode:
    """The released code's values. With ``website`` a path of one triple has its own score, as in published results."""
    return Mode("official", partial(official_judging.judge_row, single_triple=single_triple), official_result)


def score_rows(
    rows: Iterable[Row | BadRow],
    mode: Mode,
    patiences: Sequence[float] = PATIENCES,
    embedder: Callable[[], Embedder] = minilm,
) -> list[Result]:
    """One result per row, in order. `embedder` is only made where two paths are to be compared."""
    judged = [judged_row(row, mode) for row in rows]
    compared = [answer for answer in judged if isinstance(answer, JudgedAnswer) and len(answer.kept) > 1]
    strings = EmbeddedStrings((path_string(path) for answer in compared for path in answer.kept_paths), embedder)
    return [score_judged(answer, strings, mode, patiences) for answer in judged]


def score_judged(
    answer: JudgedAnswer | Failure, strings: EmbeddedStrings, mode: Mode, patiences: Sequence[float]
) -> Result:
    """The result of one row; `strings` has the string of every kept path, where there are two or more."""
    if isinstance(answer, Failure):
        return answer.result()
    return mode.result(answer, kept_vectors(answer, strings), patiences)


def kept_vectors(answer: JudgedAnswer, strings: EmbeddedStrings) -> Vectors:
    """(kept paths, dimensions); of fewer than two paths, which are compared with nothing, zeros."""
    if len(answer.kept) < 2:
        return np.zeros((len(answer.kept), 1), dtype=np.float32)
    return strings.of([path_string(path) for path in answer.kept_paths])


def judged_row(row: Row | BadRow, mode: Mode) -> JudgedAnswer | Failure:
    """What is known of each path of a row, or why the row cannot be scored."""
    if isinstance(row, BadRow):
        return Failure(row.id, None, row.message)
    try:
        return mode.judge(row)
    except QuirkError as error:
        return Failure(row.id, error.quirk, error.message)
    except RowError as error:
        return Failure(row.id, None, str(error))


def paper_result(answer: JudgedAnswer, vectors: Vectors, patiences: Sequence[float]) -> Result:
    """Utility by Σ γ^(i−1) gain, 0 without a kept path; counts that name what became of every candidate."""
    distances = path_distances(vectors)
    found = greedy(answer.kept_strengths, distances)
    return {
        "id": answer.id,
        "mode": "paper",
        "utility": {f"{patience:g}": utility(found.gains, patience) for patience in patiences},
        "kept": answer.kept,
        "order": [answer.kept[place] for place in found.order],
        "gains": found.gains,
        "counts": _counts(answer),
        **answer.details,
        "outcomes": answer.outcomes,
        "statistics": answer_statistics(answer, distances),
    }


def official_result(answer: JudgedAnswer, vectors: Vectors, patiences: Sequence[float]) -> Result:
    """Utility as released: the second path is not discounted, 1 without a kept path."""
    distances = official.path_distances(vectors)
    found = greedy(answer.kept_strengths, distances)
    return {
        "id": answer.id,
        "mode": "official",
        "utility": {f"{patience:g}": official.utility(found.gains, patience) for patience in patiences},
        "kept": answer.kept,
        "order": [answer.kept[place] for place in found.order],
        "scores": found.gains,
        **{f"cumulative_{patience:g}": official.cumulative(found.gains, patience) for patience in patiences},
        "pairwise_distance_average": official.mean_distance(distances),
        "counts": _counts(answer),
        **answer.details,
    }


def _counts(answer: JudgedAnswer) -> dict[str, Any]:
    counts: dict[str, Any] = {
        "candidates": len(answer.paths) + len(answer.rejected),
        "parsed": len(answer.paths),
        "valid": sum(value == 1 for value in answer.details["validity"]),
    }
    if "valid_strict" in answer.details:
        counts["checked"] = counts["parsed"]
        counts.update({name: sum(answer.details[name]) for name in (f"valid_{rule}" for rule in VALIDITY_RULES)})
    return {**counts, "kept": len(answer.kept), "lost": answer.lost}
