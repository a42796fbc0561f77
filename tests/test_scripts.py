"""The shell scripts parse; set-up refuses unfit machines in one sentence, installs in the right order and only once.

Set-up runs in a copy of the repository's scripts, with stand-ins for python3, df and the like first on PATH.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPTS = [*sorted((ROOT / "scripts").rglob("*.sh")), ROOT / ".ci" / "run"]

# Answers what set-up asks an interpreter, makes .venv/bin/python a copy of itself, and writes down each call of pip.
PYTHON = """#!/bin/bash
case "$*" in
    *version_info*) echo "${FAKE_VERSION:-3.11}" ;;
    *torch.version.cuda*) echo "${FAKE_TORCH:-cpu}" ;;
    "-m venv"*) mkdir -p .venv/bin; cp "$0" .venv/bin/python; echo "command = $PWD/.venv" > .venv/pyvenv.cfg ;;
    "-m pip install"*)
        echo "$*" >> pip.calls
        if [[ -n "${FAKE_FAIL:-}" && "$*" == *$FAKE_FAIL* ]]; then echo "ERROR: no such wheel"; exit 1; fi ;;
    -V) echo "Python ${FAKE_VERSION:-3.11}.0" ;;
esac
"""


class Machine:
    """A made-up machine with a copy of the repository's set-up files."""

    def __init__(self, root: Path) -> None:
        self.root = root / "repository"
        self.bin = root / "bin"
        self.bin.mkdir()
        shutil.copytree(ROOT / "scripts", self.root / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", self.root)
        self.command("python3", PYTHON)
        self.command("nvidia-smi", "exit 9")
        self.command("id", "echo 1000")  # never root: nothing is installed on the real machine
        self.command("g++", "exit 0")
        self.disk(100)
        self.memory(24)

    def command(self, name: str, body: str) -> None:
        path = self.bin / name
        path.write_text(body if body.startswith("#!") else f"#!/bin/bash\n{body}\n")
        path.chmod(0o755)

    def disk(self, gigabytes: int) -> None:
        self.command("df", f"echo header\necho disk 0 0 {gigabytes * 1_000_000} 0% /")

    def memory(self, gigabytes: int) -> None:
        self.command("getconf", f"[ $1 = PAGE_SIZE ] && echo 4000 || echo {gigabytes * 250_000}")

    def set_up(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        path = f"{self.bin}:{os.environ['PATH']}"
        kept = {name: value for name, value in os.environ.items() if name != "PYTHON"}
        return subprocess.run(
            ["bash", "scripts/setup.sh", *arguments],
            cwd=self.root,
            env={**kept, "PATH": path, **environment},
            capture_output=True,
            text=True,
            timeout=60,
        )

    def pip_calls(self) -> list[str]:
        calls = self.root / "pip.calls"
        return calls.read_text().splitlines() if calls.exists() else []


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def assert_refused(done: subprocess.CompletedProcess[str], *words: str) -> None:
    """One sentence on stderr that holds `words`, and a failing exit code."""
    assert done.returncode != 0
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("error: ")
    for word in words:
        assert word in lines[0]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_script_parses_and_says_what_it_is_for(script: Path) -> None:
    done = subprocess.run(["bash", "-n", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    first, second = script.read_text().splitlines()[:2]
    assert first == "#!/usr/bin/env bash"
    assert second.startswith("# ")


def test_ci_entry_is_executable() -> None:
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


@pytest.mark.parametrize("version", ["3.9", "3.10", "3.14"])
def test_other_python_is_refused(machine: Machine, version: str) -> None:
    done = machine.set_up(FAKE_VERSION=version)
    assert_refused(done, f"Python {version}", "3.11 to 3.13", "PYTHON=")
    assert not (machine.root / ".venv").exists()


def test_missing_python_is_refused(machine: Machine) -> None:
    assert_refused(machine.set_up(PYTHON="python-that-is-not-there"), "python-that-is-not-there", "apt-get install")


def test_little_disk_is_refused(machine: Machine) -> None:
    machine.disk(7)
    assert_refused(machine.set_up(), "7 GB of disk", "8 GB")
    machine.disk(24)
    machine.command("nvidia-smi", "exit 0")
    assert_refused(machine.set_up(), "24 GB of disk", "25 GB")


def test_little_memory_is_refused_or_warned_about(machine: Machine) -> None:
    machine.memory(5)
    assert_refused(machine.set_up(), "5 GB of memory", "6 GB")
    machine.memory(7)
    done = machine.set_up()
    assert done.returncode == 0, done.stderr
    assert "warning: less than 8 GB" in done.stderr


def test_unknown_argument_is_refused(machine: Machine) -> None:
    assert_refused(machine.set_up("--gpu"), "--gpu", "--base-model")


def test_missing_library_is_named(machine: Machine) -> None:
    machine.command("python3", PYTHON.replace("-V)", "*libnuma*) exit 1 ;;\n    -V)"))
    assert_refused(machine.set_up(), "libnuma1", "apt-get install")


def test_cpu_machine_takes_the_lock_file_and_only_once(machine: Machine) -> None:
    first = machine.set_up()
    assert first.returncode == 0, first.stderr
    torch, rest, own = machine.pip_calls()
    assert torch.endswith("torch-cpu.txt")
    assert "--index-url" not in torch
    assert rest.endswith("/cpu.txt")
    assert "--no-deps" in rest
    assert own.endswith("-e .")

    second = machine.set_up()
    assert (second.returncode, second.stdout) == (0, "")
    assert len(machine.pip_calls()) == 3

    with (machine.root / "scripts" / "requirements" / "cpu.txt").open("a") as file:
        file.write("six==1.17.0\n")
    assert machine.set_up().returncode == 0
    assert len(machine.pip_calls()) == 6


def test_torch_comes_from_the_pytorch_index_where_the_own_index_lacks_it(machine: Machine) -> None:
    assert machine.set_up(FAKE_FAIL="--retries 2 -r scripts/requirements/torch-cpu.txt").returncode == 0
    calls = machine.pip_calls()
    assert "--index-url https://download.pytorch.org/whl/cpu" in calls[1]
    assert calls[1].endswith("torch-cpu.txt")


def test_failed_install_shows_pips_words_and_is_taken_up_again(machine: Machine) -> None:
    failed = machine.set_up(FAKE_FAIL="/cpu.txt")
    assert failed.returncode != 0
    assert "ERROR: no such wheel" in failed.stderr
    assert failed.stderr.strip().splitlines()[-1].startswith("error: pip could not install")
    assert machine.set_up().returncode == 0
    assert machine.pip_calls()[-1].endswith("-e .")


def test_gpu_machine_takes_the_gpu_file_and_a_cuda_torch(machine: Machine) -> None:
    machine.command("nvidia-smi", "exit 0")
    assert_refused(machine.set_up(FAKE_TORCH="cpu"), "gpu machine", "cpu build")
    assert machine.pip_calls()[0].endswith("gpu.txt")
    assert machine.set_up(FAKE_TORCH="gpu").returncode == 0


def test_moved_repository_makes_its_environment_anew(machine: Machine) -> None:
    assert machine.set_up().returncode == 0
    machine.root = machine.root.rename(machine.root.with_name("moved"))
    done = machine.set_up()
    assert done.returncode == 0, done.stderr
    assert "making .venv" in done.stdout
