"""Real vLLM on a tiny random model: adapters on one running model compute what PEFT does, and a kill leaves nothing."""

import asyncio
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tiny_model import write_adapter, write_model

from inference.check_adapter import TOLERANCE, largest_difference, table_of
from inference.engines.base import EngineConfig
from inference.engines.hf import HFEngine
from inference.engines.vllm import VLLMEngine
from inference.records import Call, Completion

pytestmark = pytest.mark.slow

GRIDS = tuple(Call(prompt=f"brick: build {number} of them\n", grid=tuple("12345")) for number in range(8))
TEXTS = tuple(Call(prompt=f"brick {number}\n", max_tokens=8) for number in range(8))

OWNER = """
import multiprocessing, sys, time
from inference.engines.base import EngineConfig
from inference.engines.vllm import VLLMEngine
from inference.records import Call

if __name__ == "__main__":
    engine = VLLMEngine(EngineConfig(engine="vllm", model=sys.argv[1], adapter=sys.argv[2], max_model_len=256))
    engine.compute([Call(prompt="brick", grid=("1", "2"))])
    print(*(child.pid for child in multiprocessing.active_children()), flush=True)
    time.sleep(300)
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """vLLM computes no smaller heads on a CPU."""
    return write_model(tmp_path_factory.mktemp("tiny") / "model", hidden=256)


@pytest.fixture(scope="module")
def adapters(model: Path) -> list[Path]:
    return [write_adapter(model, model.parent / name, seed=seed, rank=4 * seed) for seed, name in ((1, "a"), (3, "b"))]


def config(kind: str, model: Path, adapter: Path | None) -> EngineConfig:
    settings = {"engine": kind, "model": str(model), "adapter": str(adapter) if adapter else None}
    return EngineConfig.model_validate({**settings, "max_model_len": 256})


def test_two_adapters_and_the_base_share_one_model(model: Path, adapters: list[Path]) -> None:
    before = set(multiprocessing.active_children())
    chosen = [*adapters, None]
    engines = [VLLMEngine(config("vllm", model, adapter)) for adapter in chosen]

    async def ask() -> list[list[Completion]]:
        try:
            work = [asyncio.gather(*map(engine.complete, [*GRIDS, *TEXTS])) for engine in engines]
            found = [list(await part) for part in work]
            assert len(set(multiprocessing.active_children()) - before) == 1
            return found
        finally:
            for engine in engines:
                await engine.close()

    found = asyncio.run(ask())
    assert set(multiprocessing.active_children()) <= before
    tables = [table_of(part[: len(GRIDS)], GRIDS) for part in found]
    for adapter, table in zip(chosen, tables, strict=True):
        peft = HFEngine(config("hf", model, adapter), merge=False).compute(GRIDS)
        expected = table_of([answer for answer in peft if isinstance(answer, Completion)], GRIDS)
        assert largest_difference(table, expected) < TOLERANCE["float32"]
    assert largest_difference(tables[0], tables[1]) > 0.1
    assert all(1 <= text.usage.completion <= 8 for part in found for text in part[len(GRIDS) :])


def test_a_killed_run_leaves_no_model_behind(model: Path, adapters: list[Path], tmp_path: Path) -> None:
    script = tmp_path / "owner.py"
    script.write_text(OWNER)
    command = [sys.executable, str(script), str(model), str(adapters[0])]
    with (tmp_path / "log").open("w") as log:
        owner = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    assert owner.stdout
    children = [int(word) for word in owner.stdout.readline().split()]
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    assert children, (tmp_path / "log").read_text()[-2000:]
    assert not [pid for pid in children if not _ends(pid)]


def _ends(pid: int) -> bool:
    """Whether the process is gone within a minute."""
    for _ in range(600):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False
