"""Query sets from files: the published layout, formats, ids, and files at fault."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eval.cli import main
from eval.create.queries.read import read_queries
from inference.errors import UserError

ROW = {"query": "How is A linked to B?", "entity_a": "A", "rel_b": "knows", "entity_b": "B"}
AWKWARD = ["a, b", '"Heroes" (album)', "O'Brien", "千と千尋の神隠し", "عمر الشريف", "Œdipe\u00a0roi"]


def write(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def parquet(path: Path, rows: list[dict[str, Any]]) -> Path:
    pyarrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet")
    path.parent.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    return path


def test_the_published_set(read_lines: Callable[[str], list[dict[str, Any]]], create_data: Path) -> None:
    rows = read_lines("queries.jsonl")
    queries = read_queries(create_data / "queries.jsonl")
    assert [query.id for query in queries] == [row["query_id"] for row in rows]
    for name in ("query", "entity_a", "rel_b", "entity_b", "description"):
        assert [getattr(query, name) for query in queries] == [row[name] for row in rows]


@pytest.mark.parametrize("name", AWKWARD)
def test_names_are_kept_as_they_are(tmp_path: Path, name: str) -> None:
    rows = [{**ROW, "entity_a": name, "entity_b": name + "!"}]
    (from_lines,) = read_queries(write(tmp_path / "q.jsonl", rows))
    (from_parquet,) = read_queries(parquet(tmp_path / "q.parquet", rows))
    assert from_lines == from_parquet
    assert (from_lines.entity_a, from_lines.entity_b) == (name, name + "!")


def test_a_folder_of_a_data_set_is_read_file_by_file(tmp_path: Path) -> None:
    for number, name in enumerate(("train-00001", "train-00000")):
        parquet(tmp_path / "data" / f"{name}.parquet", [{**ROW, "entity_a": str(number), "triple1": ["A", "r", "C"]}])
    write(tmp_path / "other.jsonl", [{}])
    parquet(tmp_path / ".cache" / "old.parquet", [{"wrong": 1}])
    queries = read_queries(tmp_path)
    assert [query.entity_a for query in queries] == ["1", "0"]
    assert queries[0].triples == (["A", "r", "C"],)


def test_ids_follow_from_the_content_and_are_unique(tmp_path: Path) -> None:
    rows = [ROW, {**ROW, "entity_a": 1984}, ROW]
    first = [query.id for query in read_queries(write(tmp_path / "a.jsonl", rows))]
    assert first == [query.id for query in read_queries(write(tmp_path / "b.jsonl", rows))]
    assert len(set(first)) == 3
    assert first[2] == f"{first[0]}-2"


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "holds no queries; it needs rows with the columns query, entity_a, rel_b, entity_b"),
        (
            [ROW, {"query": "x", "entity_a": "A", "answer": 1}],
            r"line 2: the columns rel_b, entity_b are missing.*answer",
        ),
        ([{**ROW, "rel_b": " "}], "line 1: rel_b holds no text"),
        ([{**ROW, "entity_b": None}], "line 1: entity_b holds no text"),
        ([{**ROW, "entity_b": True}], "line 1: entity_b holds no text"),
        ([{**ROW, "id": "x"}, {**ROW, "id": "x"}], "ids x occur more than once"),
        ([["not an object"]], "line 1 is not a JSON object"),
    ],
)
def test_rows_at_fault_are_named(tmp_path: Path, rows: list[Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        read_queries(write(tmp_path / "q.jsonl", rows))


def test_files_at_fault_are_named(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    with pytest.raises(UserError, match="no such file"):
        read_queries(tmp_path / "missing.jsonl")
    with pytest.raises(UserError, match="no such file"):
        read_queries(tmp_path / "missing.parquet")
    with pytest.raises(UserError, match=r"holds no \.parquet and no \.jsonl file"):
        read_queries(tmp_path)
    (tmp_path / "q.parquet").write_text("no parquet at all")
    with pytest.raises(UserError, match="not a readable Parquet file"):
        read_queries(tmp_path / "q.parquet")


def test_show_counts_and_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{**ROW, "entity_a": f"A{i} [bold]", "description": f"c__P{i % 2}"} for i in range(5)]
    file = write(tmp_path / "q.jsonl", rows)
    monkeypatch.setattr(sys, "argv", ["eval", "create", "queries", "show", str(file), "--limit", "1"])
    with pytest.raises(SystemExit):
        main()
    shown = capsys.readouterr().out
    assert "5 queries" in shown
    assert "A0 [bold] → … → knows → B" in shown
    assert "A1 [bold]" not in shown
