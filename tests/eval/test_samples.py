"""The demonstration data that ships: form, ids, split rule, spread, card, and no copies of research data."""

import csv
import hashlib
import importlib.resources
import os
import re
from pathlib import Path
from statistics import correlation, mean

import pytest

SAMPLES = Path(str(importlib.resources.files("eval.benchmarks"))) / "samples"
PARTS = ("train", "val", "test")
SEED = "creajudge-demo-1"

Row = dict[str, str]


def read(path: Path) -> list[Row]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def parts() -> dict[str, list[Row]]:
    return {part: read(SAMPLES / f"aut_demo_{part}.csv") for part in PARTS}


@pytest.fixture(scope="module")
def rows(parts: dict[str, list[Row]]) -> list[Row]:
    return [row for part in PARTS for row in parts[part]]


def normal(text: str) -> str:
    return " ".join(re.sub(r"[^a-z0-9]+", " ", text.lower()).split())


def digest(row: Row) -> str:
    return hashlib.sha256(f"{SEED}:{row['id']}".encode()).hexdigest()


def test_form(rows: list[Row]) -> None:
    assert len(rows) == 430
    for row in rows:
        assert list(row) == ["id", "object", "response", "originality"]
        assert row["response"] == row["response"].strip() != ""
        assert re.fullmatch(r"[1-4]\.\d|5\.0", row["originality"])
        content = f"{row['object']}\t{row['response']}"
        assert row["id"] == f"demo-{hashlib.sha1(content.encode()).hexdigest()[:12]}"


def test_no_use_occurs_twice(rows: list[Row]) -> None:
    uses = {(row["object"], normal(row["response"])) for row in rows}
    assert len(uses) == len(rows)


def test_split_follows_the_written_rule(parts: dict[str, list[Row]], rows: list[Row]) -> None:
    objects = {row["object"] for row in rows}
    assert len(objects) == 10
    expected: dict[str, set[str]] = {part: set() for part in PARTS}
    for thing in objects:
        ordered = [row["id"] for row in sorted((row for row in rows if row["object"] == thing), key=digest)]
        assert len(ordered) == 43
        expected["test"] |= set(ordered[:9])
        expected["val"] |= set(ordered[9:13])
        expected["train"] |= set(ordered[13:])
    for part in PARTS:
        assert {row["id"] for row in parts[part]} == expected[part]
        assert parts[part] == sorted(parts[part], key=digest)


def test_ratings_cover_the_scale_with_a_skew_and_do_not_follow_length(
    parts: dict[str, list[Row]], rows: list[Row]
) -> None:
    ratings = [float(row["originality"]) for row in rows]
    assert 2.2 < mean(ratings) < 2.6
    shares = [sum(low <= rating < low + 1 for rating in ratings) / len(ratings) for low in (1, 2, 3)]
    assert shares[0] > shares[1] > shares[2] > sum(rating >= 4 for rating in ratings) / len(ratings) > 0.05
    for part in PARTS:
        lengths = [len(row["response"]) for row in parts[part]]
        assert abs(correlation(lengths, [float(row["originality"]) for row in parts[part]])) < 0.3


def test_card_agrees_with_the_files(parts: dict[str, list[Row]], rows: list[Row]) -> None:
    card = (SAMPLES / "README.md").read_text(encoding="utf-8")
    assert "not human research data" in card
    assert "Apache-2.0" in card
    for part in PARTS:
        ratings = [float(row["originality"]) for row in parts[part]]
        spread = f"| {len(ratings)} | {mean(ratings):.2f} | {min(ratings)}–{max(ratings)} |"
        assert f"| `aut_demo_{part}.csv` {spread}" in card
    assert ", ".join(sorted({row["object"] for row in rows})) in card
    test = parts["test"]
    r = correlation([len(row["response"]) for row in test], [float(row["originality"]) for row in test])
    assert f"r = {r:.2f}".replace("-", "−").replace("0.", ".") in card


def test_nothing_is_copied_from_research_data(rows: list[Row]) -> None:
    folder = Path(os.environ.get("CREAJUDGE_DATA", "data")) / "aut"
    names = [name for name in ("ocsai1_train", "ocsai1_val", "ocsai1_test") if (folder / f"{name}.csv").exists()]
    if not names:
        pytest.skip("needs the real AUT data in the folder CREAJUDGE_DATA")
    real = [row for name in names for row in read(folder / f"{name}.csv")]
    uses = {(row["object"], normal(row["response"])) for row in real}
    texts = {text for _, text in uses}
    assert len({row["object"] for row in rows} - {row["object"] for row in real}) >= 5
    assert sum((row["object"], normal(row["response"])) in uses for row in rows) < 0.05 * len(rows)
    assert [row for row in rows if normal(row["response"]) in texts and len(row["response"].split()) > 4] == []
