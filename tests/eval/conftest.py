"""A small evaluation: files of twelve rated responses, two recorded judges and a config, in a directory of its own."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
OBJECTS = ("rope", "tin", "shoe", "box", "fork", "coin")
HUMAN = (1.0, 2.0, 3.0, 4.0, 5.0, 2.5, 1.5, 3.5, 4.5, 2.0, 3.0, 1.0)


def write_csv(path: Path, header: list[str], rows: list[tuple[object, ...]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])


@pytest.fixture
def write_config(tmp_path: Path) -> Callable[..., Path]:
    """Writes the files and a config with the changes given; returns the config's path.

    ``scores.csv`` holds the judges "exact" (equal to the ratings) and "reversed" (6 − rating). The run directory is
    tmp_path / "run".
    """

    def write(name: str = "config.yaml", **changes: Any) -> Path:
        texts = [f"secret text {number}" + "x" * number for number in range(len(HUMAN))]
        rated = [(f"s{i}", OBJECTS[i % 6], texts[i], HUMAN[i]) for i in range(len(HUMAN))]
        write_csv(tmp_path / "test.csv", ["id", "object", "response", "originality"], list(rated))
        scores = [(f"s{i}", HUMAN[i], 6 - HUMAN[i]) for i in range(len(HUMAN))]
        write_csv(tmp_path / "scores.csv", ["id", "exact", "reversed"], list(scores))
        config = {
            "run": "small",
            "out": str(tmp_path / "run"),
            "rubric": str(ROOT / "configs" / "rubrics" / "aut.yaml"),
            "benchmark": {"name": "aut", "test": str(tmp_path / "test.csv")},
            "recorded": [{"file": str(tmp_path / "scores.csv")}],
            "resamples": 100,
            **changes,
        }
        path = tmp_path / name
        path.write_text(yaml.safe_dump({key: value for key, value in config.items() if value is not None}))
        return path

    return write
