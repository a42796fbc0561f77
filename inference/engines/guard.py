"""Ends helper processes together with this one, however it ends: a killed run leaves no model in memory."""

import subprocess
import weakref
from collections.abc import Iterable

_WATCH = 'read -r _; kill "$@"; sleep 10; kill -9 "$@"'
"""`read` returns at the end of the pipe that this process holds open as long as it lives."""


class Guard:
    """Watches from a process of its own, which no signal to this one reaches.

    The processes `pids` are asked to end, and after ten seconds ended, once this process is gone or has lost the guard.
    """

    def __init__(self, pids: Iterable[int]) -> None:
        self._watcher = subprocess.Popen(
            ["sh", "-c", _WATCH, "guard", *map(str, pids)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert self._watcher.stdin
        self._lost = weakref.finalize(self, self._watcher.stdin.close)

    def dismiss(self) -> None:
        """Stop watching: the processes have ended, and others may get their ids."""
        self._lost.detach()
        self._watcher.kill()
        self._watcher.communicate()
