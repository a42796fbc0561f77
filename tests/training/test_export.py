"""Merged weights compute what base model and adapter compute together, and nothing is overwritten."""

import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("peft")

from tiny_model import write_adapter, write_model  # noqa: E402

from inference.engines.base import EngineConfig  # noqa: E402
from inference.engines.hf import HFEngine  # noqa: E402
from inference.errors import UserError  # noqa: E402
from inference.records import Call  # noqa: E402
from training.export import merge_adapter  # noqa: E402

ROOT = Path(__file__).parents[2]
CALLS = [Call(prompt=f"{thing}: use it\n", grid=tuple("12345")) for thing in ("brick", "rope", "shoe")]


def grid(model: Path, adapter: Path | None = None) -> list[dict[str, float] | None]:
    settings = {"engine": "hf", "model": str(model), "adapter": str(adapter) if adapter else None}
    answers = HFEngine(EngineConfig.model_validate(settings), merge=False).compute(CALLS)
    return [getattr(answer, "grid_logprobs", None) for answer in answers]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_model(tmp_path / "model")


def test_merged_weights_equal_base_and_adapter(model: Path, tmp_path: Path) -> None:
    adapter = write_adapter(model, tmp_path / "adapter")
    merge_adapter(adapter, tmp_path / "merged", model)
    merged, together, base = grid(tmp_path / "merged"), grid(model, adapter), grid(model)
    for one, other, without in zip(merged, together, base, strict=True):
        assert one == pytest.approx(other, abs=1e-4)
        assert one != pytest.approx(without, abs=1e-2)
    assert not list((tmp_path / "merged").glob("*.bin"))


def test_an_adapter_names_its_base(model: Path, tmp_path: Path) -> None:
    merge_adapter(write_adapter(model, tmp_path / "adapter"), tmp_path / "merged")
    assert (tmp_path / "merged" / "model.safetensors").exists()


def test_an_adapter_of_another_model_and_a_full_directory_are_refused(model: Path, tmp_path: Path) -> None:
    adapter = write_adapter(model, tmp_path / "adapter")
    other = write_model(tmp_path / "other", hidden=64)
    with pytest.raises(UserError):
        merge_adapter(adapter, tmp_path / "merged", other)
    assert not (tmp_path / "merged").exists()
    with pytest.raises(UserError, match="already holds files"):
        merge_adapter(adapter, other, model)


def test_the_command_says_in_one_line_what_is_wrong(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "training.export",
        "merge",
        "--adapter",
        str(tmp_path),
        "--out",
        str(tmp_path / "m"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert len(done.stderr.splitlines()) == 1
