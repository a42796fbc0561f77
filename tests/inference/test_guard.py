"""Helper processes end with the process that started them, also where it is killed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from inference.engines.guard import Guard

OWNER = """
import subprocess, time
from inference.engines.guard import Guard
helper = subprocess.Popen(["sleep", "300"], start_new_session=True)
guard = Guard([helper.pid])
print(helper.pid, flush=True)
time.sleep(300)
"""


def ends(pid: int, seconds: float = 5.0) -> bool:
    """Whether a process that isn't our child is gone in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        # Ended, and nobody has asked how.
        if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
            return True
        time.sleep(0.02)
    return False


def test_a_killed_process_takes_its_helpers_along() -> None:
    with subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout
        helper = int(owner.stdout.readline())
        assert not ends(helper, 0.2)
        owner.send_signal(signal.SIGKILL)
        owner.wait()
        assert ends(helper)


def test_a_dismissed_guard_does_nothing() -> None:
    with subprocess.Popen(["sleep", "300"]) as helper:
        guard = Guard([helper.pid])
        guard.dismiss()
        time.sleep(0.2)
        assert helper.poll() is None
        helper.kill()


def test_a_lost_guard_ends_its_helpers() -> None:
    with subprocess.Popen(["sleep", "300"]) as helper:
        guard = Guard([helper.pid])
        del guard
        assert helper.wait(5) == -signal.SIGTERM
