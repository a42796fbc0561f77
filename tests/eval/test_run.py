"""Running an evaluation: files written, resume, recorded judges beside asked ones, refusals."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from eval.run import EvalConfig, evaluate
from inference.config import load_config
from inference.engines.base import EngineConfig, EngineError
from inference.engines.scripted import ScriptedEngine
from inference.errors import UserError
from inference.records import Call, Completion

ROOT = Path(__file__).parents[2]
FILES = ("judgements.jsonl", "samples.jsonl", "metrics.jsonl", "scores.csv", "report.md", "report.html")

WriteConfig = Callable[..., Path]


def scripted(identifier: str = "fake", **settings: Any) -> dict[str, Any]:
    """A judge without a model, as a config holds it."""
    return {"id": identifier, "engine": "scripted", "model": "scripted", "method": "compact", **settings}


def files_of(run: Path) -> dict[str, bytes]:
    return {name: (run / name).read_bytes() for name in FILES}


class Counting:
    """Builds scripted engines that count their calls, and fail on the calls numbered in `failing`."""

    def __init__(self, failing: tuple[int, ...] = ()) -> None:
        self.calls = 0
        self._failing = failing

    def __call__(self, config: EngineConfig) -> ScriptedEngine:
        honest = ScriptedEngine(config)

        def answer(call: Call) -> Completion:
            self.calls += 1
            if self.calls in self._failing:
                raise EngineError("broken")
            return honest._draw(call)

        return ScriptedEngine(config, answer)


def test_recorded_and_asked_judges_share_one_table(write_config: WriteConfig, tmp_path: Path) -> None:
    report = evaluate(write_config(judges=[scripted()]), quiet=True)
    pearson = {
        (row.judge, row.method): row.value for row in report.rows if (row.metric, row.score) == ("pearson", "value")
    }
    assert list(pearson) == [("fake", "compact"), ("exact", "recorded"), ("reversed", "recorded")]
    assert pearson["exact", "recorded"] == pytest.approx(1)
    assert pearson["reversed", "recorded"] == pytest.approx(-1)
    mae = next(row for row in report.rows if (row.judge, row.metric, row.score) == ("reversed", "mae", "top"))
    assert mae.value == pytest.approx(26 / 12)
    assert (mae.n, mae.coverage, mae.simulated) == (12, 1.0, False)
    lines = (tmp_path / "run" / "judgements.jsonl").read_text().splitlines()
    assert [json.loads(line)["judge"] for line in lines] == ["fake"] * 12 + ["exact"] * 12 + ["reversed"] * 12


def test_samples_hold_no_texts(write_config: WriteConfig, tmp_path: Path) -> None:
    evaluate(write_config(judges=[scripted()]), quiet=True)
    for name in FILES:
        assert b"secret text" not in (tmp_path / "run" / name).read_bytes()
    first = json.loads((tmp_path / "run" / "samples.jsonl").read_text().splitlines()[0])
    assert first == {
        "id": "s0",
        "scenario": "rope",
        "human": {"human": {"use.originality": 1.0}},
        "length": {"use": len("secret text 0")},
        "splits": ["test"],
        "benchmark": "aut",
        "simulated": False,
    }


def test_scores_by_id_are_written(write_config: WriteConfig, tmp_path: Path) -> None:
    evaluate(write_config(), quiet=True)
    with (tmp_path / "run" / "scores.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert rows[1] == {
        "id": "s1",
        "exact_value": "2.000000",
        "exact_top": "2.000000",
        "exact_unscored": "",
        "reversed_value": "4.000000",
        "reversed_top": "4.000000",
        "reversed_unscored": "",
    }


def test_the_same_command_again_asks_nothing_and_changes_nothing(write_config: WriteConfig, tmp_path: Path) -> None:
    config, first, second = write_config(judges=[scripted()]), Counting(), Counting()
    evaluate(config, quiet=True, build=first)
    before = files_of(tmp_path / "run")
    evaluate(config, quiet=True, build=second)
    assert (first.calls, second.calls) == (12, 0)
    assert files_of(tmp_path / "run") == before


def test_failed_judgements_are_asked_again_though_recorded_ones_follow_them(
    write_config: WriteConfig, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = write_config(judges=[scripted(max_retries=0)])
    whole = evaluate(config, out=tmp_path / "whole", quiet=True)
    broken, repaired = Counting(failing=(3, 7)), Counting()
    evaluate(config, quiet=True, build=broken)
    assert "fake: 2 of 12 judgements failed" in capsys.readouterr().err
    partial = next(json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").open())
    assert (partial["judge"], partial["n"], partial["coverage"]) == ("fake", 10, pytest.approx(10 / 12))
    assert evaluate(config, quiet=True, build=repaired).rows == whole.rows
    assert repaired.calls == 2
    judgements = [(tmp_path / run / "judgements.jsonl").read_bytes() for run in ("run", "whole")]
    assert judgements[0] == judgements[1]


def test_a_run_cut_in_a_line_is_completed(write_config: WriteConfig, tmp_path: Path) -> None:
    config = write_config(judges=[scripted()])
    evaluate(config, quiet=True)
    before, file = files_of(tmp_path / "run"), tmp_path / "run" / "judgements.jsonl"
    for kept in (len(before["judgements.jsonl"]) - 20, 1500):  # in a recorded judgement, and in an asked one
        file.write_bytes(before["judgements.jsonl"][:kept])
        evaluate(config, quiet=True)
        assert files_of(tmp_path / "run") == before


def test_a_limit_takes_the_first_samples(write_config: WriteConfig) -> None:
    report = evaluate(write_config(judges=[scripted()]), limit=4, quiet=True)
    assert {row.n for row in report.rows} == {4}


def test_another_config_is_refused_and_leaves_the_run_as_it_is(write_config: WriteConfig, tmp_path: Path) -> None:
    evaluate(write_config(), quiet=True)
    before = files_of(tmp_path / "run")
    with pytest.raises(UserError, match=r"was made with other settings \(changed: .*seed"):
        evaluate(write_config(seed=1), quiet=True)
    with pytest.raises(UserError, match="changed: limit"):
        evaluate(write_config(), limit=3, quiet=True)
    assert files_of(tmp_path / "run") == before


def test_changed_data_count_as_another_config(write_config: WriteConfig, tmp_path: Path) -> None:
    config = write_config()
    evaluate(config, quiet=True)
    (tmp_path / "scores.csv").write_text((tmp_path / "scores.csv").read_text().replace("s0,1.0", "s0,1.5"))
    with pytest.raises(UserError, match=r"changed: inputs_sha256\.recorded\.0"):
        evaluate(config, quiet=True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"recorded": None}, "no judge to evaluate"),
        ({"judges": [scripted(), scripted()]}, r"judge ids \['fake'\] occur twice"),
        ({"judges": [scripted("exact")]}, r"\['exact'\] are both recorded and to be asked"),
        ({"resample": 3}, "resample: unknown key"),
        ({"benchmark": {"name": "aut", "test": "none.csv"}}, "none.csv: no such file"),
        ({"recorded": [{"file": "none.csv", "judges": []}]}, r"recorded\.0\.judges: .* at least 1 item"),
        ({"recorded": [{"file": "none.csv"}]}, "none.csv: no such file"),
        ({"judges": [scripted() | {"engine": "hf", "model": "no/model"}]}, "no/model: no model directory"),
    ],
)
def test_faults_of_a_config_are_found_before_anything_is_written(
    changes: dict[str, Any], message: str, write_config: WriteConfig, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=message):
        evaluate(write_config(**changes), quiet=True)
    assert not (tmp_path / "run").exists()


def test_the_same_file_twice_is_refused(write_config: WriteConfig, tmp_path: Path) -> None:
    entry = {"file": str(tmp_path / "scores.csv")}
    with pytest.raises(UserError, match="two files hold the same judge"):
        evaluate(write_config(recorded=[entry, entry | {"judges": ["exact"]}]), quiet=True)


CONFIGS = sorted((ROOT / "configs" / "eval").glob("*.yaml"))


@pytest.mark.parametrize(
    "path", [path for path in CONFIGS if "python -m eval run " in path.read_text()], ids=lambda path: path.stem
)
def test_every_config_loads_and_says_how_it_is_used(path: Path) -> None:
    config = load_config(path, EvalConfig)
    assert (ROOT / config.rubric).is_file()
    assert f"python -m eval run --config configs/eval/{path.name}" in path.read_text(encoding="utf-8")
    assert set(yaml.safe_load(path.read_text(encoding="utf-8"))) <= set(EvalConfig.model_fields)
