"""One real vLLM server per test module, started the way a user does: ``python -m inference serve``.

A test module imports the fixture ``served``; all its slow tests share the server.
"""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from tiny_model import write_adapter

from inference.adapters import read_adapter
from inference.tokens import model_directory

ROOT = Path(__file__).parents[2]
BASE_MODEL = ROOT / "models" / "smollm2-135m"
START_SECONDS = 400.0


@dataclass(frozen=True)
class Served:
    """A running server: its endpoint, the base model and a random adapter with their served names."""

    url: str
    model: Path
    adapter: Path
    base_name: str
    adapter_name: str


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """SmolLM2 with a random LoRA adapter on every linear layer."""
    model = model_directory(BASE_MODEL)
    folder = tmp_path_factory.mktemp("served")
    adapter = write_adapter(model, folder / "adapter", size=0.3)
    port = free_port()
    config = folder / "serve.yaml"
    config.write_text(f"model: {model}\nadapters: {{random: {adapter}}}\nport: {port}\nmax_model_len: 1024\n")
    with server_process(config, port, folder / "server.log"):
        yield Served(
            url=f"http://127.0.0.1:{port}/v1",
            model=model,
            adapter=adapter,
            base_name=model.name,
            adapter_name=read_adapter(adapter).served_name("random"),
        )


@contextmanager
def server_process(config: Path, port: int, log: Path) -> Iterator[None]:
    """The server of a serving config, from when it answers until the end of the block."""
    command = [sys.executable, "-m", "inference", "serve", "--config", str(config)]
    with log.open("w") as output:
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT, start_new_session=True, preexec_fn=_nice
        )
    try:
        _wait(process, port, log)
        yield
    finally:
        # The server's workers are in the session that was started for it.
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(20)


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5):
                return
        except OSError:
            time.sleep(1)
    pytest.fail(f"the server did not start:\n{log.read_text()[-3000:]}")


def _nice() -> None:
    os.nice(5)
