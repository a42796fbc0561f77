"""One row as the released code chains its functions."""

from collections.abc import Sequence
from typing import Any

from eval.create.normal import is_number
from eval.create.official.errors import QuirkError
from eval.create.official.parsing import parse_answer, parse_samples
from eval.create.official.replies import SingleTriple, is_factual, label_scores, path_strength, size_scores
from eval.create.official.validity import stored_validity
from eval.create.records import KEPT, JudgedAnswer
from eval.create.rows import Row

LARGEST = 1_000_000
"""Of recorded strengths and labels: sums and squares of them have to stay finite."""


def judge_row(row: Row, single_triple: SingleTriple = "error") -> JudgedAnswer:
    """What the released code knows of each path; lists are cut to the shortest (Q31). Raises QuirkError."""
    paths = _paths(row)
    validity = _validity(row, paths)
    sizes = [size_scores(reply) for _, reply in zip(paths, row.class_size_responses or [], strict=False)]
    strengths = _given("strengths", row.strengths, [path_strength(scores, single_triple) for scores in sizes])
    replies = zip(paths, row.factuality_responses or [], strict=False)
    labels = _given("factuality", row.factuality, [label_scores(reply) for _, reply in replies], lists=True)
    if validity is None:
        if len({len(paths), len(strengths), len(labels)}) > 1:
            raise QuirkError("Q31", "paths, strengths and factuality differ in length, and there is no validity")
        validity = [1] * len(paths)
    n = min(len(paths), len(validity), len(strengths), len(labels))
    outcomes = tuple(_outcome(validity[i], labels[i], row.factuality_threshold) for i in range(n))
    details: dict[str, Any] = {"parsed": paths, "validity": validity, "strengths": strengths, "factuality": labels}
    if row.strengths is None:
        details["size_scores"] = sizes
    return JudgedAnswer(row.id, tuple(_tupled(path) for path in paths[:n]), tuple(strengths[:n]), outcomes, (), details)


def _paths(row: Row) -> list[Any]:
    if row.answer_key == "paths":
        return row.paths or []
    if row.answer_key == "path_prediction":
        return parse_samples(row.path_prediction)
    if row.raw is None:
        raise QuirkError("Q14", "the answer is missing")
    return parse_answer(row.raw) or []


def _validity(row: Row, paths: Sequence[Any]) -> list[Any] | None:
    """As recorded, else from the two entities; None for recorded strengths without either."""
    if row.validity is not None:
        return list(row.validity)
    if row.entity_a is not None and row.entity_b is not None:
        return [stored_validity(path, row.entity_a, row.entity_b) for path in paths]
    if row.strengths is None:
        raise QuirkError("Q15", "the row lacks entity_a or entity_b")
    return None


def _given(name: str, recorded: list[Any] | None, read: list[Any], *, lists: bool = False) -> list[Any]:
    """What is recorded, else what was read. Raises QuirkError for other things than numbers or, with `lists`, lists."""
    if recorded is None:
        return read
    for value in recorded:
        for number in value if lists and isinstance(value, list) else [value]:
            if not isinstance(number, bool) and not (is_number(number) and 0 <= number <= LARGEST):
                raise QuirkError("", f"{name} holds {str(number)[:60]!r}, which is no number from 0 to {LARGEST:,}")
    return list(recorded)


def _outcome(validity: Any, labels: Any, threshold: float) -> str:
    try:
        valid = float(validity) == 1
    except (TypeError, ValueError, OverflowError):
        raise QuirkError("Q20", f"no number can be made of the validity {str(validity)[:60]!r}") from None
    if not valid:
        return "invalid"
    return KEPT if is_factual(labels if isinstance(labels, list) else [labels], threshold) else "hallucinated"


def _tupled(path: Any) -> tuple[Any, ...]:
    return tuple(path) if isinstance(path, (list, tuple)) else (path,)
