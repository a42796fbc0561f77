"""Recorded replies as evaluators: the published ones, both layouts, and files at fault."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from eval.create.evaluators.kinds import FACTUALITY, SPECIFICITY
from eval.create.evaluators.recorded import read_recorded
from eval.create.evaluators.run import Evaluation, evaluate, read_evaluation
from inference.errors import UserError

PATH = [["A", "r", "Z"]]
ONE = {
    "query_id": "q",
    "model": "m",
    "path": [["a", "R", "z"]],
    "class_size_reply": "[7]",
    "factuality_reply": "['true']",
}


def write(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


@pytest.fixture
def run(tmp_path: Path, one_hot: Any) -> Callable[[list[dict[str, Any]], str], Evaluation]:
    """Evaluates rows by the replies of a file."""

    def run(rows: list[dict[str, Any]], recorded: str) -> Evaluation:
        config = tmp_path / "config.yaml"
        by = {"recorded": recorded}
        source = write(tmp_path / "rows.jsonl", rows)
        settings = {
            "input": source,
            "out": str(tmp_path / "run"),
            "specificity": by,
            "factuality": by,
            "evaluated": "all",
        }
        config.write_text(yaml.safe_dump(settings))
        return evaluate(read_evaluation(config), quiet=True, embedder=one_hot)

    return run


def test_published_replies_are_found_and_read(
    run: Callable[..., Evaluation], read_lines: Callable[[str], list[dict[str, Any]]], create_data: Path
) -> None:
    queries = {query["query_id"]: query for query in read_lines("queries.jsonl")}
    replies = read_lines("evaluator_replies.jsonl")
    rows = [
        {**queries[answer["query_id"]], "id": str(number), "model": answer["model"], "raw": answer["answer"]}
        for number, answer in enumerate(read_lines("answers.jsonl"))
    ]
    found = run(rows, str(create_data / "evaluator_replies.jsonl"))
    judged = found.report["specificity"]["ok"]
    assert judged == found.report["factuality"]["ok"]
    assert judged >= len(replies) - 3  # three paths have a triple that is none
    assert found.report["costs"] == {}
    wanted = {(reply["query_id"], reply["model"], json.dumps(reply["path"])): reply for reply in reversed(replies)}
    compared = 0
    for row, result in zip(rows, found.results, strict=True):
        for path, labels, strength in zip(result["parsed"], result["factuality"], result["strengths"], strict=True):
            lower = json.dumps([[part.lower() for part in triple] for triple in path])
            reply = wanted.get((row["query_id"], row["model"], lower))
            if reply is not None and len(path) > 1:
                assert list(labels) == reply["factuality_labels"]
                assert strength == min(reply["class_size_scores"][:-1])
                compared += 1
    assert compared > 2500


def test_the_fixtures_are_their_own_evaluators(
    run: Callable[..., Evaluation], cases: Callable[[str], list[dict[str, Any]]], tmp_path: Path
) -> None:
    rows = [{"id": case["id"], **case["input"]} for case in cases("end_to_end") if "raw" in case["input"]]
    assert rows
    found = run(rows, write(tmp_path / "recorded.jsonl", rows))
    for row, result in zip(
        (json.loads(line) for line in (found.path / "evaluated.jsonl").open()), found.results, strict=True
    ):
        assert "error" not in result
        assert len(row["class_size_responses"]) == len(row["factuality_responses"]) == len(result["parsed"])
        assert any(row["class_size_responses"])


def test_the_same_answer_goes_before_others_and_missing_replies_are_empty(
    run: Callable[..., Evaluation], tmp_path: Path
) -> None:
    other = {**ONE, "query_id": "other", "class_size_reply": "[500]"}
    nan = {**ONE, "path": [["A", "r", "NaN"]], "class_size_reply": float("nan"), "factuality_reply": "[NaN]"}
    recorded = write(tmp_path / "recorded.jsonl", [other, ONE, nan])
    paths = [PATH, [["A", "r", "unknown"]], [["A", "r", "NaN"]]]
    rows = [
        {"id": 0, "query_id": "q", "model": "m", "paths": paths, "entity_a": "A", "entity_b": "Z"},
        {"id": 1, "query_id": "x", "model": "m", "paths": [PATH], "entity_a": "A", "entity_b": "Z"},
    ]
    found = run(rows, recorded)
    assert [result["strengths"] for result in found.results] == [(5, None, None), (2,)]
    assert found.report["specificity"]["empty"] == 2
    assert found.report["factuality"]["unreadable"] == found.report["factuality"]["empty"] == 1
    assert found.results[0]["kept"] == (0,)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"path": PATH}], "no line has `class_size_reply`"),
        ([{"paths": [PATH], "class_size_responses": ["[1]", "[2]"]}], "line 1: class_size_responses has 2 entries"),
        ([{"class_size_responses": []}], "line 1 needs one of raw"),
        ([{"paths": [], "class_size_responses": ["x"], "raw": ""}], "has raw, paths"),
    ],
)
def test_faulty_files_are_named(rows: list[dict[str, Any]], message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=message):
        read_recorded(write(tmp_path / "recorded.jsonl", rows), SPECIFICITY)


def test_a_line_that_is_no_json(tmp_path: Path) -> None:
    (tmp_path / "recorded.jsonl").write_text('{"path": \n')
    with pytest.raises(UserError, match="line 1 is not JSON"):
        read_recorded(str(tmp_path / "recorded.jsonl"), FACTUALITY)
