"""Files in and out: written in one step, read strictly, every fault a `UserError` of one sentence."""

import csv
import json
import math
import os
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from inference.errors import UserError, named_list, quoted

LONGEST_CELL = 2**31 - 1
"""Characters; the csv module's own limit of 131,072 is shorter than some responses."""
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


@contextmanager
def os_errors(path: Path | str, what: str) -> Iterator[None]:
    """Turn an OSError of the block into a UserError: ``path: what (reason)``."""
    try:
        yield
    except OSError as error:
        raise UserError(f"{path}: {what} ({error.strerror or error})") from None


def write_text(path: Path | str, text: str) -> None:
    """Write `text` as UTF-8 in one step (see `write_bytes`); half a surrogate pair becomes its backslash escape."""
    write_bytes(path, text.encode("utf-8", "backslashreplace"))


def write_bytes(path: Path | str, content: bytes) -> None:
    """Replace the file by `content`, so that a kill or a loss of power leaves the old file or the new one, whole.

    Missing folders are made. Raises UserError where the file cannot be written; the old one then still stands.
    """
    path = Path(path)
    new = path.with_name(path.name + ".new")
    with os_errors(path, "cannot be written; mend its permissions or free disk space"):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with new.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            new.replace(path)
        except OSError:
            if new.is_file():
                new.unlink(missing_ok=True)
            raise


def plain_number(text: str) -> float | None:
    """The finite number that a cell holds: digits with at most a sign, a point and an exponent; None for other text.

    Python's own notation is no number here: ``1_0``, ``nan``, ``inf``, digits of other scripts.
    """
    if not _NUMBER.fullmatch(text.strip()):
        return None
    value = float(text)
    return value if math.isfinite(value) else None


def parse_json(text: str | bytes, *, finite: bool = False) -> Any:
    """The value of a JSON text. Raises ValueError for every fault, nesting too deep and repeated keys among them.

    With `finite` the numbers that JSON does not know, or no float can hold, are faults, too: ``NaN``, ``1e400``.
    """
    numbers: dict[str, Any] = {"parse_constant": _finite, "parse_float": _finite} if finite else {}
    try:
        return json.loads(text, object_pairs_hook=_unique_keys, **numbers)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{quoted(text, 20)} is no finite number")
    return value


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        raise ValueError(f"repeated keys {named_list([key for key, count in counts.items() if count > 1])}")
    return found


def read_csv(path: Path | str) -> Iterator[tuple[int, dict[str, str]]]:
    """(number of the row's last line, row) for each row of a UTF-8 CSV file with a header line.

    Raises UserError for a repeated column, a row of another length than the header, other encodings, and unclosed
    quotes.
    """
    path = Path(path)
    csv.field_size_limit(LONGEST_CELL)
    try:
        with open_text(path) as file:
            reader = csv.DictReader(file, strict=True)
            # Spreadsheets leave columns without a name; nobody can ask for those.
            counts = Counter(name for name in reader.fieldnames or () if name.strip())
            repeated = [name for name, count in counts.items() if count > 1]
            if repeated:
                raise UserError(f"{path}: the header repeats {named_list(repeated)}; give each column its own name")
            for row in reader:
                if None in row or None in row.values():
                    raise UserError(f"{path}: line {reader.line_num} has another number of cells than the header")
                yield reader.line_num, row
    except csv.Error as error:
        raise UserError(f"{path}: not a readable CSV file ({error})") from None


def read_json_lines(path: Path | str) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line number, object) for each line of a UTF-8 JSONL file that is not blank. Raises UserError naming the line."""
    with open_text(path) as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                row = parse_json(line)
            except ValueError as error:
                raise UserError(f"{path}: line {number} is not JSON ({error})") from None
            if not isinstance(row, dict):
                raise UserError(f"{path}: line {number} is not a JSON object")
            yield number, row


@contextmanager
def open_text(path: Path | str) -> Iterator[Any]:
    """A UTF-8 text file (with or without byte order mark) for reading, line ends as they are."""
    path = Path(path)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            yield file
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; check the path (it is relative to {Path.cwd()})") from None
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path}: not UTF-8 (byte {error.start}); convert it, for example with iconv -t UTF-8"
        ) from None
    except IsADirectoryError:
        raise UserError(f"{path}: is a folder; name a file in it") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise UserError(f"{quoted(str(path))}: cannot be read ({error})") from None
