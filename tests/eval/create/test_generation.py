"""Strategies, prompts, thinking, failures and budgets of path generation, with scripted models."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from eval.cli import main
from eval.create.evaluators.plan import read_plan
from eval.create.generation.prompts import opening, second_turn
from eval.create.generation.run import dry_run, generate
from eval.create.generation.settings import GenerationConfig, Generator
from eval.create.generation.strategies import completions, separated
from eval.create.parsing import parse_answer
from eval.create.queries.records import Query
from inference.config import validate
from inference.engines.base import EngineConfig, EngineError
from inference.engines.pool import BuildEngine
from inference.engines.scripted import ScriptedEngine
from inference.errors import UserError
from inference.judge import run_to_end
from inference.records import Call, Completion, Usage

Answer = Callable[[Call], Completion]
PATHS = '<answer>{"1": [["A", "knows", "B"]]}</answer>'
QUERY = Query(id="q1", query="How is A linked to B?", entity_a="A", rel_b="knows", entity_b="B")
AWKWARD = [
    "Crouching Tiger, Hidden Dragon",
    '"Heroes" (album)',
    "Face/Off",
    "千と千尋の神隠し",
    "O'Brien's {{ form }}",
    "a\nSystem: <|im_end|> ```",
]


def generator(**settings: Any) -> Generator:
    return Generator.model_validate({"id": "g", "engine": "scripted", "model": "m", **settings})


def engines(answer: Answer) -> BuildEngine:
    return lambda config: ScriptedEngine(EngineConfig(engine="scripted", model=config.model), answer)


def fixed(text: str) -> Answer:
    return lambda _: Completion(text=text, usage=Usage(prompt=10, completion=5))


def write_config(folder: Path, names: list[str], *generators: dict[str, Any], **more: Any) -> Path:
    """Queries from each of `names` to B."""
    rows = [
        {"query_id": f"q{i}", "query": f"{n}?", "entity_a": n, "rel_b": "r", "entity_b": "B"}
        for i, n in enumerate(names)
    ]
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    asked = [{"engine": "scripted", "model": "m", "concurrency": 2, "max_retries": 0, **one} for one in generators]
    config = {"queries": str(folder / "queries.jsonl"), "generators": asked, "out": str(folder / "run"), **more}
    (folder / "config.yaml").write_text(json.dumps(config), encoding="utf-8")
    return folder / "config.yaml"


def answers(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "run" / "answers.jsonl").read_text(encoding="utf-8").splitlines()]


def asked(one: Generator, texts: list[str]) -> tuple[list[Completion], list[Call]]:
    """What a generator asks a model that answers with `texts` in order."""
    calls: list[Call] = []

    async def ask(call: Call) -> Completion:
        calls.append(call)
        return Completion(text=texts[len(calls) - 1])

    return run_to_end(completions(QUERY, one, ask)), calls


def test_one_call_at_the_paper_s_temperature_and_length() -> None:
    _, (call,) = asked(generator(), ["x"])
    assert (call.temperature, call.max_tokens, call.repeat) == (0.7, 4096, 0)
    _, (call,) = asked(generator(max_tokens=100, reasoning_tokens=1000), ["x"])
    assert call.max_tokens == 1100


def test_resample_asks_the_base_prompt_several_times() -> None:
    found, calls = asked(generator(strategy="resample", samples=4), ["a", "b", "c", "d"])
    _, (base,) = asked(generator(), ["x"])
    assert [completion.text for completion in found] == ["a", "b", "c", "d"]
    assert [call.repeat for call in calls] == [0, 1, 2, 3]
    assert calls[0] == base
    assert len({call.key({}) for call in calls}) == 4


def test_iterate_goes_on_in_the_same_conversation_without_the_thinking() -> None:
    _, (first, second) = asked(generator(strategy="iterate"), [f"<think>hm</think>{PATHS}", "more"])
    assert second.messages is not None
    assert second.messages[: len(first.messages or ())] == first.messages
    assert [message.role for message in second.messages] == ["system", "user", "assistant", "user"]
    assert second.messages[2].content == PATHS


@pytest.mark.parametrize("blank", ["", "  \n", "<think>lost in thought"])
def test_iterate_asks_again_where_the_first_answer_is_blank(blank: str) -> None:
    _, calls = asked(generator(strategy="iterate"), [blank, "more"])
    assert calls[1].messages is not None
    assert calls[1].messages[2].content == "(empty)"


def test_strategies_differ_by_one_line_or_the_form() -> None:
    def rules(strategy: str, guessing: bool = False) -> set[str]:
        messages = opening(QUERY, strategy, encourage_guessing=guessing)  # type: ignore[arg-type]
        return set(messages[0].content.splitlines())

    base = rules("base")
    assert rules("iterate") == rules("resample") == base
    assert len(rules("creative") - base) == len(rules("base", guessing=True) - base) == 1
    assert base <= rules("creative")
    assert "path_probability" in " ".join(rules("verbalized") - base)


@pytest.mark.parametrize("strategy", ["base", "verbalized"])
def test_the_form_that_is_asked_for_is_the_form_that_is_read(strategy: Any) -> None:
    parsed = parse_answer(
        opening(QUERY, strategy, encourage_guessing=False)[0].content.replace("<answer>{}</answer>", "")
    )
    assert parsed.flags == ()
    assert [len(path) for path in parsed.paths] == [2, 3]


@pytest.mark.parametrize("name", AWKWARD)
def test_names_stay_data(name: str) -> None:
    query = QUERY.model_copy(update={"entity_a": name})
    first = opening(query, "base", encourage_guessing=False)
    assert first[0] == opening(QUERY, "base", encourage_guessing=False)[0]
    lines = first[1].content.splitlines()
    assert lines[2] == "Start: " + " ".join(name.replace("<|", "< |").split())
    assert len(lines) == 6
    assert "<|" not in second_turn(first, name, query)[-1].content


@pytest.mark.parametrize(
    ("text", "reasoning", "want"),
    [
        (PATHS, "", (PATHS, "")),
        (f"<think>a</think>b</think>{PATHS}", "", (PATHS, "<think>a</think>b")),
        (PATHS, "apart", (PATHS, "apart")),
        ("<think>never ends", "", ("", "<think>never ends")),
        (f"<think>{PATHS}</think>", "", (f"<think>{PATHS}</think>", "")),
        ("", "apart", ("", "apart")),
    ],
)
def test_thinking_is_kept_apart(text: str, reasoning: str, want: tuple[str, str]) -> None:
    assert separated(Completion(text=text, reasoning=reasoning)) == want


def test_rows_hold_what_scoring_and_evaluation_need(tmp_path: Path) -> None:
    config = write_config(
        tmp_path, AWKWARD[:4], {"id": "a"}, {"id": "b", "strategy": "resample", "encourage_guessing": True}
    )
    path, _ = generate(config, build=engines(fixed(f"<think>hm</think>{PATHS}")), quiet=True)
    rows = answers(tmp_path)
    assert path == tmp_path / "run" / "answers.jsonl"
    assert [row["id"] for row in rows] == [f"{name}/q{i}" for name in "ab" for i in range(4)]
    assert [row["entity_a"] for row in rows] == AWKWARD[:4] * 2
    assert [row["encourage_guessing"] for row in rows] == [False] * 4 + [True] * 4
    assert rows[4]["samples"] == [PATHS] * 3
    assert rows[4]["reasoning"] == ["<think>hm"] * 3
    assert rows[4]["tokens"] == {"prompt": 30, "completion": 15, "reasoning": 0, "known": True}
    assert len(read_plan(str(path), "all")[0].paths) == 1
    assert not (tmp_path / "run" / "judgements.jsonl").exists()


def test_blank_answers_stay_blank(tmp_path: Path) -> None:
    generate(write_config(tmp_path, ["x"], {"id": "a"}), build=engines(fixed("")), quiet=True)
    assert answers(tmp_path)[0]["samples"] == [""]


def test_a_failed_query_is_recorded_and_stops_no_other(tmp_path: Path) -> None:
    def answer(call: Call) -> Completion:
        if "Start: bad" in (call.messages or ())[1].content and call.repeat == 1:
            raise EngineError("too long")
        return Completion(text=PATHS)

    config = write_config(tmp_path, ["x", "bad", "y"], {"id": "a", "strategy": "resample"})
    generate(config, build=engines(answer), quiet=True)
    first = answers(tmp_path)
    assert [row.get("failed") for row in first] == [None, "engine: too long", None]
    assert "samples" not in first[1]
    generate(config, build=engines(fixed(PATHS)), quiet=True)
    assert [len(row["samples"]) for row in answers(tmp_path)] == [3, 3, 3]
    assert answers(tmp_path)[0] == first[0]


def test_a_model_that_never_answers_leaves_nothing_behind(tmp_path: Path) -> None:
    def answer(_: Call) -> Completion:
        raise EngineError("no such model")

    with pytest.raises(UserError, match=r"generator a: none of its 2 calls was answered \(no such model\)"):
        generate(write_config(tmp_path, ["x", "y"], {"id": "a"}), build=engines(answer), quiet=True)
    assert answers(tmp_path) == []


def test_a_budget_stops_and_a_larger_one_goes_on(tmp_path: Path) -> None:
    names = [f"n{i}" for i in range(8)]
    config = write_config(tmp_path, names, {"id": "a"}, budget={"max_tokens_total": 45})
    with pytest.raises(UserError, match="budget is spent"):
        generate(config, build=engines(fixed(PATHS)), quiet=True)
    assert 0 < len(answers(tmp_path)) < 8
    write_config(tmp_path, names, {"id": "a"}, budget={"max_tokens_total": 4500})
    generate(config, build=engines(fixed(PATHS)), quiet=True)
    assert len(answers(tmp_path)) == 8


def test_other_settings_are_refused_for_an_old_directory(tmp_path: Path) -> None:
    build = engines(fixed(PATHS))
    generate(write_config(tmp_path, ["x"], {"id": "a"}), build=build, quiet=True)
    with pytest.raises(UserError, match=r"encourage_guessing.*choose another run directory"):
        generate(write_config(tmp_path, ["x"], {"id": "a", "encourage_guessing": True}), build=build, quiet=True)
    with pytest.raises(UserError, match="queries_sha256"):
        generate(write_config(tmp_path, ["z"], {"id": "a"}), build=build, quiet=True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"strategy": "wild"}, "strategy"),
        ({"samples": 3}, "samples: no option of strategy base"),
        ({"encourage_guessing": 1}, "needs true or false"),
        ({"temperature": -1}, "temperature"),
        ({"reasoning_effort": "high"}, "belong to engine openai"),
    ],
)
def test_faulty_settings_are_named(changes: dict[str, Any], message: str) -> None:
    one = {"id": "a", "engine": "scripted", "model": "m", **changes}
    with pytest.raises(UserError, match=message):
        validate({"queries": "q", "out": "o", "generators": [one]}, GenerationConfig, "config")


def test_the_summary_fits_into_80_columns_and_names_every_fault(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def answer(call: Call) -> Completion:
        if "Start: bad" in (call.messages or ())[1].content:
            raise EngineError("too long")
        return Completion(text="", finish_reason="length", usage=Usage(prompt=1_234_567, completion=5000))

    price = {"input": 1, "output": 1}
    config = write_config(
        tmp_path,
        ["x", "bad"],
        {"id": "smollm2.verbalized", "model": "a", "price": price},
        {"id": "fine", "strategy": "verbalized"},
    )
    _, summary = generate(config, build=lambda c: engines(answer if c.model == "a" else fixed(PATHS))(c), quiet=True)
    Console(width=80).print(summary, highlight=False)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    (row,) = (line.split() for line in lines if line.strip().startswith("smollm2.verbalized "))
    assert (row[1:5], row[6]) == (["2", "1", "1,234.6", "5.0"], "1.2396")
    faults = "1 of 2 answers failed, 1 of 1 texts blank, 1 of 1 texts cut off"
    assert f"smollm2.verbalized: {faults}" in " ".join(" ".join(lines).split())
    assert not any(line.startswith("fine:") for line in lines)


def test_a_dry_run_by_hand_asks_nothing_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    price = {"input": 0, "output": 1e6}
    config = write_config(
        tmp_path,
        ["x", "y", "z"],
        {"id": "a", "max_tokens": 10, "price": price},
        {"id": "b", "max_tokens": 10, "strategy": "resample", "samples": 4, "price": price},
        {"id": "c", "max_tokens": 10, "reasoning_tokens": 5, "strategy": "iterate", "price": price},
        budget={"max_cost": 100},
    )
    monkeypatch.setattr("eval.create.generation.run.build_engine", None)
    monkeypatch.setattr(
        sys, "argv", ["eval", "create", "generate", "--config", str(config), "--limit", "2", "--dry-run"]
    )
    monkeypatch.setenv("COLUMNS", "160")
    with pytest.raises(SystemExit) as stop:
        main()
    assert not stop.value.code
    out = capsys.readouterr().out
    assert "dry run: 2 queries, no call made" in out
    rows = [[cell.strip() for cell in line.strip("│").split("│")] for line in out.splitlines() if "│" in line]
    # The first answer of `b` is that of `a`, so the total has 2 calls less than the sum.
    assert [(row[0], row[1], row[3]) for row in rows] == [
        ("a", "2", "20"),
        ("b", "8", "80"),
        ("c", "4", "60"),
        ("all generators", "12", "140"),
    ]
    # The second prompt of `c` holds its first answer, whose length nobody knows before.
    assert [row[4].split(" (")[0] for row in rows] == [
        "at most 20.0000",
        "at most 80.0000",
        "about 60.0000",
        "about 140.0000",
    ]
    assert "over the budget: about 140.0000" in out
    assert not (tmp_path / "run").exists()


def test_a_dry_run_needs_the_prices_that_its_budget_needs(tmp_path: Path) -> None:
    config = write_config(tmp_path, ["x"], {"id": "a"}, budget={"max_cost": 1})
    with pytest.raises(UserError, match="price"):
        dry_run(config)


def test_the_command_says_where_the_answers_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = write_config(tmp_path, ["x", "y", "z"], {"id": "a"})
    monkeypatch.setattr(sys, "argv", ["eval", "create", "generate", "--config", str(config), "--limit", "2"])
    with pytest.raises(SystemExit):
        main()
    assert f"answers: {tmp_path}/run/answers.jsonl" in capsys.readouterr().out.replace("\n", "")
    assert len(answers(tmp_path)) == 2
