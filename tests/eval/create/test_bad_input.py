"""Faulty rows, queries, replies and settings of CREATE: each is named, and what is beside it stays unharmed."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from eval.create.cli import read_patiences
from eval.create.generation.settings import Generator
from eval.create.queries.graph import Endpoint
from eval.create.queries.read import read_queries
from eval.create.rows import MOST_NESTED, read_rows
from eval.create.scoring import paper, released, score_rows
from eval.create.triple_files import write_triples
from inference.errors import UserError, print_error

GOOD = {
    "id": "good",
    "entity_a": "A",
    "entity_b": "B",
    "paths": [[["A", "r", "X"], ["X", "s", "B"]]],
    "strengths": [3],
    "factuality": [[1, 1]],
}


def write(path: Path, *rows: Any) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def nested(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "fault",
    [{"paths": [[[]]]}, {"extra": nested(900)}, {"id": nested(900)}, {"validity": [10**400]}, {"paths": nested(200)}],
    ids=["empty triple", "deep key", "deep id", "huge number", "deep paths"],
)
@pytest.mark.parametrize("mode", ["paper", "official"])
def test_a_faulty_row_leaves_the_others_unharmed(fault: dict[str, Any], mode: str, tmp_path: Path) -> None:
    rows = read_rows(write(tmp_path / "rows.jsonl", GOOD, {**GOOD, "id": "bad", **fault}, {**GOOD, "id": "after"}))
    results = list(score_rows(rows, paper() if mode == "paper" else released("error"), (0.9,)))
    assert [result["id"] for result in results][::2] == ["good", "after"]
    assert results[0]["utility"] == results[2]["utility"] == {"0.9": 3.0}
    assert "error" in results[1] or results[1]["utility"]["0.9"] <= 1
    json.dumps(results[1])


def test_nesting_has_a_limit(tmp_path: Path) -> None:
    path = write(
        tmp_path / "rows.jsonl", {**GOOD, "extra": nested(MOST_NESTED - 1)}, {**GOOD, "extra": nested(MOST_NESTED)}
    )
    first, second = score_rows(read_rows(path), paper(), (1.0,))
    assert first["utility"] == {"1": 3.0}
    assert "line 2 is nested more than 50 levels deep" in second["error"]["message"]


def test_blank_lines_are_no_rows(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text("\n \n")
    with pytest.raises(UserError, match="the file is empty"):
        list(read_rows(tmp_path / "rows.jsonl"))


@pytest.mark.parametrize("part", [5, "\ud800", ["x"], None])
def test_a_triple_of_other_things_than_text_is_left_out(part: Any, tmp_path: Path) -> None:
    def reply(query: int, head: Any) -> dict[str, Any]:
        path = [[head, f"r{query}", "B"]]
        size, label = '[{"judgment": 5}]', '["not hallucinated"]'
        return {"query_id": f"q{query}", "path": path, "class_size_reply": size, "factuality_reply": label}

    replies = write(tmp_path / "replies.jsonl", *(reply(n, "A") for n in range(4)), reply(0, part))
    queries = write(
        tmp_path / "queries.jsonl", *({"query_id": f"q{n}", "entity_a": "A", "entity_b": f"B{n}"} for n in range(4))
    )
    lines = write_triples(replies, queries, None, tmp_path / "out", test_share=0.3, validation_share=0.25, seed=0)
    assert "left out: 1 paths with a faulty triple or reply" in lines[-1]
    assert (
        sum(len((tmp_path / "out" / f"{p}.csv").read_text().splitlines()) - 1 for p in ("train", "validation", "test"))
        == 4
    )


@pytest.mark.parametrize("ids", [5, "abc", [5], [["a", "b"]], [["a", "b", 3]], {"a": 1}])
def test_ids_of_a_query_are_triples(ids: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "q.jsonl", {"query": "What?", "entity_a": "A", "rel_b": "r", "entity_b": "B", "ids": ids})
    with pytest.raises(UserError, match="line 1: ids has to be a list of triples of texts, or left out"):
        read_queries(path)


@pytest.mark.parametrize("url", ["http://[", "http://ex ample/", "ftp://example.org", "http://", "http://a\x00b/"])
def test_an_endpoint_needs_an_address(url: str) -> None:
    with pytest.raises(UserError, match="needs an http or https address of a SPARQL endpoint"):
        Endpoint(url)


def test_samples_and_patiences_have_limits() -> None:
    with pytest.raises(ValueError, match="less than or equal to 1000"):
        Generator.model_validate({"id": "g", "engine": "hf", "model": "m", "strategy": "resample", "samples": 10**8})
    with pytest.raises(UserError, match="two values are the same in six digits"):
        read_patiences("0.7000001,0.7000002")


def test_messages_hold_no_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    print_error(UserError("\x1b[31mred\x07: no such file\nsecond line"))
    assert capsys.readouterr().err == "error: ?[31mred?: no such file\nsecond line\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("command", ["score --input {}", "queries show eval/create/samples/queries.jsonl"])
def test_a_full_disk_is_said_in_one_line(command: str, tmp_path: Path) -> None:
    words = command.format(
        write(tmp_path / "rows.jsonl", {**GOOD, "paths": [], "strengths": [], "factuality": []})
    ).split()
    with open("/dev/full", "w") as full:
        found = subprocess.run(
            [sys.executable, "-m", "eval", "create", *words],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert found.returncode == 2
    assert found.stderr.startswith("error: the output cannot be written (No space left on device)")
    assert "Traceback" not in found.stderr
