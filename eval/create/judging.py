"""One row by the rules of the paper: paths, validity, specificity, factuality, and why a path does not count."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_args

from eval.create.factuality import label_reading, read_labels
from eval.create.normal import is_number
from eval.create.official.errors import QuirkError
from eval.create.official.validity import check_path as official_check
from eval.create.parsing import parse_answer, parse_samples
from eval.create.records import KEPT, AnyPath, JudgedAnswer, LabelReading, ParsedAnswer, Validity
from eval.create.rows import Row, RowError
from eval.create.specificity import read_sizes
from eval.create.validity import check_path
from inference.prompts.text import sound

ValidityRule = Literal["strict", "shared", "official"]
VALIDITY_RULES: tuple[ValidityRule, ...] = get_args(ValidityRule)
HIGHEST = 5
T = TypeVar("T")


@dataclass(frozen=True)
class Rules:
    """Switches of the paper's scoring; the defaults are the paper's."""

    validity: ValidityRule = "strict"
    require_relation: bool = False
    """Whether the last relation has to be the one asked for."""
    include_final: bool = False
    """Whether the final triple counts in the specificity."""
    salvage: bool = True
    """Whether the complete paths of an answer that breaks off count."""


@dataclass(frozen=True)
class _Valid:
    """Validity of one path under every rule; None where the row does not say."""

    strict: bool | None
    shared: bool | None
    official: bool | None
    counts: bool
    reasons: tuple[str, ...]
    final_relation: bool | None


def judge_row(row: Row, rules: Rules) -> JudgedAnswer:
    """What is known of each path of a row. Raises RowError where a list is missing or has not one entry per path."""
    parsed, paths = row_paths(row, rules)
    valid = _validity(row, paths, parsed, rules)
    strengths, size_status = _strengths(row, paths, parsed, rules)
    labels = _labels(row, paths, parsed)
    outcomes = tuple(
        _outcome(valid[index], labels[index], strengths[index], size_status[index], row.factuality_threshold)
        for index in range(len(paths))
    )
    details = {
        "parsed": paths,
        "flags": parsed.flags,
        "rejected": [vars(rejected) for rejected in parsed.rejected],
        "validity": [int(one.counts) for one in valid],
        "reasons": [one.reasons for one in valid],
        **({} if row.validity is not None else _by_rule(valid)),
        "strengths": strengths,
        "specificity_status": size_status,
        "factuality": [reading.labels for reading in labels],
        "factuality_status": [reading.status for reading in labels],
        "q": [reading.q for reading in labels],
        **({"sample": parsed.samples} if row.answer_key == "path_prediction" else {}),
    }
    return JudgedAnswer(row.id, paths, strengths, outcomes, parsed.rejected, details)


def row_paths(row: Row, rules: Rules) -> tuple[ParsedAnswer, tuple[AnyPath, ...]]:
    """What is read of a row's answer, and its paths: one entry per path is what lists of judgements need."""
    if row.answer_key == "paths":
        paths = tuple(_given_path(path) for path in row.paths or [])
        return ParsedAnswer(samples=(0,) * len(paths)), paths
    if row.answer_key == "raw":
        parsed = parse_answer(row.raw or "", salvage=rules.salvage)
    else:
        texts = row.path_prediction
        parsed = parse_samples([texts] if isinstance(texts, str) else texts or [], salvage=rules.salvage)
    return parsed, parsed.paths


def _given_path(path: Any) -> AnyPath:
    """A path of the input; what is none becomes a path of one part that is no triple."""
    if not isinstance(path, (list, tuple)):
        return (path,)
    return tuple(tuple(map(_given_part, triple)) if isinstance(triple, (list, tuple)) else triple for triple in path)


def _given_part(part: Any) -> Any:
    return sound(part) if isinstance(part, str) else part


def aligned(name: str, values: Sequence[T], parsed: ParsedAnswer, n: int) -> list[T]:
    """One of `values` per path: they are given for the paths, or for all candidates of the answer."""
    if len(values) == n:
        return list(values)
    if parsed.rejected and len(values) == parsed.candidates:
        return [values[position] for position in parsed.positions]
    rejected = f" (and {len(parsed.rejected)} rejected parts)" if parsed.rejected else ""
    raise RowError(f"{name} has {len(values)} entries for {n} paths{rejected}; it needs one per path, in order")


def _validity(row: Row, paths: Sequence[AnyPath], parsed: ParsedAnswer, rules: Rules) -> list[_Valid]:
    if row.validity is not None:
        return [_recorded(value) for value in aligned("validity", row.validity, parsed, len(paths))]
    if paths and (row.entity_a is None or row.entity_b is None):
        raise RowError("the row has no validity, and no entity_a and entity_b to find it out with; give either")
    return [_checked(path, row, rules) for path in paths]


def _recorded(value: Any) -> _Valid:
    known = value in (0, 1) and isinstance(value, (int, float))
    reasons = () if value == 1 else ("invalid",) if known else ("validity_unreadable",)
    return _Valid(None, None, None, known and value == 1, reasons, None)


def _checked(path: AnyPath, row: Row, rules: Rules) -> _Valid:
    ends = (row.entity_a or "", row.entity_b or "")
    found: Validity = check_path(path, *ends, row.rel_b)
    try:
        official = official_check(path, *ends).flag == 1
    except QuirkError:
        official = False
    counts, reasons = {
        "strict": (found.strict, found.reasons),
        "shared": (found.shared, found.shared_reasons),
        "official": (official, () if official else ("invalid",)),
    }[rules.validity]
    if "bad_triple" in found.reasons:
        counts, reasons = False, found.reasons
    if rules.require_relation and found.final_relation is False:
        counts, reasons = False, (*reasons, "relation")
    return _Valid(found.strict, found.shared, official, counts, reasons, found.final_relation)


def _strengths(
    row: Row, paths: Sequence[AnyPath], parsed: ParsedAnswer, rules: Rules
) -> tuple[tuple[float | None, ...], list[str]]:
    n = len(paths)
    if row.strengths is not None:
        given = [_strength(value) for value in aligned("strengths", row.strengths, parsed, n)]
        return tuple(given), ["unreadable" if value is None else "ok" for value in given]
    if row.class_size_responses is not None:
        replies = aligned("class_size_responses", row.class_size_responses, parsed, n)
        read = [
            read_sizes(reply, len(path), include_final=rules.include_final)
            for reply, path in zip(replies, paths, strict=True)
        ]
        return tuple(reading.path_score for reading in read), [reading.status for reading in read]
    if paths:
        raise RowError("the row has no class_size_responses and no strengths; give either, one entry per path")
    return (), []


def _strength(value: Any) -> float | None:
    return value if is_number(value) and 0 <= value <= HIGHEST else None


def _labels(row: Row, paths: Sequence[AnyPath], parsed: ParsedAnswer) -> list[LabelReading]:
    n = len(paths)
    if row.factuality is not None:
        lists = aligned("factuality", row.factuality, parsed, n)
        return [
            label_reading([_label(value) for value in given] if isinstance(given, list) else (), len(path))
            for given, path in zip(lists, paths, strict=True)
        ]
    if row.factuality_responses is not None:
        replies = aligned("factuality_responses", row.factuality_responses, parsed, n)
        return [read_labels(reply, len(path)) for reply, path in zip(replies, paths, strict=True)]
    if paths:
        raise RowError("the row has no factuality_responses and no factuality; give either, one entry per path")
    return []


def _label(value: Any) -> int | None:
    return int(value) if isinstance(value, (int, float)) and value in (0, 1) else None


def _outcome(valid: _Valid, labels: LabelReading, strength: float | None, size_status: str, threshold: float) -> str:
    if not valid.counts:
        return valid.reasons[0] if valid.reasons else "invalid"
    if labels.share is None:
        return f"factuality_{labels.status}"
    if labels.share < threshold:
        return "hallucinated"
    return KEPT if strength is not None else f"specificity_{size_status}"


def _by_rule(valid: Sequence[_Valid]) -> dict[str, list[int | None]]:
    flags = {f"valid_{rule}": [_number(getattr(one, rule)) for one in valid] for rule in VALIDITY_RULES}
    return {**flags, "final_relation": [_number(one.final_relation) for one in valid]}


def _number(flag: bool | None) -> int | None:
    return None if flag is None else int(flag)
