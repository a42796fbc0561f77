"""Scored triples from recorded replies, split by query; the benchmark made of them; a learned evaluator from them."""

import csv
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from eval.cli import main
from eval.create.triple_files import HEADER, split_triples, write_triples
from eval.create.triples import connection, triple_text
from eval.run import evaluate
from inference.errors import UserError
from inference.rubric import load_rubric
from inference.samples import Columns, read_samples

ROOT = Path(__file__).parents[3]
RUBRICS = ROOT / "configs" / "rubrics"
PARTS = ("train", "validation", "test")


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def reply(query: int, *triples: list[str], sizes: str = "", labels: str = "", model: str = "m") -> dict[str, Any]:
    return {
        "query_id": f"q{query}",
        "model": model,
        "path": list(triples),
        "class_size_reply": sizes or json.dumps([7 * 10**query] * len(triples)),
        "factuality_reply": labels or json.dumps(["true"] * len(triples)),
    }


def files(folder: Path, replies: list[dict[str, Any]], count: int = 6) -> tuple[Path, Path]:
    queries = [{"query_id": f"q{n}", "entity_a": f"A{n}", "entity_b": f"B{n}"} for n in range(count)]
    return write(folder / "replies.jsonl", replies), write(folder / "queries.jsonl", queries)


def rows_of(folder: Path) -> dict[str, list[dict[str, str]]]:
    found = {}
    for part in PARTS:
        with (folder / f"{part}.csv").open(encoding="utf-8", newline="") as file:
            found[part] = list(csv.DictReader(file))
    return found


REPLIES = [reply(n, [f"a{n}", "r", f"m{n}"], [f"m{n}", "shared", "x"]) for n in range(6)]


def test_queries_are_split_and_a_seed_is_a_split(tmp_path: Path) -> None:
    given = (*files(tmp_path, REPLIES), None)
    lines = write_triples(*given, tmp_path / "one", test_share=0.3, validation_share=0.2, seed=1)
    write_triples(*given, tmp_path / "two", test_share=0.3, validation_share=0.2, seed=1)
    write_triples(*given, tmp_path / "other", test_share=0.3, validation_share=0.2, seed=2)
    found = rows_of(tmp_path / "one")
    connections = {part: {row["connection"] for row in rows} for part, rows in found.items()}
    assert [len(connections[part]) for part in PARTS] == [3, 1, 2]
    assert len(set.union(*connections.values())) == 6
    assert found == rows_of(tmp_path / "two") != rows_of(tmp_path / "other")
    assert tuple(found["train"][0]) == HEADER
    assert "3 triples" not in lines[0]
    assert lines[0].startswith(f"{tmp_path / 'one' / 'train'}.csv: 6 triples of q")


def test_repeated_triples_are_one_row_with_the_mean_and_known_ones_leave_the_training(tmp_path: Path) -> None:
    common = ["New  York", "in", "USA"]
    replies = [
        *(reply(n, [f"a{n}", "r", f"m{n}"], common) for n in range(5)),
        reply(0, ["A0", "R", "M0"], sizes="[4999]", labels='["false"]', model="n"),
        reply(0, ["x", "y", "z"], sizes="[]"),
        reply(0, ["x", "y"], sizes="[1]"),
    ]
    lines = write_triples(*files(tmp_path, replies), None, tmp_path, test_share=0.2, validation_share=0.2, seed=0)
    found = rows_of(tmp_path)
    (mean,) = (row for rows in found.values() for row in rows if row["triple"] == "a0 | r | m0")
    assert (mean["specificity"], mean["factuality"], mean["judgements"]) == ("3.5", "0.5", "2")
    assert sum(row["triple"] == triple_text(("New  York", "in", "USA")) for row in found["train"]) == 0
    assert sum("New  York" in row["triple"] for rows in found.values() for row in rows) == 2
    assert lines[-1] == (
        "left out: 2 paths with a faulty triple or reply, 3 triples of training queries that a held-out query has, too"
    )


def test_answers_give_triples_their_case_back(tmp_path: Path) -> None:
    answer = {"query_id": "q0", "model": "m", "answer": '{"1": [["A0", "R", "McM"], ["McM", "Shared", "X"]]}'}
    replies = [reply(0, ["a0", "r", "mcm"], ["mcm", "shared", "x"]), *REPLIES[1:]]
    source, queries = files(tmp_path, replies)
    answers = write(tmp_path / "answers.jsonl", [answer])
    write_triples(source, queries, answers, tmp_path, test_share=0.3, validation_share=0.2, seed=0)
    texts = {row["triple"] for rows in rows_of(tmp_path).values() for row in rows}
    assert {"A0 | R | McM", "McM | Shared | X", "a1 | r | m1"} <= texts


def test_the_published_replies(create_data: Path, tmp_path: Path) -> None:
    names = ("evaluator_replies", "queries", "answers")
    replies, queries, answers = (create_data / f"{name}.jsonl" for name in names)
    write_triples(replies, queries, answers, tmp_path, test_share=0.3, validation_share=0.15, seed=0)
    found = rows_of(tmp_path)
    assert [len({row["connection"] for row in found[part]}) for part in PARTS] == [10, 3, 6]
    assert sum(int(row["judgements"]) for rows in found.values() for row in rows) > 10_000
    assert len(found["train"]) <= 4000
    for name in ("specificity", "factuality"):
        rubric = load_rubric(RUBRICS / f"create_{name}.yaml")
        columns = Columns(scenario="connection", response="triple")
        for part in PARTS:
            assert len(read_samples(tmp_path / f"{part}.csv", rubric, columns, rated=True)) == len(found[part])


@pytest.mark.parametrize(
    ("replies", "message"),
    [
        (REPLIES[:2], "readable replies on 2 queries"),
        ([*REPLIES, reply(9, ["a", "r", "b"])], "the query q9 is not among the 6"),
        ([{"query_id": "q1"}], "line 1 has no path, class_size_reply, factuality_reply"),
        ([{**REPLIES[0], "query_id": 3}], "line 1 has no query_id, or no text there"),
        ([{**REPLIES[0], "class_size_reply": float("nan")}], "readable replies on 0 queries"),
        ([{**REPLIES[0], "path": "a"}], "readable replies on 0 queries"),
    ],
)
def test_faulty_replies_are_named(replies: list[dict[str, Any]], message: str, tmp_path: Path) -> None:
    given = files(tmp_path, replies)
    with pytest.raises(UserError, match=message):
        write_triples(*given, None, tmp_path / "out", test_share=0.3, validation_share=0.2, seed=0)
    assert not (tmp_path / "out").exists()


def test_extreme_shares_leave_a_query_for_each_part(tmp_path: Path) -> None:
    given = (*files(tmp_path, REPLIES), None)
    for share in (0.0, 1.0):
        write_triples(*given, tmp_path, test_share=share, validation_share=share, seed=0)
        assert all(rows_of(tmp_path).values())
    with pytest.raises(UserError, match="0 queries"):
        split_triples([], 0, test_share=0.3, validation_share=0.2, seed=0)


def test_the_benchmark_compares_evaluators_by_query(tmp_path: Path) -> None:
    replies = [reply(n, *([f"{n}{k}", "r", f"t{n}{k}"] for k in range(4))) for n in range(8)]
    write_triples(*files(tmp_path, replies, 8), None, tmp_path, test_share=0.75, validation_share=0.1, seed=0)
    scripted = {"engine": "scripted", "method": "compact"}
    config = {
        "run": "create",
        "out": str(tmp_path / "run"),
        "rubric": str(RUBRICS / "create_specificity.yaml"),
        "benchmark": {"name": "create_triples", "test": str(tmp_path / "test.csv")},
        "judges": [{"id": name, "model": name, **scripted} for name in ("one", "two")],
        "resamples": 100,
    }
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
    report = evaluate(tmp_path / "config.yaml", quiet=True)
    found = [row for row in report.rows if (row.metric, row.score) == ("pearson", "value")]
    assert [row.judge for row in found] == ["one", "two"]
    assert {(row.benchmark, row.dimension, row.n) for row in found} == {("create_triples", "specificity", 24)}
    assert all(row.low is not None for row in found)


def test_the_prompt_of_a_triple_is_the_same_in_training_and_serving() -> None:
    from inference.prompts import raw_questions
    from inference.records import Sample

    rubric = load_rubric(RUBRICS / "create_factuality.yaml")
    sample = Sample(id="", scenario=connection("A", "B"), responses={"triple": triple_text(("A", "r\n", "B|C"))})
    (question,) = raw_questions(rubric, sample)
    assert question.prompt == "A to B: A | r | B|C\n"


@pytest.mark.parametrize("name", ["specificity", "factuality"])
def test_a_recipe_from_replies_to_evaluator(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one_hot: Callable[[], Any]
) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("trl")
    from tiny_model import write_model

    from eval.create.evaluators.run import evaluate as run
    from eval.create.evaluators.run import read_evaluation
    from training.sft import main as train

    monkeypatch.chdir(ROOT)
    replies = [
        reply(n, [f"a{n}{k}", "r", f"m{n}{k}"], labels=json.dumps([str(k % 2 == 0).lower()]))
        for n in range(6)
        for k in range(4)
    ]
    write_triples(*files(tmp_path, replies), None, tmp_path, test_share=0.3, validation_share=0.2, seed=0)
    model = write_model(tmp_path / "model")
    options = {
        **{f"{part}_file": tmp_path / f"{part}.csv" for part in PARTS},
        "model_name_or_path": model,
        "output_dir": tmp_path / "out",
        "max_steps": 1,
        "eval_steps": 1,
        "save_steps": 1,
        "report_to": "none",
    }
    words = [word for key, value in options.items() for word in (f"--{key}", str(value))]
    try:
        assert train(["--config", f"configs/training/create_{name}_smollm2.yaml", *words]) == 0
    finally:
        torch.set_flush_denormal(False)  # training sets it for the process, and hypothesis minds
    learned = {
        "engine": "hf",
        "model": str(model),
        "adapter": str(tmp_path / "out" / "adapter"),
        "method": "compact",
        "rubric": f"configs/rubrics/create_{name}.yaml",
    }
    other = "factuality" if name == "specificity" else "specificity"
    row = {"id": 1, "paths": [[["A", "r", "M"], ["M", "t", "Z"]]], "entity_a": "A", "entity_b": "Z"}
    settings = {
        "input": str(write(tmp_path / "rows.jsonl", [row])),
        "out": str(tmp_path / "run"),
        name: learned,
        other: {"engine": "scripted", "model": "scripted"},
    }
    (tmp_path / "evaluate.yaml").write_text(yaml.safe_dump(settings))
    found = run(read_evaluation(tmp_path / "evaluate.yaml"), quiet=True, embedder=one_hot)
    assert found.report[name]["ok"] == 1
    wrong = {
        **settings,
        name: {**learned, "adapter": None},
        other: {**learned, "rubric": f"configs/rubrics/create_{other}.yaml"},
    }
    (tmp_path / "evaluate.yaml").write_text(yaml.safe_dump(wrong))
    with pytest.raises(UserError, match=f"was trained for the rubric create_{name}"):
        read_evaluation(tmp_path / "evaluate.yaml")


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    replies, queries = files(tmp_path, REPLIES)
    words = ["--replies", str(replies), "--queries", str(queries), "--out", str(tmp_path / "out")]
    monkeypatch.setattr(sys, "argv", ["eval", "create", "triples", *words])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code in (0, None)
    assert len(capsys.readouterr().out.splitlines()) == 4
    monkeypatch.setattr(sys, "argv", ["eval", "create", "triples", *words[:4], "--out", str(replies / "x")])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    assert "cannot be written" in capsys.readouterr().err
