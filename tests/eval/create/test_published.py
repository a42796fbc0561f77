"""``python -m eval create published``: published curves in the paper's discount, and files of another layout."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eval.create.official import utility as official
from eval.create.published import convert_curves, paper_interval, read_published
from eval.create.utility import utility

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def published(command: Command) -> Command:
    return lambda *arguments: command(*arguments, name="published")


def write(path: Path, content: Any) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_all_published_curves(published: Command, create_data: Path) -> None:
    code, out, _ = published(create_data / "published.json", "--json")
    found = json.loads(out)
    assert code == 0
    assert len({one["model"] for one in found["models"]}) == 17
    assert len(found["models"]) == 2 * 17
    assert len(found["left_out"]) == 3
    assert all(one["low"] < one["high"] and one["low"] < one["published"] for one in found["models"])
    gpt = next(one for one in found["models"] if (one["model"], one["patience"]) == ("GPT-5 (med)", 0.9))
    assert (round(gpt["published"], 2), round(gpt["low"], 1), round(gpt["high"], 1)) == (12.03, 11.1, 11.3)
    assert "--mode official --website" in found["note"]


@pytest.mark.parametrize("columns", [80, 120])
def test_the_table(columns: int, published: Command, create_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    _, out, _ = published(create_data / "published.json", "--patience", "0.7,0.75,0.9")
    assert max(map(len, out.splitlines())) <= columns
    assert "7.20 to 7.78" in out
    assert "--mode official --website" in " ".join(out.split())
    assert "left out" in out
    assert re.search(r"│ +– │ +– │", out)  # 0.75 is not published


@pytest.mark.parametrize("gains", [[5, 4, 3], [2, 2], [4], [5, 0.5, 0.25]])
@pytest.mark.parametrize("patience", [0.0, 0.7, 1.0])
def test_the_interval_holds_the_papers_value(gains: list[float], patience: float) -> None:
    low, high = paper_interval(official.utility(gains, patience), patience, official.utility(gains, 0.0))
    assert low - 1e-9 <= utility(gains, patience) <= high + 1e-9


def test_a_curve_without_its_start_is_left_out(tmp_path: Path) -> None:
    file = write(tmp_path / "curves.json", {"website_patience_curves": {"a": {"0": 6, "0.5": 7}, "b": {"0.5": 7}}})
    found = read_published(file)
    assert found.without_start == ["b"]
    (half, other) = convert_curves(found.website_patience_curves, (0.5, 0.9))
    assert half == ("a", 0.5, 7, 5, 6)
    assert other == ("a", 0.9, None, None, None)


@pytest.mark.parametrize(
    ("content", "part"),
    [
        ("{", "not JSON"),
        ([1], "no key website_patience_curves, but list"),
        ({"T16_main": {}}, "no key website_patience_curves, but T16_main"),
        ({"website_patience_curves": {"m": {"soon": 1}}}, "soon"),
        ({"website_patience_curves": {"m": {"1.5": 1}}}, "1.5"),
        ({"website_patience_curves": {"m": {"0.5": None}}}, "0.5"),
        ({"website_patience_curves": {"m": 3}}, "m"),
        ({"website_patience_curves": {"m": {"0": 11}}}, "11 at patience 0"),
    ],
)
def test_another_layout(content: Any, part: str, published: Command, tmp_path: Path) -> None:
    code, out, err = published(write(tmp_path / "curves.json", content))
    assert (code, out) == (2, "")
    assert part in err
    assert "Traceback" not in err
