"""The training command: bad input in one sentence before torch is imported, and a real run on the base model."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from inference.errors import UserError
from inference.records import Sample
from inference.samples import Columns
from training.command import parse
from training.settings import DataSettings, read_settings
from training.sft import load_parts

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "eval" / "benchmarks" / "samples"
MODEL = ROOT / "models" / "smollm2-135m"

needs_model = pytest.mark.skipif(
    not (MODEL / "config.json").exists(), reason="no base model: python scripts/base_model.py"
)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A complete config on the packaged sample data, with a model directory that holds a config.json only."""
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text("{}", encoding="utf-8")
    path = tmp_path / "train.yaml"
    path.write_text(
        f"rubric: {ROOT}/configs/rubrics/aut.yaml\n"
        f"train_file: {SAMPLES}/aut_demo_train.csv\n"
        f"validation_file: {SAMPLES}/aut_demo_val.csv\n"
        "columns: {scenario: object}\n"
        f"model_name_or_path: {model}\n"
        "use_peft: true\n"
        f"output_dir: {tmp_path}/out\n",
        encoding="utf-8",
    )
    return path


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-X", "importtime", "-m", "training.sft", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=120)


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["--train_file", "missing.csv"], "missing.csv: no such file"),
        (["--model_name_or_path", "nowhere"], "python scripts/base_model.py"),
        (["--rubric", "nothing.yaml"], "nothing.yaml: no such file"),
        (["--validation_share", "0.3"], "exactly one of validation_file and validation_share"),
        (["--max_rows", "many"], "max_rows"),
        (["--max_rows", "0"], "max_rows"),
        (["--validation_file", "null", "--validation_share", "all"], "validation_share"),
        (["--train_file", "[a, b]"], "train_file"),
        (["--model_name_or_path", "5"], "model_name_or_path has to be a path"),
        (["--hub_token", "secret"], "hub_token is not used here"),
        (["--max_rows"], "has no value"),
        (["--test_file", str(SAMPLES / "aut_demo_train.csv")], "300 test ids are in the train data"),
    ],
)
def test_bad_input_is_one_sentence_without_torch(config: Path, overrides: list[str], words: str) -> None:
    started = time.monotonic()
    done = run("--config", str(config), *overrides)
    assert done.returncode == 2
    lines = [line for line in done.stderr.splitlines() if not line.startswith("import time:")]
    assert len(lines) == 1
    assert lines[0].startswith("error: ")
    assert words in lines[0]
    assert "torch" not in {line.split("|")[-1].strip() for line in done.stderr.splitlines() if "|" in line}
    assert not (config.parent / "out").exists()
    assert time.monotonic() - started < 20


def test_missing_key_is_named(config: Path) -> None:
    config.write_text(config.read_text(encoding="utf-8").replace("use_peft", "#").replace("train_file", "#"))
    with pytest.raises(UserError, match=r"exactly one of train_file and benchmark"):
        read_settings(config, {})


def test_options_come_in_pairs() -> None:
    assert parse(["--config", "a.yaml", "--seed", "3"]) == ("a.yaml", {"seed": 3})
    for bad in (
        ["--seed", "3"],
        ["config", "a.yaml"],
        ["--config", "a.yaml", "--seed"],
        ["--config", "--seed", "1", "2"],
    ):
        with pytest.raises(UserError):
            parse(bad)


def test_share_splits_seven_to_three_without_overlap() -> None:
    data = DataSettings(
        rubric=str(ROOT / "configs" / "rubrics" / "aut.yaml"),
        train_file=str(SAMPLES / "aut_demo_train.csv"),
        validation_share=0.3,
        columns=Columns(scenario="object"),
    )
    _, parts = load_parts(data)
    assert len(parts["validation"]) == round(0.3 * 300)

    def ids(samples: list[Sample]) -> set[str]:
        return {sample.id for sample in samples}

    assert not ids(parts["train"]) & ids(parts["validation"])
    assert len(ids(parts["train"]) | ids(parts["validation"])) == 300


@pytest.mark.slow
@needs_model
def test_accelerate_launch_trains_tracks_and_documents_an_adapter(config: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    settings = {
        "model_name_or_path": str(MODEL),
        "test_file": str(SAMPLES / "aut_demo_test.csv"),
        "lora_r": "4",
        "lora_target_modules": "all-linear",
        "raft_weight": "4",
        "max_steps": "4",
        "per_device_train_batch_size": "8",
        "learning_rate": "5e-4",
        "logging_steps": "1",
        "eval_strategy": "steps",
        "eval_steps": "2",
        "save_steps": "2",
        "use_cpu": "true",
        "bf16": "false",
        "gradient_checkpointing": "false",
        "report_to": "wandb",
        "run_name": "aut_test",
    }
    options = [part for key, value in settings.items() for part in (f"--{key}", value)]
    command = [
        sys.executable,
        "-m",
        "accelerate.commands.launch",
        "--cpu",
        "--num_processes",
        "1",
        "-m",
        "training.sft",
    ]
    environment = {**os.environ, "WANDB_MODE": "offline", "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [*command, "--config", str(config), *options],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=500,
        env=environment,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Token audit" in done.stdout

    logged = [json.loads(line) for line in (out / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [entry["step"] for entry in logged if "loss" in entry] == [1, 2, 3, 4]
    assert [entry["step"] for entry in logged if "eval_pearson" in entry] == [2, 4]
    card = (out / "adapter" / "README.md").read_text(encoding="utf-8")
    for words in ("Data and split", "Intended use", "Limits", "| test | value |"):
        assert words in card
    files = {path.name for path in (out / "adapter").iterdir()}
    assert files == {"README.md", "adapter_config.json", "adapter_model.safetensors", "base_model.json", "judge.json"}
    assert list((out / "wandb").glob("offline-run-*/*.wandb"))
    assert (
        (out / "test_scores.csv")
        .read_text(encoding="utf-8")
        .startswith("id,aut_test_value,aut_test_top,aut_test_unscored\n")
    )

    again = run("--config", str(config), *options)
    assert again.returncode == 2
    assert "already trained" in again.stderr
    other = run("--config", str(config), *options, "--seed", "5")
    assert "changed: seed" in other.stderr


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"num_train_epochs": "abc"}, "invalid float value: 'abc'"),
        ({"learning_rate": -1}, "learning_rate is -1"),
        ({"learning_rate": True}, "learning_rate is true, a truth value in YAML; write a number"),
        ({"lora_r": True}, "lora_r is true"),
        ({"max_steps": False}, "max_steps is false"),
        ({"per_device_train_batch_size": 0}, "per_device_train_batch_size is 0"),
        ({"lora_r": 0}, "lora_r is 0"),
        ({"report_to": "bogus"}, "report_to is bogus"),
        ({"ce_weight": 0, "raft_weight": 0}, "ce_weight is 0"),
        ({"learning_rat": 1e-3}, "unknown key learning_rat"),
        ({"use_peft": False}, "use_peft is not true"),
    ],
)
def test_values_that_cannot_train_are_one_sentence(
    setting: dict[str, object], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from training.fit import parse_arguments

    usable = {"output_dir": str(tmp_path), "use_peft": True, "use_cpu": True, "bf16": False, "report_to": "none"}
    parse_arguments(usable)
    with pytest.raises(UserError) as found:
        parse_arguments({**usable, **setting})
    assert words in str(found.value)
    assert "\n" not in str(found.value)
    assert not capsys.readouterr().err
