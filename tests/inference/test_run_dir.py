"""The run directory: resume, refusal of changes, lock, and what is written about where results come from."""

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import pytest
import yaml

from inference.errors import UserError
from inference.judges import JudgeConfig, resolved_judge
from inference.prompts import template_digest
from inference.records import Completion, Judgement
from inference.run_dir import RunDir


def judged(path: Path) -> None:
    """A run of `settings` that holds a judgement."""
    with RunDir.open(path, settings()) as run:
        run.judgements.append([Judgement(sample_id="a", judge="j", method="direct", rubric="r@0", scores=())])


def settings(**changes: object) -> dict[str, Any]:
    judge = {"id": "j", "engine": "scripted", "model": "m", "method": "direct", **changes}
    return {"input": "a.csv", "judges": [resolved_judge(JudgeConfig.model_validate(judge))]}


def test_a_directory_of_the_same_settings_is_resumed(tmp_path: Path) -> None:
    with RunDir.open(tmp_path / "run", settings()) as run:
        assert not run.resumed
        run.log("a note")
    with RunDir.open(tmp_path / "run", settings()) as run:
        assert run.resumed
    log = (tmp_path / "run" / "log.txt").read_text()
    assert [word in log for word in ("started: {", "a note", "resumed: {")] == [True] * 3
    written = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())
    assert written == {**settings(), "prompt_templates": template_digest()}


def test_the_environment_is_recorded(tmp_path: Path) -> None:
    with RunDir.open(tmp_path / "run", settings()):
        found = json.loads((tmp_path / "run" / "environment.json").read_text())
    assert found["prompt_templates"] == template_digest()
    assert found["packages"]["pydantic"]
    assert found["git"] is None or len(found["git"]["commit"]) == 40


def test_changed_settings_are_refused_by_name_and_nothing_is_touched(tmp_path: Path) -> None:
    judged(tmp_path / "run")
    before = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    with pytest.raises(UserError, match=r"changed: judges\.0\.temperature, judges\.0\.repeats\); choose another"):
        RunDir.open(tmp_path / "run", settings(temperature=1.0, repeats=2))
    with pytest.raises(UserError, match=r"changed: more"):
        RunDir.open(tmp_path / "run", {**settings(), "more": 1})
    with pytest.raises(UserError, match=r"changed: judges\)"):
        RunDir.open(tmp_path / "run", {"input": "a.csv", "judges": []})
    assert {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()} == before


def test_settings_that_touch_no_answer_may_change(tmp_path: Path) -> None:
    with RunDir.open(tmp_path / "run", settings()):
        pass
    with RunDir.open(tmp_path / "run", settings(concurrency=2, max_retries=9, price={"input": 1, "output": 2})) as run:
        assert run.resumed
    written = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())
    assert written["judges"][0]["concurrency"] == 2


def test_they_may_change_of_analysts_too_and_so_may_the_budget(tmp_path: Path) -> None:
    def creaeval(price: float) -> dict[str, Any]:
        analyst = {"engine": "scripted", "model": "a", "price": {"input": price, "output": price}}
        return {**settings(method="creaeval", analyst=analyst), "budget": {"max_cost": price}}

    for price in (1, 2):
        with RunDir.open(tmp_path / "run", creaeval(price)) as run:
            run.judgements.append([Judgement(sample_id="a", judge="j", method="creaeval", rubric="r@0", scores=())])
            assert run.resumed == (price == 2)


@pytest.mark.parametrize("place", ["rubric", "columns", "price", "judges"])
def test_their_names_are_free_nowhere_else(tmp_path: Path, place: str) -> None:
    """A rubric of prices, with a step `price`, is another rubric where that step changes."""

    def named(value: str) -> dict[str, Any]:
        if place == "price":
            return {**settings(), "price": value}
        if place == "judges":
            return {"judges": [{"options": {"price": value}}]}
        return {**settings(), place: {"price": value, "budget": value}}

    for value in ("first", "first"):
        with RunDir.open(tmp_path / "run", named(value)) as run:
            run.judgements.append([Judgement(sample_id="a", judge="j", method="direct", rubric="r@0", scores=())])
    with pytest.raises(UserError, match=rf"changed: {place}"):
        RunDir.open(tmp_path / "run", named("second"))


def test_changed_prompt_templates_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judged(tmp_path / "run")
    monkeypatch.setattr("inference.run_dir.template_digest", lambda: "0" * 12)
    with pytest.raises(UserError, match="changed: prompt_templates"):
        RunDir.open(tmp_path / "run", settings())


def test_an_open_directory_is_locked_and_free_again_after(tmp_path: Path) -> None:
    with RunDir.open(tmp_path / "run", settings()), pytest.raises(UserError, match="another process"):
        RunDir.open(tmp_path / "run", settings())
    with RunDir.open(tmp_path / "run", settings()) as run:
        assert run.resumed


def test_other_directories_and_files_are_not_taken_over(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").touch()
    with pytest.raises(UserError, match="no run directory"):
        RunDir.open(tmp_path / "photos", settings())
    assert [path.name for path in (tmp_path / "photos").iterdir()] == ["cat.jpg"]
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot be used as a run directory"):
        RunDir.open(tmp_path / "file", settings())
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "config.yaml").write_text("[")
    with pytest.raises(UserError, match=r"config\.yaml is damaged"):
        RunDir.open(tmp_path / "broken", settings())


def test_a_start_that_died_at_once_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.lock").touch()
    (tmp_path / "run" / "config.yaml.new").write_text("inp")
    with RunDir.open(tmp_path / "run", settings()) as run:
        assert not run.resumed


def test_a_retrained_adapter_of_the_same_name_is_another_setting(tmp_path: Path) -> None:
    for name in ("model", "adapter"):
        (tmp_path / name).mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    (tmp_path / "adapter" / "adapter_config.json").write_text('{"peft_type": "LORA", "r": 4}')
    weights = tmp_path / "adapter" / "adapter_model.safetensors"
    weights.write_bytes(b"first weights")
    judge = JudgeConfig(
        id="j", engine="hf", model=str(tmp_path / "model"), adapter=str(tmp_path / "adapter"), method="compact"
    )
    first = resolved_judge(judge)
    weights.write_bytes(b"other weights, of another length")
    second = resolved_judge(judge)
    assert {key for key in first if first[key] != second[key]} == {"adapter_digest"}


def test_a_directory_without_results_takes_mended_settings(tmp_path: Path) -> None:
    with RunDir.open(tmp_path / "run", settings()):
        pass
    with RunDir.open(tmp_path / "run", settings(model="mended")) as run:
        assert not run.resumed
        asyncio.run(run.store.put("k", Completion(text="3"), 0.0, 1.0))
    written = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())
    assert written["judges"][0]["model"] == "mended"
    before = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    with pytest.raises(UserError, match=r"changed: judges\.0\.model"):
        RunDir.open(tmp_path / "run", settings())  # a stored call is a result
    assert {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()} == before


@pytest.mark.parametrize(
    "name", ["log.txt", "judgements.jsonl", "calls.sqlite", "environment.json.new", "config.yaml.new"]
)
def test_a_directory_in_a_files_place_is_a_sentence_and_nothing_stays_open(tmp_path: Path, name: str) -> None:
    with RunDir.open(tmp_path / "run", settings()):
        pass
    (tmp_path / "run" / "environment.json").unlink()
    (tmp_path / "run" / name).unlink(missing_ok=True)
    (tmp_path / "run" / name).mkdir()
    handlers = list(logging.getLogger("inference").handlers)
    with pytest.raises(UserError, match=name.removesuffix(".new")) as caught:
        RunDir.open(tmp_path / "run", settings())
    assert "\n" not in str(caught.value)
    assert logging.getLogger("inference").handlers == handlers
    (tmp_path / "run" / name).rmdir()
    with RunDir.open(tmp_path / "run", settings()):
        pass


@pytest.mark.parametrize("content", ["[" * 5000, "a: &x [*x]", "a: 2024-99-99", "a: 1\na: 2", "\0"])
def test_a_damaged_config_is_a_sentence(tmp_path: Path, content: str) -> None:
    (tmp_path / "config.yaml").write_text(content)
    with pytest.raises(UserError, match=r"config\.yaml is damaged"):
        RunDir.open(tmp_path, settings())
