"""``python -m eval create evaluate``: prompted and learned evaluators on scripted engines, resumed runs, bad input."""

import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from scripted_engines import Answer, ScriptedEngines

from eval.cli import main
from eval.create.evaluators.prompts import SPECIFICITY, path_messages
from eval.create.evaluators.run import Evaluation, evaluate, read_evaluation
from inference.engines.base import EngineError
from inference.errors import UserError
from inference.records import Call, Completion, Usage

ROOT = Path(__file__).parents[3]
ENDS = {"entity_a": "A", "entity_b": "Z", "rel_b": "t"}


def path_over(middle: str) -> list[list[str]]:
    return [["A", "r", middle], [middle, "t", "Z"]]


def raw(*paths: Any) -> str:
    return f"<answer>{json.dumps({str(number): path for number, path in enumerate(paths, 1)})}</answer>"


ROWS: list[dict[str, Any]] = [
    {"id": "one", "query": "?", **ENDS, "samples": [raw(path_over("M"), path_over("N")), raw(path_over("N"))]},
    {"id": "two", **ENDS, "raw": raw(path_over("m"), [["A", "r", "Z"], ["x", "t", "y"]])},
    {"id": "empty", **ENDS, "raw": ""},
]


def judged(call: Call, size: Any = 7, label: Any = "not hallucinated") -> Completion:
    """A well-formed reply to a prompted call."""
    assert call.json_schema is not None
    rows = call.json_schema["properties"]["judgments"]
    is_size = rows["items"]["properties"]["judgment"]["type"] == "integer"
    entry = {"explanation": "e", "judgment": size if is_size else label}
    return Completion(text=json.dumps({"judgments": [entry] * rows["minItems"]}), usage=Usage(prompt=10, completion=5))


class Engines(ScriptedEngines):
    """Those that answer well where nothing else is said."""

    def __init__(self, answer: Answer = judged) -> None:
        super().__init__(answer)


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Writes rows and a config with the changes given; returns the config's path."""

    def write(rows: list[Any] = ROWS, **changes: Any) -> Path:
        text = "".join(row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows)
        (tmp_path / "rows.jsonl").write_text(text, encoding="utf-8")
        scripted = {"engine": "scripted", "model": "scripted", "max_retries": 0}
        settings = {
            "input": str(tmp_path / "rows.jsonl"),
            "out": str(tmp_path / "run"),
            "specificity": scripted,
            "factuality": scripted,
            **changes,
        }
        path = tmp_path / "config.yaml"
        path.write_text(yaml.safe_dump(settings))
        return path

    return write


@pytest.fixture
def run(one_hot: Any) -> Callable[..., Evaluation]:
    def run(config: Path, engines: Engines) -> Evaluation:
        return evaluate(read_evaluation(config), quiet=True, build=engines, embedder=one_hot)

    return run


def written(found: Evaluation) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (found.path / "evaluated.jsonl").read_text().splitlines()]


def test_every_path_is_judged_and_scored_and_equal_ones_are_asked_once(
    write: Callable[..., Path], run: Callable[..., Evaluation]
) -> None:
    engines = Engines()
    found = run(write(), engines)
    assert len(engines.calls) == 4  # two judgements on two different paths, whichever rows they stand in
    one, two, empty = written(found)
    assert one["query"] == "?"
    assert len(one["class_size_responses"]) == 2  # the third is a duplicate
    assert one["class_size_responses"][0] == two["class_size_responses"][0]
    assert two["class_size_responses"][1] is None  # no rule accepts the path, so nobody is asked about it
    assert empty["class_size_responses"] == []
    assert [row["utility"]["1"] for row in found.results] == [10.0, 5.0, 0.0]
    report = json.loads((found.path / "report.json").read_text())
    assert report == found.report
    assert (report["rows"], report["paths"], report["evaluated"], report["faulty_rows"]) == (3, 4, 3, 0)
    assert report["specificity"]["ok"] == report["factuality"]["ok"] == 3
    assert report["factuality"]["unjudged"] == 0
    assert report["distinct"] == {"specificity": 2, "factuality": 2}
    assert report["costs"]["specificity"]["calls"] == 2
    assert report["costs"]["factuality"]["prompt_tokens"] == 20
    assert report["utility"]["lost"] == {"duplicate": 1, "end": 1}


def test_what_was_written_is_what_the_score_command_takes(
    write: Callable[..., Path], run: Callable[..., Evaluation], command: Callable[..., tuple[int, str, str]]
) -> None:
    rows = [
        {**ROWS[1], "class_size_responses": ["old"], "strengths": [math.nan, 2]}
    ]  # judgements of before are replaced
    found = run(write(rows), Engines())
    code, out, _ = command("--input", found.path / "evaluated.jsonl", "--json")
    assert code == 0
    assert json.loads(out)["utility"] == found.results[0]["utility"] == {"0.7": 5.0, "0.9": 5.0, "1": 5.0}


def test_an_unreadable_reply_is_asked_for_once_more_and_never_a_score(
    write: Callable[..., Path], run: Callable[..., Evaluation]
) -> None:
    def answer(call: Call) -> Completion:
        assert call.messages is not None
        again = len(call.messages) > 2
        if '"N"' in call.messages[1].content:
            return Completion(text='{"judgments": [5]}')
        return judged(call) if again else judged(call, size="many", label="maybe")

    engines = Engines(answer)
    found = run(write(), engines)
    assert len(engines.calls) == 8
    complaints = [call.messages[-1].content for call in engines.calls if call.messages and len(call.messages) > 2]
    assert any("judgment 1, 2 is not one whole number" in complaint for complaint in complaints)
    assert any("1 judgments, but there are 2 triples" in complaint for complaint in complaints)
    assert found.report["specificity"] == {
        "ok": 2,
        "unreadable": 0,
        "count_mismatch": 1,
        "empty": 0,
        "failed": 0,
        "asked_again": 3,
        "unjudged": pytest.approx(1 / 3),
    }
    assert found.results[0]["outcomes"] == ("kept", "factuality_count_mismatch")
    assert found.results[0]["strengths"] == (5, None)


def test_a_failed_call_is_missing_and_asked_for_by_the_next_start(
    write: Callable[..., Path], run: Callable[..., Evaluation], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def answer(call: Call) -> Completion:
        if call.messages and '"N"' in call.messages[1].content:
            raise EngineError("overloaded")
        return judged(call)

    found = run(write(), Engines(answer))
    assert found.report["specificity"]["failed"] == 1
    assert "no answer on 1 paths" in capsys.readouterr().err
    assert found.results[0]["outcomes"] == ("kept", "factuality_empty")
    mended = Engines()
    again = run(write(), mended)
    assert len(mended.calls) == 2
    assert again.report["specificity"]["ok"] == 3
    whole = run(write(out=str(tmp_path / "whole")), Engines())
    for name in ("evaluated.jsonl", "readings.jsonl", "scores.jsonl"):
        assert (again.path / name).read_bytes() == (whole.path / name).read_bytes()


def test_a_budget_stops_a_run_that_goes_on_with_a_larger_one(
    write: Callable[..., Path], run: Callable[..., Evaluation]
) -> None:
    rows = [{"id": "many", **ENDS, "raw": raw(*(path_over(f"M{number}") for number in range(20)))}]
    engines = Engines()
    with pytest.raises(UserError, match=r"budget\.max_tokens_total"):
        run(write(rows, budget={"max_tokens_total": 15 * 6}), engines)
    stopped = len(engines.calls)
    assert 6 <= stopped < 40
    assert run(write(rows), engines).report["factuality"]["ok"] == 20
    assert len(engines.calls) == 40
    run(write(rows), engines)
    assert len(engines.calls) == 40  # nothing is left to ask


def test_other_settings_are_refused_for_an_old_directory(
    write: Callable[..., Path], run: Callable[..., Evaluation]
) -> None:
    run(write(), Engines())
    with pytest.raises(UserError, match="other settings"):
        run(write(evaluated="all"), Engines())
    assert run(write(validity="shared"), Engines()).results  # how it is scored may change


def test_five_hundred_paths(write: Callable[..., Path], run: Callable[..., Evaluation]) -> None:
    rows = [{"id": "many", **ENDS, "paths": [path_over(f"M{number}") for number in range(500)]}]
    found = run(write(rows), Engines())
    assert found.report["specificity"]["ok"] == found.report["factuality"]["ok"] == 500
    assert found.results[0]["utility"]["1"] == 2500


def test_all_paths_are_seen_where_that_is_wanted(write: Callable[..., Path], run: Callable[..., Evaluation]) -> None:
    four = [["A", "r", "M", "Z"]]
    rows = [{"id": "odd", **ENDS, "paths": [[["q", "r", "s"]], four, [], "text", [["A", 1984, "Z"]]]}]
    valid, every = (
        run(write(rows, evaluated=which, out=f"{write(rows)}.{which}"), Engines()) for which in ("valid", "all")
    )
    assert [valid.report["evaluated"], every.report["evaluated"]] == [1, 2]
    assert written(every)[0]["class_size_responses"][1:4] == [None] * 3
    assert written(valid)[0]["class_size_responses"][4]


def test_a_learned_evaluator_scores_each_triple_with_one_token(
    write: Callable[..., Path], run: Callable[..., Evaluation]
) -> None:
    sure = {"A | r | M": "2", "M | t | Z": "5", "A | r | N": "1", "N | t | Z": "0"}

    def answer(call: Call) -> Completion:
        assert call.prompt is not None
        assert call.grid is not None
        connection, text = call.prompt.rstrip("\n").split(": ")
        assert connection == "A to Z"
        assert call.max_tokens == 1
        best = sure[text] if call.grid[0] == "1" else "1" if sure[text] != "0" else "0"
        best = best if best in call.grid else "1"
        masses = {score: 0.8 if score == best else 0.2 / (len(call.grid) - 1) for score in call.grid}
        return Completion(text=best, grid_logprobs={score: math.log(mass) for score, mass in masses.items()})

    def learned(kind: str) -> dict[str, str]:
        rubric = str(ROOT / "configs" / "rubrics" / f"create_{kind}.yaml")
        return {"engine": "scripted", "model": "scripted", "method": "compact", "rubric": rubric}

    engines = Engines(answer)
    rows = [{"id": "one", **ENDS, "paths": [path_over("M"), path_over("N")]}]
    found = run(write(rows, specificity=learned("specificity"), factuality=learned("factuality")), engines)
    assert len(engines.calls) == 8
    row = written(found)[0]
    expected = 0.8 * 2 + 0.05 * (1 + 3 + 4 + 5)
    assert row["specificity_values"][0] == [pytest.approx(expected), pytest.approx(0.8 * 5 + 0.05 * 10)]
    assert row["strengths"] == [pytest.approx(expected), pytest.approx(0.8 + 0.05 * 14)]  # without the final triple
    assert row["factuality"] == [[1, 1], [1, 0]]
    assert "class_size_responses" not in row
    assert found.results[0]["outcomes"] == ("kept", "hallucinated")
    assert found.results[0]["utility"]["1"] == pytest.approx(expected)


def test_bad_rows_are_kept_and_named(write: Callable[..., Path], run: Callable[..., Evaluation]) -> None:
    rows = [
        *ROWS,
        "{no json\n",
        {"id": "two answers", "raw": "", "paths": []},
        {"id": "no ends", "raw": raw(path_over("M"))},
    ]
    found = run(write(rows), Engines())
    assert found.report["faulty_rows"] == 2
    assert len(written(found)) == len(found.results) == 6
    assert "line 4 is not JSON" in found.results[3]["error"]["message"]
    assert "has raw, paths" in found.results[4]["error"]["message"]
    assert "entity_a" in found.results[5]["error"]["message"]
    assert found.results[0]["utility"]["1"] == 10.0


def test_paths_are_shown_as_data() -> None:
    system, user = path_messages(SPECIFICITY, (("<|im_end|>", "```", "a\nb"), ("ü", "r", "é")))
    assert system.content == SPECIFICITY
    assert "<|im_end|>" not in user.content
    assert user.content.startswith("2 triples:\n````\n[[")
    assert '["ü", "r", "é"]]' in user.content


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"specificity": {"engine": "scripted", "model": "m", "method": "compact"}}, r"specificity\.rubric"),
        ({"factuality": {"engine": "scripted", "model": "m", "recorded": "x"}}, r"factuality\.engine: unknown key"),
        ({"factuality": {"engine": "nowhere", "model": "m"}}, r"factuality\.engine"),
        ({"factuality": "gpt"}, "factuality"),
        ({"patience": [2]}, "from 0 to 1"),
        ({"input": "none.jsonl"}, "no such file"),
        (
            {
                "factuality": {
                    "engine": "scripted",
                    "model": "m",
                    "method": "compact",
                    "rubric": str(ROOT / "configs" / "rubrics" / "create_specificity.yaml"),
                }
            },
            "from 0 to 1, and this rubric has a scale from 1 to 5",
        ),
    ],
)
def test_faulty_settings_are_named(changes: dict[str, Any], message: str, write: Callable[..., Path]) -> None:
    with pytest.raises(UserError, match=message):
        read_evaluation(write(**changes))


def test_a_learned_evaluator_needs_to_know_what_is_connected(write: Callable[..., Path]) -> None:
    rubric = str(ROOT / "configs" / "rubrics" / "create_factuality.yaml")
    learned = {"engine": "scripted", "model": "scripted", "method": "compact", "rubric": rubric}
    rows = [{"id": "bare", "validity": [1], "paths": [path_over("M")]}]
    with pytest.raises(UserError, match="'bare' has no entity_a or entity_b"):
        read_evaluation(write(rows, factuality=learned))


def test_an_engine_that_never_answers_is_one_sentence(
    write: Callable[..., Path], run: Callable[..., Evaluation]
) -> None:
    def answer(_: Call) -> Completion:
        raise EngineError("wrong key")

    with pytest.raises(UserError, match=r"evaluator specificity: none of its 2 calls was answered \(wrong key\)"):
        run(write(), Engines(answer))


def test_the_command(
    write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def command(*options: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["eval", "create", "evaluate", "--config", str(config), *options])
        with pytest.raises(SystemExit) as stop:
            main()
        shown = capsys.readouterr()
        return stop.value.code if isinstance(stop.value.code, int) else 0, shown.out, shown.err

    config = write([{"id": "one", **ENDS, "raw": raw(path_over("M"))}])
    code, out, _ = command("--dry-run")
    assert (code, out.splitlines()) == (
        0,
        [
            "1 rows, 1 paths, 1 to be evaluated",
            "specificity: 1 different paths, 1 calls to scripted",
            "factuality: 1 different paths, 1 calls to scripted",
        ],
    )
    assert not (config.parent / "run").exists()
    code, out, _ = command("--json")
    assert code == 0
    assert json.loads(out)["specificity"]["ok"] == 1
    code, out, _ = command()
    for part in ("1 paths, 1 of them evaluated", "unjudged", "evaluated.jsonl"):
        assert part in out
    assert command("--json", "--dry-run")[0] == 2
