"""Faulty rows, queries, replies and settings of CREATE: each is named, and what is beside it stays unharmed."""

import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from eval.console import print_shown
from eval.create.cli import create_app, read_patiences
from eval.create.generation.settings import Generator
from eval.create.published import Published, published_tables
from eval.create.queries.graph import Endpoint
from eval.create.queries.read import read_queries
from eval.create.reasoning.report import report_tables
from eval.create.rows import MOST_NESTED, read_rows
from eval.create.scoring import paper, released, score_rows
from eval.create.triple_files import write_triples
from eval.create.validation_table import read_ratings
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
    [
        {"paths": [[[]]]},
        {"extra": nested(900)},
        {"id": nested(900)},
        {"validity": [10**400]},
        {"paths": nested(200)},
        {"validity": [1], "strengths": [[3]]},
        {"validity": [1], "strengths": [1e308]},
        {"validity": [1], "strengths": [-3]},
    ],
    ids=["empty triple", "deep key", "deep id", "huge number", "deep paths", "list", "huge strength", "negative"],
)
@pytest.mark.parametrize("mode", ["paper", "official"])
def test_a_faulty_row_leaves_the_others_unharmed(fault: dict[str, Any], mode: str, tmp_path: Path) -> None:
    rows = read_rows(write(tmp_path / "rows.jsonl", GOOD, {**GOOD, "id": "bad", **fault}, {**GOOD, "id": "after"}))
    results = list(score_rows(rows, paper() if mode == "paper" else released("error"), (0.9,)))
    assert [result["id"] for result in results][::2] == ["good", "after"]
    assert results[0]["utility"] == results[2]["utility"] == {"0.9": 3.0}
    assert "error" in results[1] or results[1]["utility"]["0.9"] <= 1
    json.dumps(results[1])


@pytest.mark.parametrize("mode", ["paper", "official"])
@pytest.mark.parametrize("path", [[["A", "\ud800", "X"], ["X", "s", "B"]], ["\ud800", "x"], [{"a": "\ud800"}, "x"]])
def test_half_a_surrogate_pair_reaches_no_embedder(path: Any, mode: str, tmp_path: Path) -> None:
    def embedder(strings: list[str]) -> np.ndarray:
        return np.array([[1.0, len(text.encode())] for text in strings], dtype=np.float32)

    judged = {"validity": [1, 1], "strengths": [3, 4], "factuality": [[1, 1], [1, 1]]}
    rows = read_rows(write(tmp_path / "rows.jsonl", {"paths": [path, GOOD["paths"][0]], **judged}))
    (found,) = score_rows(rows, paper() if mode == "paper" else released("error"), (1.0,), lambda: embedder)
    assert found["kept"] == (0, 1)


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


@pytest.mark.parametrize(
    "url",
    [
        *("http://[", "http://ex ample/", "ftp://example.org", "http://", "http://a\x00b/"),
        *("http://a:bad/", "http://127.0.0.1:99999/"),
    ],
)
def test_an_endpoint_needs_an_address(url: str) -> None:
    with pytest.raises(UserError, match="needs an http or https address of a SPARQL endpoint"):
        Endpoint(url)


def test_an_endpoint_that_speaks_no_http_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            with server.accept()[0] as client:
                client.recv(65536)
                client.sendall(b"what?\r\n\r\n")

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        with pytest.raises(UserError, match="gave no answer after 1 tries"):
            Endpoint(f"http://127.0.0.1:{server.getsockname()[1]}/", timeout=5, tries=1).select("SELECT")
        thread.join(5)


def test_the_time_for_an_endpoint_has_a_limit() -> None:
    arguments = ["--config", "c.yaml", "--out", "q.jsonl", "--endpoint", "http://a/", "--timeout", "1e12"]
    found = CliRunner().invoke(create_app, ["queries", "build", *arguments])
    assert found.exit_code == 2
    assert "86400" in found.output


def test_names_hold_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    curves = Published.model_validate({"website_patience_curves": {"m[/red]": {"0.9": 3}}})
    print_shown(*published_tables(curves, [], 80))
    assert "m[/red]" in capsys.readouterr().out
    row = {"generator": "g[/b]", "traces": 0, "cut": 0, "unreadable_rate": None, "strategies": {}}
    row |= dict.fromkeys(("relations", "relation_redundancy", "entities", "entity_redundancy"))
    cost = {"calls": 0, "prompt_tokens": 0, "completion_tokens": 0, "seconds": 0.0, "cost": None}
    print_shown(report_tables({"extractor": "e[/red]\x1b", "generators": [row], "cost": cost}))
    shown = capsys.readouterr().out
    assert "g[/b]" in shown
    assert "e[/red]?: 0 calls" in shown


def test_judges_that_would_be_shown_alike_are_refused(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("id,query,rater,a,a_value\n1,q,1,1,2\n")
    with pytest.raises(UserError, match="two are the same but for _value"):
        read_ratings(tmp_path / "r.csv", ["rater"], ["a", "a_value"], [], "query")


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
