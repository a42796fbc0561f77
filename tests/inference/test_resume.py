"""Runs that are killed and started again: the same bytes, no finished call repeated."""

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

DRIVER = Path(__file__).with_name("kill_run.py")
ROOT = Path(__file__).parents[2]
IN_FLIGHT = 4
CALLS = 150 + 2 * 150


class Run:
    """A run directory with one log of sent calls per start."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.logs: list[Path] = []

    def start(self, *more: str) -> subprocess.Popen[bytes]:
        self.logs.append(self.folder / f"sent{len(self.logs)}")
        self.logs[-1].touch()
        command = [sys.executable, str(DRIVER), str(self.folder / "run"), str(self.logs[-1]), *more]
        return subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(ROOT)})

    def finish(self) -> None:
        assert self.start().wait(timeout=60) == 0

    def sent(self) -> list[str]:
        """Calls sent by the latest start."""
        return self.logs[-1].read_text().split()

    def stored(self) -> set[str]:
        connection = sqlite3.connect(self.folder / "run" / "calls.sqlite")
        try:
            return {key for (key,) in connection.execute("SELECT key FROM calls")}
        finally:
            connection.close()

    @property
    def file(self) -> Path:
        return self.folder / "run" / "judgements.jsonl"


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    run = Run(tmp_path_factory.mktemp("undisturbed"))
    run.finish()
    assert len(run.sent()) == len(set(run.sent())) == CALLS
    return run


@pytest.fixture(scope="module")
def undisturbed(finished_run: Run) -> bytes:
    return finished_run.file.read_bytes()


@pytest.fixture
def finished_copy(finished_run: Run, tmp_path: Path) -> Run:
    shutil.copytree(finished_run.folder / "run", tmp_path / "run")
    return Run(tmp_path)


def test_kills_at_random_moments_leave_no_trace(tmp_path: Path, undisturbed: bytes) -> None:
    run, chance = Run(tmp_path), random.Random(5)
    finished: set[str] = set()
    total = 0
    for moment in sorted(chance.sample(range(5, CALLS - 40), 5)):
        process = run.start()
        # A moment is a number of finished calls and a bit of time: the same on slow and on fast machines.
        while len(finished) + len(run.sent()) < moment and process.poll() is None:
            time.sleep(0.001)
        time.sleep(chance.uniform(0, 0.02))
        process.kill()
        assert process.wait(timeout=30) == -signal.SIGKILL
        sent = run.sent()
        assert not finished & set(sent), "a finished call was sent again"
        assert len(set(sent)) == len(sent)
        total += len(sent)
        finished = run.stored()
        assert 0 <= total - len(finished) <= len(run.logs) * IN_FLIGHT
    run.finish()
    assert not finished & set(run.sent())
    assert len(run.logs) == 6
    assert run.stored() >= finished
    assert total + len(run.sent()) <= CALLS + 5 * IN_FLIGHT
    assert run.file.read_bytes() == undisturbed


def test_a_kill_between_store_and_file_costs_no_call(tmp_path: Path, undisturbed: bytes) -> None:
    run = Run(tmp_path)
    assert run.start("cut").wait(timeout=60) == -signal.SIGKILL
    finished = run.stored()
    lines = run.file.read_bytes().count(b"\n")
    assert lines < len(finished)
    run.finish()
    assert not finished & set(run.sent())
    assert run.file.read_bytes() == undisturbed


@pytest.mark.parametrize("cut", [1, 200, 5_000])
def test_a_torn_line_is_written_anew_from_the_store(finished_copy: Run, undisturbed: bytes, cut: int) -> None:
    run = finished_copy
    os.truncate(run.file, len(undisturbed) - cut)
    run.finish()
    assert run.sent() == []
    assert run.file.read_bytes() == undisturbed


def test_a_deleted_file_is_written_anew_from_the_store(finished_copy: Run, undisturbed: bytes) -> None:
    run = finished_copy
    run.file.unlink()
    run.finish()
    assert run.sent() == []
    assert run.file.read_bytes() == undisturbed


def test_two_processes_never_share_a_run_directory(tmp_path: Path) -> None:
    run = Run(tmp_path)
    first = run.start()
    try:
        while not run.sent():
            time.sleep(0.01)
        command = [sys.executable, str(DRIVER), str(tmp_path / "run"), str(tmp_path / "second")]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        second = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
        assert "another process works in this run directory" in second.stderr
        assert not (tmp_path / "second").exists()
    finally:
        first.kill()
        first.wait(timeout=30)
