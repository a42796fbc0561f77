"""The serving config, the vLLM command it becomes, and the adapter check's verdict."""

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tiny_model import write_adapter, write_model

from inference.adapters import Adapter, read_adapter
from inference.check_adapter import TOLERANCE, grid_table, report
from inference.config import load_config
from inference.engines import EngineConfig
from inference.engines.hf import HFEngine
from inference.engines.vllm_model import lora_rank
from inference.errors import UserError
from inference.serve import ServeConfig, check_port, serve, served_adapters, server_command
from inference.tokens import model_context

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="module")
def adapter(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_adapter(model, tmp_path_factory.mktemp("adapter"), rank=12)


def config(model: Path, **changes: Any) -> ServeConfig:
    return ServeConfig.model_validate({"model": str(model), **changes})


def option(command: list[str], name: str) -> str:
    return command[command.index(name) + 1]


def test_shipped_config_loads() -> None:
    loaded = load_config(ROOT / "configs" / "serving" / "aut_smollm2.yaml", ServeConfig)
    assert list(loaded.adapters) == ["aut"]


def test_command_names_adapters_by_content(model: Path, adapter: Path) -> None:
    settings = config(model, adapters={"aut": str(adapter)}, port=8123, max_model_len=300)
    command = server_command(settings, served_adapters(settings))
    assert command[1:3] == ["-m", "vllm.entrypoints.openai.api_server"]
    assert option(command, "--served-model-name") == "tiny"
    assert option(command, "--lora-modules") == f"aut@{read_adapter(adapter).digest}={adapter}"
    assert option(command, "--max-lora-rank") == "16"
    assert option(command, "--max-loras") == "1"
    assert (option(command, "--port"), option(command, "--max-model-len")) == ("8123", "300")
    assert "--enable-prefix-caching" in command
    assert "--trust-remote-code" not in command


def test_model_without_adapters_needs_no_lora(model: Path) -> None:
    command = server_command(config(model, extra={"tensor-parallel-size": 2, "async-scheduling": False}), {})
    assert "--enable-lora" not in command
    assert option(command, "--tensor-parallel-size") == "2"
    assert command[-1] == "--no-async-scheduling"


@pytest.mark.parametrize(("rank", "setting"), [(1, 1), (2, 8), (8, 8), (9, 16), (300, 320), (512, 512)])
def test_rank_setting_fits_the_largest_adapter(rank: int, setting: int) -> None:
    adapters = [Adapter(path=Path("x"), digest="d", base_model="", rank=size) for size in (1, rank)]
    assert lora_rank(adapters) == setting


def test_rank_beyond_vllm_is_refused() -> None:
    with pytest.raises(UserError, match="rank 513 is more than vLLM serves"):
        lora_rank([Adapter(path=Path("x"), digest="d", base_model="", rank=513)])


def test_serve_checks_prints_the_names_and_becomes_the_server(
    model: Path, adapter: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    started: list[list[str]] = []
    monkeypatch.setattr(os, "execv", lambda _, command: started.append(command))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    path = tmp_path / "serve.yaml"
    path.write_text(f"model: {model}\nadapters: {{aut: {adapter}}}\nport: {port}\nmax_model_len: 512\n")
    for name in ("VLLM_CPU_KVCACHE_SPACE", "HF_HUB_OFFLINE", "VLLM_NO_USAGE_STATS"):
        monkeypatch.delenv(name, raising=False)
    serve(path)
    assert os.environ["VLLM_CPU_KVCACHE_SPACE"] == "2"
    assert started[0][0] == sys.executable
    assert f"  aut@{read_adapter(adapter).digest}\n" in capsys.readouterr().out


def test_port_in_use_is_said_before_loading(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "execv", lambda *_: pytest.fail("started"))
    path = tmp_path / "serve.yaml"
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        path.write_text(f"model: {model}\nport: {port}\nmax_model_len: 512\n")
        with pytest.raises(UserError, match=f"port {port} of 127.0.0.1 is in use"):
            serve(path)
    with pytest.raises(UserError, match="cannot listen at 192"):
        check_port("192.0.2.1", 8000)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model: nowhere\n", r"scripts/base_model\.py"),
        ("model: {model}\nadapters: {{aut: nowhere}}\n", r"no adapter_config\.json"),
        ("model: {model}\nport: 99999\n", "port"),
        ("model: {model}\nadaptors: {{}}\n", "unknown key"),
        ("model: {model}\nmax_model_len: 513\n", "max_model_len is 513, but the model .*tiny reads 512 tokens at most"),
        ("model: {model}\nadapters: {{a=b: x}}\n", "other characters"),
    ],
)
def test_mistakes_are_one_sentence(model: Path, tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "serve.yaml"
    path.write_text(text.format(model=model))
    with pytest.raises(UserError, match=message):
        serve(path)


def note(adapter: Path, folder: Path, **fields: Any) -> Path:
    """A copy of an adapter with the note that training leaves beside an analyst's."""
    copy = shutil.copytree(adapter, folder)
    known = {"profile": "compact", "rubric": "r@0", "prompts": "0", "simulated": True, "trained_on": []}
    (copy / "analyst.json").write_text(json.dumps(known | fields))
    return copy


def test_context_has_to_hold_the_rows_an_analyst_was_trained_on(model: Path, adapter: Path, tmp_path: Path) -> None:
    analyst = note(adapter, tmp_path / "new", max_row_tokens=301)
    with pytest.raises(UserError, match=r"max_model_len is 300, too short for the adapter sot: .* up to 301 tokens"):
        served_adapters(config(model, adapters={"aut": str(adapter), "sot": str(analyst)}, max_model_len=300))
    assert list(served_adapters(config(model, adapters={"sot": str(analyst)}, max_model_len=301))) == ["sot"]
    older = note(adapter, tmp_path / "old")
    assert list(served_adapters(config(model, adapters={"sot": str(older)}, max_model_len=8))) == ["sot"]
    (older / "analyst.json").write_text("{")
    with pytest.raises(UserError, match=r"analyst\.json: not valid JSON"):
        served_adapters(config(model, adapters={"sot": str(older)}, max_model_len=8))


@pytest.mark.parametrize(
    ("settings", "context"),
    [
        ({"max_position_embeddings": 4096}, 4096),
        ({"text_config": {"max_position_embeddings": 262144}, "vision_config": {}}, 262144),
        ({"max_position_embeddings": 4096, "rope_parameters": {"rope_type": "default", "rope_theta": 1e5}}, 4096),
        ({"max_position_embeddings": 4096, "rope_scaling": {"rope_type": "yarn", "factor": 4.0}}, 16384),
        (
            {
                "max_position_embeddings": 131072,
                "rope_scaling": {"factor": 8.0, "original_max_position_embeddings": 8192},
            },
            131072,
        ),
        ({"max_position_embeddings": 4096, "rope_scaling": {"factor": None}}, 4096),
        ({"max_position_embeddings": None}, None),
        ({}, None),
    ],
)
def test_context_of_a_model_is_read_from_its_settings(
    tmp_path: Path, settings: dict[str, Any], context: int | None
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(settings))
    assert model_context(tmp_path) == context


def test_overridden_settings_are_left_to_vllm(model: Path) -> None:
    stretched = config(model, max_model_len=2048, extra={"hf-overrides": '{"max_position_embeddings": 4096}'})
    assert served_adapters(stretched) == {}


def test_command_line_ends_with_code_2_and_no_traceback(model: Path, tmp_path: Path) -> None:
    other = write_adapter(write_model(tmp_path / "wide", hidden=48), tmp_path / "adapter")
    path = tmp_path / "serve.yaml"
    path.write_text(f"model: {model}\nadapters: {{aut: {other}}}\n")
    for command in ("serve", "check-adapter"):
        done = subprocess.run(
            [sys.executable, "-m", "inference", command, "--config", str(path)],
            capture_output=True,
            text=True,
            cwd=ROOT,
        )
        assert done.returncode == 2
        assert "does not fit the module" in done.stderr
        assert "Traceback" not in done.stderr


def table(model: Path, adapter: Path | None = None) -> list[list[float]]:
    settings = {"engine": "hf", "model": str(model), "adapter": str(adapter) if adapter else None}
    return grid_table(HFEngine(EngineConfig.model_validate(settings), merge=False))


def test_check_tells_an_ignored_adapter_from_one_in_effect(
    model: Path, adapter: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base, peft = table(model), table(model, adapter)
    tolerance = TOLERANCE["float32"]
    assert report(base, peft, peft, tolerance)
    assert not report(base, peft, base, tolerance)
    assert "(c) vLLM and PEFT differ" in capsys.readouterr().out
    without_effect = table(model, write_adapter(model, tmp_path / "zero", size=0.0))
    assert not report(base, without_effect, without_effect, tolerance)
    assert "needed 0.002: FAILED" in capsys.readouterr().out
