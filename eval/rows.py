"""The tidy row in which every metric value is stored, and ``metrics.jsonl``, one row per line."""

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from inference.config import StrictModel, validate
from inference.errors import UserError


def _nan_to_none(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


Number = Annotated[float | None, BeforeValidator(_nan_to_none)]
"""A float; NaN and infinities become None, which is ``null`` in JSON."""


class MetricRow(StrictModel):
    """One value of one metric. Tables, reports and W&B are views of these rows."""

    run: str
    benchmark: str
    split: str
    judge: str
    method: str
    score: Literal["value", "top"]
    """Which of the judge's two numbers was compared: the expected value or the most likely score."""
    rater: str
    """The human rater compared with."""
    step: str
    dimension: str
    metric: str
    value: Number
    """None where the metric is undefined (constant scores, too few rows)."""
    low: Number = None
    """Lower end of the 95 % interval; None where the metric has no interval."""
    high: Number = None
    n: int = Field(ge=0)
    """Rows used: scored by the judge and rated by the rater."""
    coverage: float = Field(ge=0.0, le=1.0)
    """Share of the split's samples that the judge scored."""
    simulated: bool
    """True where the samples or ratings were made for demonstration, not gathered from people."""


def write_rows(path: Path | str, rows: Iterable[MetricRow]) -> None:
    """Write `rows` as JSON lines, in the order given, keys in the order of `MetricRow`. Replaces the file at once."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(path.suffix + ".partial")
    partial.write_text("".join(row_json(row) + "\n" for row in rows), encoding="utf-8")
    partial.replace(path)


def row_json(row: MetricRow) -> str:
    """One line of ``metrics.jsonl`` without its line end."""
    return json.dumps(row.model_dump(mode="json"), ensure_ascii=False, allow_nan=False)


def read_rows(path: Path | str) -> list[MetricRow]:
    """The rows of a ``metrics.jsonl`` in file order. Raises UserError naming file and line."""
    path = Path(path)
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; `python -m eval report` on the run's directory writes it") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read as UTF-8 text ({error})") from None
    return [_row(path, number, line) for number, line in enumerate(lines, start=1) if line.strip()]


def _row(path: Path, number: int, line: str) -> MetricRow:
    try:
        content = json.loads(line)
    except ValueError as error:
        raise UserError(f"{path}: line {number} is not JSON ({error})") from None
    if not isinstance(content, dict):
        raise UserError(f"{path}: line {number} is not a JSON object")
    return validate(content, MetricRow, f"{path}: line {number}")
