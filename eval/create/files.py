"""Results out: as JSON lines, as files, as a table."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from eval.console import print_lines, print_shown
from eval.create.compare import ModelComparison
from eval.create.scoring import Result
from eval.create.summary import result_tables, summarise
from inference.files import write_text


def result_lines(results: Sequence[Result]) -> list[str]:
    """One JSON object per result; characters beyond ASCII are escaped, so that any terminal and file can hold them."""
    return [json.dumps(plain(result), allow_nan=False) for result in results]


def plain(value: Any) -> Any:
    """What JSON can hold: recorded values that are no finite number, and odd literals of an answer, as text."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if value is None or isinstance(value, (str, int)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return str(value)


def write_results(folder: Path, results: Sequence[Result], mode: str) -> Path:
    """Write ``scores.jsonl`` and ``summary.json``, replacing older ones; the path of the first."""
    summary = json.dumps(summarise(results, mode).as_json(), indent=1, allow_nan=False)
    return _write_all(folder, {"scores.jsonl": _lines(results), "summary.json": f"{summary}\n"})


def write_comparison(folder: Path, found: ModelComparison) -> Path:
    """Write ``comparison.json``, ``scores.jsonl`` and ``tail_entities.jsonl``; the path of the first."""
    comparison = json.dumps(found.as_json(), indent=1, allow_nan=False)
    rows = {"scores.jsonl": _lines(found.results), "tail_entities.jsonl": _lines(found.tail_entities())}
    return _write_all(folder, {"comparison.json": f"{comparison}\n", **rows})


def _lines(results: Sequence[Result]) -> str:
    return "".join(f"{line}\n" for line in result_lines(results))


def _write_all(folder: Path, contents: Mapping[str, str]) -> Path:
    """Write ready texts, name → text; the path of the first."""
    for name, text in contents.items():
        write_text(folder / name, text)
    return folder / next(iter(contents))


def print_results(results: Sequence[Result], mode: str, *, as_json: bool) -> None:
    """On stdout: JSON lines, else the table."""
    if as_json:
        print_lines(result_lines(results))
        return
    print_shown(result_tables(results, summarise(results, mode)))
