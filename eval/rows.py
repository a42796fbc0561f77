"""The tidy row in which every metric value is stored, and ``metrics.jsonl``, one row per line."""

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from inference.config import StrictModel, validate
from inference.files import read_json_lines, write_text


def _nan_to_none(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


MEAN_OF_JUDGES = "mean of judges"
"""As judge: averaged over the judges of the row's method."""
HUMAN_HUMAN = "human–human"
"""As judge: raters compared with each other."""
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
    write_text(path, "".join(row_json(row) + "\n" for row in rows))


def row_json(row: MetricRow) -> str:
    """One line of ``metrics.jsonl`` without its line end."""
    return json.dumps(row.model_dump(mode="json"), ensure_ascii=False, allow_nan=False)


def read_rows(path: Path | str) -> list[MetricRow]:
    """The rows of a ``metrics.jsonl`` in file order. Raises UserError naming file and line."""
    return [validate(content, MetricRow, f"{path}: line {number}") for number, content in read_json_lines(path)]
