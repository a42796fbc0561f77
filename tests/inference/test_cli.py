"""The command line: quick help, one-line errors, exit codes."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
HEAVY = ("torch", "vllm", "openai", "transformers", "peft", "pandas", "sklearn", "scipy", "wandb")


def inference(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "inference", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)


def test_help_lists_the_commands_within_a_second() -> None:
    inference("--help")  # writes the bytecode
    seconds = []
    for _ in range(3):
        started = time.monotonic()
        done = inference("--help")
        seconds.append(time.monotonic() - started)
    assert done.returncode == 0
    assert all(command in done.stdout for command in ("judge", "serve", "service", "check-adapter", "rubric"))
    assert min(seconds) < 1.0


@pytest.mark.parametrize("arguments", [["--help"], ["judge", "--help"], ["rubric", "show", "configs/rubrics/aut.yaml"]])
def test_light_commands_import_nothing_heavy(arguments: list[str]) -> None:
    code = (
        "import sys\nfrom inference.cli import app\n"
        f"try: app({arguments!r})\nexcept SystemExit: pass\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


def test_rubric_show_and_check(tmp_path: Path) -> None:
    shown = inference("rubric", "show", "configs/rubrics/aut.yaml")
    assert shown.returncode == 0
    assert "- originality (1 to 5)" in shown.stdout
    checked = inference("rubric", "check", "configs/rubrics/aut.yaml")
    assert "is a valid rubric: use.originality [1, 5]" in checked.stdout
    counted = inference("rubric", "check", "cgpst").stdout
    assert "6 steps, 23 dimensions asked or derived per step, 31 scored with sums, 20 reported" in counted
    text = (ROOT / "configs" / "rubrics" / "aut.yaml").read_text().replace("[1, 5]", "[5, 1]")
    (tmp_path / "mine.yaml").write_text(text)
    refused = inference("rubric", "check", tmp_path / "mine.yaml")
    assert refused.returncode == 2
    assert "inverted" in refused.stderr


def config(folder: Path, **judge: object) -> Path:
    (folder / "r.csv").write_text("id,scenario,response\na,rope,swing\n")
    content = {
        "rubric": "configs/rubrics/aut.yaml",
        "input": str(folder / "r.csv"),
        "judges": {"id": "j", "engine": "scripted", "model": "m", "method": "compact", **judge},
        "out": str(folder / "run"),
    }
    (folder / "c.yaml").write_text(yaml.safe_dump(content))
    return folder / "c.yaml"


def test_judge_end_to_end(tmp_path: Path) -> None:
    done = inference("judge", "--config", config(tmp_path))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run" / "scores.csv").read_text().startswith("id,j_value,j_top,j_unscored\na,")
    assert done.stderr.startswith("j: 1 of 1")


def test_the_summary_has_a_mean_where_there_is_one_scale(tmp_path: Path) -> None:
    assert " mean " in inference("judge", "--config", config(tmp_path)).stdout
    (tmp_path / "several").mkdir()
    path = config(tmp_path / "several")
    steps = [f"step{number}" for number in range(1, 7)]
    texts = {step: "1. something" for step in steps}
    (tmp_path / "several" / "r.jsonl").write_text(json.dumps({"id": "a", "scenario": "b", **texts}))
    content = yaml.safe_load(path.read_text())
    content |= {"rubric": "cgpst", "input": str(tmp_path / "several" / "r.jsonl")}
    path.write_text(yaml.safe_dump(content))
    done = inference("judge", "--config", path)
    assert done.returncode == 0, done.stderr
    assert "coverage" in done.stdout
    assert " mean " not in done.stdout
    header = (tmp_path / "several" / "run" / "scores.csv").read_text().splitlines()[0].split(",")
    assert {"j_step2.integrity_value", "j_step1.overall_value", "j_total.total_value"} <= set(header)


@pytest.mark.parametrize(
    ("judge", "says"),
    [
        ({"method": "guess"}, "judges.0.method"),
        ({"temprature": 1}, "judges.0.temprature: unknown key"),
        ({"adapter": "a"}, "engine scripted takes no adapter"),
        ({"engine": "hf", "model": "no/such/model"}, "no/such/model: no model directory"),
        ({"id": "a b"}, "judges.0.id"),
    ],
)
def test_a_users_mistake_is_one_line_without_a_traceback(tmp_path: Path, judge: dict[str, object], says: str) -> None:
    done = inference("judge", "--config", config(tmp_path, **judge))
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_an_unreachable_server_is_one_line_and_costs_nothing(tmp_path: Path) -> None:
    path = config(tmp_path, engine="openai", base_url="http://127.0.0.1:9/v1", max_retries=1, method="direct")
    done = inference("judge", "--config", path)
    assert done.returncode == 2
    assert "error: judge j: none of its 1 calls was answered" in done.stderr
    assert "127.0.0.1:9" in done.stderr
    assert "Traceback" not in done.stderr
    assert (tmp_path / "run" / "judgements.jsonl").read_bytes() == b""


@pytest.mark.parametrize("path", sorted((ROOT / "configs" / "judging").glob("*.yaml")), ids=lambda path: path.stem)
def test_every_judging_config_says_how_it_is_used_and_loads(path: Path) -> None:
    from inference.config import load_config
    from inference.judge import JudgingConfig

    config = load_config(path, JudgingConfig)
    assert (ROOT / config.rubric).is_file()
    assert (ROOT / config.input).is_file()
    assert f"--config configs/judging/{path.name}" in path.read_text()


def test_a_terminal_of_another_encoding_is_no_obstacle(tmp_path: Path) -> None:
    path = config(tmp_path)
    path.write_text(path.read_text().replace(str(tmp_path / "run"), str(tmp_path / "läufe-評価")), encoding="utf-8")
    command = [sys.executable, "-m", "inference", "judge", "--config", str(path)]
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, env=environment, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "läufe-??".encode("latin-1") in done.stdout
