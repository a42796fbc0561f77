"""``python -m eval create score``: the fixture cases that it takes, its outputs, and input that is at fault."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., tuple[int, str, str]]
Cases = Callable[[str], list[dict[str, Any]]]
PATIENCES = ("0.7", "0.9", "1")
EXACT = (
    "parsed",
    "validity",
    "reasons",
    "valid_shared",
    "strengths",
    "q",
    "kept",
    "order",
    "size_scores",
    "factuality",
)
EMBEDDED = 5e-3
GOOD = {
    "id": "good",
    "paths": [[["a", "r", "b"]]],
    "strengths": [4],
    "validity": [1],
    "factuality": [[1]],
}


def write(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join(row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def score(command: Command, tmp_path: Path, rows: list[Any], *options: str) -> list[dict[str, Any]]:
    code, out, _ = command("--input", write(tmp_path / "rows.jsonl", rows), "--json", *options)
    assert code == 0
    return [json.loads(line) for line in out.splitlines()]


@pytest.mark.usefixtures("embed")
@pytest.mark.parametrize("mode", ["paper", "official"])
def test_end_to_end_cases(mode: str, command: Command, cases: Cases, tmp_path: Path) -> None:
    every = cases("end_to_end")
    rows = [{"id": case["id"], **case["input"]} for case in every]
    for case, got in zip(every, score(command, tmp_path, rows, "--mode", mode), strict=True):
        want = case[mode]
        assert got["id"] == case["id"]
        assert {key: got[key] for key in EXACT if key in want} == {key: want[key] for key in EXACT if key in want}
        assert list(got["utility"]) == list(PATIENCES)
        assert [got["utility"][name] for name in PATIENCES] == pytest.approx(
            [want[name] for name in PATIENCES], abs=EMBEDDED
        )
        if "scores" in want:
            assert got["scores"] == pytest.approx(want["scores"], abs=EMBEDDED)


@pytest.mark.usefixtures("embed")
@pytest.mark.parametrize("mode", ["paper", "official"])
def test_utility_cases(mode: str, command: Command, cases: Cases, tmp_path: Path) -> None:
    for case in cases("utility"):
        threshold = case["input"]["factuality_threshold"]
        rows = [{"id": n, **row, "factuality_threshold": threshold} for n, row in enumerate(case["input"]["rows"])]
        found, want = score(command, tmp_path, rows, "--mode", mode), case[mode]
        for name in PATIENCES:
            values = [row["utility"][name] for row in found]
            assert values == pytest.approx(want[name], abs=EMBEDDED)
            assert sum(values) / len(values) == pytest.approx(want[f"mean_{name}"], abs=EMBEDDED)
        for key in ("order", "kept"):
            assert [row[key] for row in found] == want.get(key, [row[key] for row in found])
        if mode == "official":
            for name in PATIENCES:
                for row, curve in zip(found, want[f"cumulative_{name}"], strict=True):
                    assert row[f"cumulative_{name}"] == pytest.approx(curve, abs=EMBEDDED)
            means = [row["pairwise_distance_average"] for row in found]
            assert [[] if mean is None else [pytest.approx(mean, abs=EMBEDDED)] for mean in means] == want[
                "pairwise_distance_average"
            ]


def test_a_bad_row_is_named_and_the_others_are_scored(command: Command, tmp_path: Path) -> None:
    rows = [
        GOOD,
        "{no json\n",
        "[1]\n",
        {"id": "two answers", "raw": "", "paths": []},
        {**GOOD, "id": "short", "strengths": []},
        {**GOOD, "id": "wrong type", "paths": "text"},
        {"id": "no ends", "raw": '{"1": [["a", "r", "b"]]}', "strengths": [1], "factuality": [[1]]},
        {**{key: GOOD[key] for key in ("paths", "validity", "factuality")}, "id": "no strengths"},
        GOOD,
    ]
    good, *bad, last = score(command, tmp_path, rows)
    assert good["utility"] == last["utility"] == {"0.7": 4.0, "0.9": 4.0, "1": 4.0}
    assert [row["id"] for row in bad[:2]] == ["line 2", "line 3"]
    messages = [row["error"]["message"] for row in bad]
    for message, part in zip(
        messages,
        (
            "line 2 is not JSON",
            "line 3 is not a JSON object",
            "has raw, paths",
            "strengths has 0 entries for 1 paths",
            "paths",
            "entity_a and entity_b",
            "no class_size_responses and no strengths",
        ),
        strict=True,
    ):
        assert part in message


def test_official_errors_name_the_quirk_and_the_others_go_on(command: Command, tmp_path: Path) -> None:
    ends = {"entity_a": "a", "entity_b": "b", "factuality_responses": ['{"judgments": ["not"]}']}
    sizes = '[{"judgment": 1}]'
    one: dict[str, Any] = {**ends, "raw": '{"1": [["a", "r", "b"]]}', "class_size_responses": [sizes]}
    four = {**one, "raw": '{"1": [["a", "r", "x", "b"], ["x", "r", "b"]]}'}
    rows: list[dict[str, Any]] = [
        {**one, "id": "Q8", "raw": "null"},
        {**one, "id": "Q20", **four},
        {**one, "id": "Q21", "raw": "[]"},
        {**one, "id": "Q24"},
        {**one, "id": "Q16", "class_size_responses": [None]},
        {**one, "id": "Q14", "path_prediction": "text", "raw": None},
        {**GOOD, "id": "Q20b", "validity": ["bad"]},
        {"id": "Q31", "paths": [[["a", "r", "b"]]], "strengths": [], "factuality": [[1]]},
        {**GOOD, "id": "nan", "strengths": [float("nan")]},
        {**GOOD, "id": "cut", "strengths": [4, 5]},
    ]
    del rows[5]["raw"]
    found = score(command, tmp_path, rows, "--mode", "official")
    assert [row.get("error", {}).get("quirk") for row in found] == [
        *("Q8", "Q20", "Q21", "Q24", "Q16", "Q14", "Q20", "Q31", ""),
        None,
    ]
    assert found[-1]["utility"]["1"] == 4.0
    website = score(command, tmp_path, [rows[3]], "--mode", "official", "--website")
    assert website[0]["utility"]["1"] == 5.0


def test_what_cannot_be_read_is_counted_and_worth_nothing(command: Command, tmp_path: Path) -> None:
    raw = (
        '{"1": [["A", "r", "B"]], "2": [["A", "x", "y", "B"]], "3": [["A", "q", "B"]], "4": null, "5": [["A", "s", "C"'
    )
    row = {
        "id": 7,
        "raw": raw,
        "entity_a": "a",
        "entity_b": "b",
        "strengths": [3, float("nan")],
        "factuality": [[1], [1]],
    }
    (found,) = score(command, tmp_path, [row], "--patience", "0.5")
    assert found["id"] == 7
    assert found["utility"] == {"0.5": 3.0}
    assert found["counts"]["lost"] == {"bad_triple": 1, "bad_path": 1, "truncated": 1, "specificity_unreadable": 1}
    assert found["counts"]["candidates"] == found["counts"]["kept"] + sum(found["counts"]["lost"].values())
    replied = {**row, "strengths": [3, 3, 3, 3, 3], "factuality": [[0], [1], [1], [1], [1]]}
    (found,) = score(command, tmp_path, [replied])  # one reply per candidate, as when rejected ones were judged, too
    assert found["outcomes"] == ["hallucinated", "kept"]


@pytest.mark.parametrize("mode", ["paper", "official"])
def test_empty_answers(mode: str, command: Command, tmp_path: Path) -> None:
    ends = {"entity_a": "a", "entity_b": "b", "class_size_responses": [], "factuality_responses": []}
    rows = [{"raw": text, **ends} for text in ("", "<answer>{}</answer>", "I cannot help with that.")]
    rows.append({"path_prediction": [], **ends})
    found = score(command, tmp_path, rows, "--mode", mode)
    assert [row["id"] for row in found] == ["line 1", "line 2", "line 3", "line 4"]
    assert {row["utility"]["0.9"] for row in found} == ({0.0} if mode == "paper" else {1.0})


@pytest.mark.parametrize("mode", ["paper", "official"])
def test_odd_values_do_not_stop_the_others(mode: str, command: Command, tmp_path: Path) -> None:
    nan = float("nan")
    rows: list[dict[str, Any]] = [
        {**GOOD, "id": nan, "validity": [nan]},
        {**GOOD, "paths": [[["a", nan, "b"]], "text", None][:1]},
        {**GOOD, "paths": ["text"]},
        {**GOOD, "paths": [None], "factuality": [nan]},
        {**GOOD, "strengths": ["high"], "factuality": [["yes"]]},
        {**GOOD, "strengths": [10**400]},
        {**GOOD, "factuality_threshold": nan},
        {**GOOD, "id": {"of": ["any", "kind"]}},
        *({**GOOD, "raw": raw} for raw in ("{1, 2}", "{(1, 2): {(3,): b'x'}}", "[" * 5000 + "]" * 5000, "\\ud800 \0")),
    ]
    for row in rows[8:]:
        del row["paths"]
    found = score(command, tmp_path, rows, "--mode", mode)
    assert len(found) == len(rows)
    assert all("error" in row or "utility" in row for row in found)
    assert found[7]["utility"]["1"] == 4.0


def test_rules_decide_which_paths_count(command: Command, tmp_path: Path) -> None:
    path = [["a", "r", "hub"], ["b", "r", "hub"], ["b", "s", "c"]]
    row = {"paths": [path], "entity_a": "A", "entity_b": "C", "rel_b": "t", "strengths": [4], "factuality": [[1, 1, 1]]}
    kept = {
        options: score(command, tmp_path, [row], *options)[0]["outcomes"][0]
        for options in ((), ("--validity", "shared"), ("--validity", "shared", "--require-relation"))
    }
    assert list(kept.values()) == ["chain", "kept", "relation"]


def test_the_table_and_the_files(command: Command, tmp_path: Path) -> None:
    rows = [GOOD, {**GOOD, "id": "bad", "factuality": [[0]]}, "{\n"]
    code, out, err = command("--input", write(tmp_path / "rows.jsonl", rows), "--out", tmp_path / "out")
    assert code == 0
    assert "1 of 3 rows" in err
    for part in ("good", "4.000", "hallucinated", "line 3 is not JSON", "mean utility of 2 rows"):
        assert part in out
    assert len((tmp_path / "out" / "scores.jsonl").read_text().splitlines()) == 3
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["lost"] == {"hallucinated": 1}
    assert summary["utility"]["0.9"]["value"] == 2.0


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (("--patience", "0.7,x"), "'x'"),
        (("--patience", "1.5"), "from 0 to 1"),
        (("--patience", "nan"), "'nan'"),
        (("--patience", ""), "from 0 to 1"),
    ],
)
def test_faulty_options_are_one_sentence(options: tuple[str, ...], part: str, command: Command, tmp_path: Path) -> None:
    code, out, err = command("--input", write(tmp_path / "rows.jsonl", [GOOD]), *options)
    assert (code, out) == (2, "")
    assert part in err
    assert err.startswith("error: ")


def test_missing_and_empty_files(command: Command, tmp_path: Path) -> None:
    assert "no such file" in command("--input", tmp_path / "none.jsonl")[2]
    assert "is empty" in command("--input", write(tmp_path / "empty.jsonl", []))[2]
