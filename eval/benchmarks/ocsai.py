"""Upstream's public AUT files (github.com/massivetexts/ocsai, MIT) → the project's CSV files, as bytes.

Responses are kept exactly. Ids depend on the content alone: ``aut-`` + 12 hex digits of sha1(object TAB response).
"""

import csv
import hashlib
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from inference.errors import UserError

JUDGES = ("gpt-4o", "gpt-4o-mini", "ocsai-chatgpt", "ocsai-babbage2", "ocsai-davinci2")
UNSEEN_OBJECTS = ("bottle", "pants", "paperclip", "shovel", "spoon")
"""Test objects of the published split by prompt; its training part is every other object."""

_PROMPT = re.compile(r"AUT Prompt:([^\n]*)\nResponse:(.*)\nScore:\n", re.DOTALL)
_DECIMALS = 6


class Row(NamedTuple):
    """One rated use."""

    id: str
    object: str
    response: str
    originality: str
    """Mean human rating, 1.0 to 5.0, as text with one decimal."""


def read_rated(path: Path) -> list[Row]:
    """Rows of a fine-tuning file, one JSON object a line.

    Form: ``{"prompt": "AUT Prompt:OBJECT\\nResponse:TEXT\\nScore:\\n", "completion": "17"}``. 17 stands for 1.7.
    """
    rows = []
    with path.open(encoding="utf-8", newline="\n") as file:
        for number, line in enumerate(file, start=1):
            place = f"{path.name}: line {number}"
            try:
                record = json.loads(line)
                rating = int(record["completion"])
                prompt = str(record["prompt"])
            except (ValueError, KeyError, TypeError):
                raise UserError(
                    f'{place} is not {{"prompt": text, "completion": "10" to "50"}}: {line[:80]!r}'
                ) from None
            thing, response = split_prompt(prompt, place)
            rows.append(Row(row_id(thing, response), thing, response, f"{rating / 10:.1f}"))
    return rows


def split_prompt(prompt: str, place: str) -> tuple[str, str]:
    """(object, response) of an upstream prompt. `place` names file and line in the UserError."""
    match = _PROMPT.fullmatch(prompt)
    if match is None:
        raise UserError(f"{place}: the prompt is not 'AUT Prompt:OBJECT / Response:TEXT / Score:': {prompt[:80]!r}")
    return match[1], match[2]


def row_id(thing: str, response: str) -> str:
    digest = hashlib.sha1(f"{thing}\t{response}".encode()).hexdigest()
    return f"aut-{digest[:12]}"


def rated_csv(rows: Iterable[Row]) -> bytes:
    return csv_bytes(Row._fields, rows)


def byprompt_train_csv(parts: dict[str, list[Row]]) -> bytes:
    """Training part of the split by unseen objects. `parts`: "train", "val", "test" → rows of the random split."""
    seen = ((*row, name) for name, rows in parts.items() for row in rows if row.object not in UNSEEN_OBJECTS)
    return csv_bytes((*Row._fields, "ocsai1_split"), seen)


def overlap_csv(parts: dict[str, list[Row]]) -> bytes:
    """Near duplicates between the parts of the random split: the same object and nearly the same response.

    kind ``norm``: equal after lower-casing and collapsing blanks; ``alnum``: equal when only letters and digits stay.
    A pair of files is listed once for a row, under the stricter kind that applies.
    """
    columns = ("id", "file", "matches_in", "kind", "n_matches", "first_match_id")
    val, test = parts["val"], parts["test"]
    finders = {name: _finder(parts[name]) for name in ("train", "val")}
    found = [_overlap(row, "val", "train", finders["train"]) for row in val]
    found += [_overlap(row, "test", name, finder) for row in test for name, finder in finders.items()]
    return csv_bytes(columns, [line for line in found if line])


def _overlap(row: Row, file: str, other: str, finder: Callable[[Row], tuple[str, list[str]]]) -> tuple[str, ...]:
    kind, ids = finder(row)
    return (row.id, f"ocsai1_{file}", f"ocsai1_{other}", kind, str(len(ids)), ids[0]) if ids else ()


def _finder(rows: list[Row]) -> Callable[[Row], tuple[str, list[str]]]:
    """A function from a row to (kind, ids of the matching rows of `rows`)."""
    tables: list[tuple[str, Callable[[str], str], dict[tuple[str, str], list[str]]]] = [
        ("norm", _norm, {}),
        ("alnum", _alnum, {}),
    ]
    for _, key, table in tables:
        for row in rows:
            table.setdefault((row.object, key(row.response)), []).append(row.id)

    def find(row: Row) -> tuple[str, list[str]]:
        for kind, key, table in tables:
            if ids := table.get((row.object, key(row.response))):
                return kind, ids
        return "", []

    return find


def _norm(text: str) -> str:
    return " ".join(text.lower().split())


def _alnum(text: str) -> str:
    return "".join(character for character in text.lower() if character.isalnum())


def peers_csv(test: list[Row], predictions: dict[str, Path]) -> tuple[bytes, bytes]:
    """(scores, confidences) of the published judges on the test rows, two columns a judge.

    `predictions`: judge → its file with the columns prompt, ``score_1`` … ``score_n`` and ``confidence_1`` … ``_n``
    (n = 20, or 5 for completion models): ``score_k`` is the probability-weighted mean of the k most likely scores,
    ``confidence_k`` the probability they hold together. ``top`` is k = 1; ``weighted`` is the largest k, taken from
    the next smaller one where it is missing.
    """
    scores: list[list[str]] = [[row.id] for row in test]
    confidences: list[list[str]] = [[row.id] for row in test]
    for path in predictions.values():
        for index, (score, confidence) in enumerate(_predictions(path, test)):
            scores[index] += score
            confidences[index] += confidence
    names = [f"{judge}_{kind}" for judge in predictions for kind in ("top", "weighted")]
    return csv_bytes(["id", *names], scores), csv_bytes(["id", *(f"{name}_conf" for name in names)], confidences)


def _predictions(path: Path, test: list[Row]) -> Iterator[tuple[list[str], list[str]]]:
    """([top, weighted], [their confidences]) for each test row, checked to stand in the same order."""
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        names = reader.fieldnames or ()
        largest = max((int(name[6:]) for name in names if re.fullmatch(r"score_\d+", name)), default=0)
        if "prompt" not in names or not largest:
            raise UserError(
                f"{path.name}: the columns prompt and score_1, score_2, … are needed; it has {', '.join(names)[:200]}"
            )
        rows = list(reader)
    if len(rows) != len(test):
        raise UserError(f"{path.name}: {len(rows)} rows, where the test file has {len(test)}")
    for number, (cells, row) in enumerate(zip(rows, test, strict=True), start=1):
        place = f"{path.name}: row {number}"
        if tuple(map(_norm, split_prompt(cells["prompt"] or "", place))) != (_norm(row.object), _norm(row.response)):
            raise UserError(
                f"{place} is not the response of row {number} of the test file ({row.object}: {row.response[:60]!r})"
            )
        yield _pair(cells, "score", largest, place), _pair(cells, "confidence", largest, place)


def _pair(cells: dict[str, str], kind: str, largest: int, place: str) -> list[str]:
    """[first, largest n], each rounded to six decimals, empty where there is none."""
    filled = next((cells.get(f"{kind}_{n}") for n in range(largest, 0, -1) if cells.get(f"{kind}_{n}")), "")
    try:
        return [str(round(float(cell), _DECIMALS)) if cell else "" for cell in (cells.get(f"{kind}_1"), filled)]
    except ValueError:
        raise UserError(f"{place}: a {kind} is not a number") from None


def csv_bytes(header: Sequence[str], rows: Iterable[Sequence[str]]) -> bytes:
    """UTF-8 CSV with LF line ends and quotes only where needed."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue().encode()
