"""Recorded replies of an evaluator → scored triples to learn from, split by query.

    python -m eval create triples --replies FILE --queries FILE --answers FILE --out runs/create_triples

Every triple of a query is one row, however many paths hold it, with the mean of its scores. Triples that also occur in
a held-out query are left out of training.
"""

import csv
import io
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from statistics import fmean
from typing import Any

from eval.create.evaluators.kinds import FACTUALITY, SPECIFICITY
from eval.create.factuality import read_labels
from eval.create.normal import normalised, normalised_path
from eval.create.parsing import parse_answer
from eval.create.records import Triple
from eval.create.specificity import read_sizes
from eval.create.triples import COLUMNS, connection, triple_text
from eval.create.validity import check_path
from inference.errors import UserError, named_list
from inference.files import read_json_lines, write_text

PARTS = ("train", "validation", "test")
HEADER = ("id", COLUMNS.scenario, COLUMNS.response, "specificity", "factuality", "judgements")
FEWEST_QUERIES = 3
Key = tuple[str, ...]
Cased = Mapping[tuple[str, str], Mapping[tuple[Key, ...], Sequence[Triple]]]


@dataclass
class ScoredTriple:
    """A triple of one query with all that an evaluator said of it."""

    query_id: str
    triple: Triple
    specificity: list[int] = field(default_factory=list)
    factuality: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class TripleSplit:
    """Scored triples by part, and what was left out."""

    parts: dict[str, list[ScoredTriple]]
    queries: dict[str, list[str]]
    unreadable: int
    """Paths with a faulty triple, or without readable replies of both judgements."""
    repeated: int
    """Triples left out of training because a held-out query has them."""


def write_triples(
    replies: Path,
    queries: Path,
    answers: Path | None,
    out: Path,
    *,
    test_share: float,
    validation_share: float,
    seed: int,
) -> list[str]:
    """Write ``train.csv``, ``validation.csv`` and ``test.csv`` to `out`; one line on each, and on what was left out.

    `answers`: the raw answers, from which triples get back the case that recorded paths have lost.
    Raises UserError for files without the needed keys, and fewer than three queries.
    """
    ends = read_connections(queries)
    triples, unreadable = scored_triples(replies, ends, read_cased(answers) if answers else {})
    found = split_triples(triples, unreadable, test_share=test_share, validation_share=validation_share, seed=seed)
    lines, contents = [], {part: _csv(found.parts[part], ends) for part in PARTS}
    for part in PARTS:
        write_text(out / f"{part}.csv", contents[part])
        lines.append(f"{out / part}.csv: {len(found.parts[part])} triples of {named_list(found.queries[part])}")
    return [
        *lines,
        f"left out: {found.unreadable} paths with a faulty triple or reply, {found.repeated} triples of training "
        "queries that a held-out query has, too",
    ]


def read_connections(path: Path) -> dict[str, str]:
    """Query id → what it connects, of a JSONL file of queries."""
    return {
        row["query_id"]: connection(row["entity_a"], row["entity_b"])
        for row in _needed(path, ("query_id", "entity_a", "entity_b"))
    }


def read_cased(path: Path) -> Cased:
    """(query id, model) → paths of the answer, by what they are without case."""
    return {
        (row["query_id"], row["model"]): {normalised_path(found): found for found in parse_answer(row["answer"]).paths}
        for row in _needed(path, ("query_id", "model", "answer"))
    }


def scored_triples(path: Path, ends: Mapping[str, str], cased: Cased) -> tuple[list[ScoredTriple], int]:
    """The triples of recorded paths in order, each once per query, and the number of paths without readable replies."""
    found: dict[tuple[str, Key], ScoredTriple] = {}
    unreadable = 0
    for row in _needed(path, ("query_id", "path", SPECIFICITY.recorded_key, FACTUALITY.recorded_key)):
        query = row["query_id"]
        if query not in ends:
            raise UserError(f"{path}: the query {named_list([query])} is not among the {len(ends)} queries given")
        scores = _scores(row)
        if scores is None:
            unreadable += 1
            continue
        triples = cased.get((query, str(row.get("model"))), {}).get(normalised_path(row["path"]), row["path"])
        for triple, specificity, factuality in zip(triples, *scores, strict=True):
            key = query, tuple(map(normalised, triple))
            entry = found.setdefault(key, ScoredTriple(query, tuple(triple)))
            entry.specificity.append(specificity)
            entry.factuality.append(factuality)
    return list(found.values()), unreadable


def split_triples(
    triples: Sequence[ScoredTriple], unreadable: int, *, test_share: float, validation_share: float, seed: int
) -> TripleSplit:
    """Whole queries to each part, at least one, drawn with `seed`."""
    queries = sorted({triple.query_id for triple in triples})
    if len(queries) < FEWEST_QUERIES:
        raise UserError(
            f"readable replies on {len(queries)} queries; training, validation and test need one query each at least"
        )
    random.Random(seed).shuffle(queries)
    test = min(max(1, round(test_share * len(queries))), len(queries) - 2)
    validation = min(max(1, round(validation_share * len(queries))), len(queries) - test - 1)
    of_part = {
        "train": sorted(queries[test + validation :]),
        "validation": sorted(queries[test : test + validation]),
        "test": sorted(queries[:test]),
    }
    parts = {part: [triple for triple in triples if triple.query_id in of_part[part]] for part in PARTS}
    held_out = {_key(triple) for part in PARTS[1:] for triple in parts[part]}
    kept = [triple for triple in parts["train"] if _key(triple) not in held_out]
    return TripleSplit({**parts, "train": kept}, of_part, unreadable, len(parts["train"]) - len(kept))


def _key(triple: ScoredTriple) -> Key:
    return tuple(map(normalised, triple.triple))


def _scores(row: Mapping[str, Any]) -> tuple[list[int], list[int]] | None:
    """Specificity and factuality of each triple; None where a reply, or the path itself, is not in order."""
    path = row["path"]
    if not _of_texts(path) or "bad_triple" in check_path(path, "", "").reasons:
        return None
    replies = [row[kind.recorded_key] for kind in (SPECIFICITY, FACTUALITY)]
    sizes, labels = (reply if isinstance(reply, str) else None for reply in replies)
    specificity, factuality = read_sizes(sizes, len(path)), read_labels(labels, len(path))
    if specificity.status != "ok" or factuality.status != "ok":
        return None
    return [s for s in specificity.scores if s is not None], [label for label in factuality.labels if label is not None]


def _of_texts(path: Any) -> bool:
    """Whether all parts are texts that a file can hold: half a surrogate pair is none."""
    if not isinstance(path, list) or not all(isinstance(triple, list) for triple in path):
        return False
    parts = [part for triple in path for part in triple]
    return all(isinstance(part, str) and part == part.encode("utf-8", "ignore").decode() for part in parts)


def _csv(triples: Sequence[ScoredTriple], ends: Mapping[str, str]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADER)
    for entry in triples:
        shown = triple_text(entry.triple)
        identifier = f"{entry.query_id}-{sha256(shown.encode()).hexdigest()[:12]}"
        means = (f"{fmean(values):.4g}" for values in (entry.specificity, entry.factuality))
        writer.writerow((identifier, ends[entry.query_id], shown, *means, len(entry.specificity)))
    return text.getvalue()


def _needed(path: Path, keys: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The rows of a JSONL file. Raises UserError where one lacks a key, or one that is no text where it has to be."""
    for number, row in read_json_lines(path):
        missing = [key for key in keys if key not in row]
        texts = [key for key in ("query_id", "entity_a", "entity_b", "model", "answer") if key in keys]
        missing += [key for key in texts if key in row and not isinstance(row[key], str)]
        if missing:
            raise UserError(
                f"{path}: line {number} has no {named_list(missing)}, or no text there; it needs {named_list(keys)}"
            )
        yield row
