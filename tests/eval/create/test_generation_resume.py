"""Generations that are killed and started again: the same bytes, no finished call repeated."""

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

DRIVER = Path(__file__).with_name("kill_generation.py")
ROOT = Path(__file__).parents[3]
CALLS, IN_FLIGHT = 40 * (1 + 1 + 2), 4
"""`base` makes one call per query, and the first of `iterate` and of `resample` is the same."""


def start(folder: Path, log: Path) -> subprocess.Popen[bytes]:
    log.touch()
    command = [sys.executable, str(DRIVER), str(folder / "run"), str(log)]
    return subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(ROOT)})


def stored(folder: Path) -> set[str]:
    connection = sqlite3.connect(folder / "run" / "calls.sqlite")
    try:
        return {key for (key,) in connection.execute("SELECT key FROM calls")}
    finally:
        connection.close()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("undisturbed")
    assert start(folder, folder / "sent").wait(timeout=60) == 0
    sent = (folder / "sent").read_text().split()
    assert len(sent) == len(set(sent)) == CALLS
    return folder


def test_kills_at_random_moments_leave_no_trace(tmp_path: Path, undisturbed: Path) -> None:
    chance, finished, total = random.Random(3), set[str](), 0
    for number, moment in enumerate(sorted(chance.sample(range(5, CALLS - 30), 4))):
        log = tmp_path / f"sent{number}"
        process = start(tmp_path, log)
        while len(finished) + len(log.read_text().split()) < moment and process.poll() is None:
            time.sleep(0.001)
        process.kill()
        assert process.wait(timeout=30) == -signal.SIGKILL
        sent = log.read_text().split()
        assert not finished & set(sent), "a finished call was sent again"
        total += len(sent)
        finished = stored(tmp_path)
        assert 0 <= total - len(finished) <= (number + 1) * IN_FLIGHT
    log = tmp_path / "last"
    assert start(tmp_path, log).wait(timeout=60) == 0
    assert not finished & set(log.read_text().split())
    ours, theirs = (folder / "run" / "answers.jsonl" for folder in (tmp_path, undisturbed))
    assert ours.read_bytes() == theirs.read_bytes()


@pytest.mark.parametrize("cut", [1, 700, None])
def test_a_torn_or_deleted_file_is_written_anew_from_the_store(
    tmp_path: Path, undisturbed: Path, cut: int | None
) -> None:
    shutil.copytree(undisturbed / "run", tmp_path / "run")
    file = tmp_path / "run" / "answers.jsonl"
    whole = file.read_bytes()
    if cut is None:
        file.unlink()
    else:
        os.truncate(file, len(whole) - cut)
    assert start(tmp_path, tmp_path / "sent").wait(timeout=60) == 0
    assert (tmp_path / "sent").read_text() == ""
    assert file.read_bytes() == whole
