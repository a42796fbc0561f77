"""The README's commands: blocks marked ``test: run`` as they stand, others with arguments that make them small.

``<!-- test: run -->`` runs a block, ``<!-- test: run with data -->`` only where the real data is,
``<!-- test: append ARGUMENTS -->`` adds arguments to the block's last command. Blocks run in a folder of their own that
looks like the repository, so that their files and runs stay out of it; scripts still find the repository itself.
"""

import os
import re
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
MARKED = re.compile(
    r"^ *<!-- test: (?P<how>[^>]+?) -->\n(?P<indent> *)```(?P<language>\w+)\n(?P<code>.*?)\n *```$", re.M | re.S
)
NAMED = re.compile(r"(?:configs|scripts|eval/benchmarks)/[\w./-]+\.\w+")


class Block(NamedTuple):
    how: str
    language: str
    code: str


BLOCKS = [
    Block(match["how"], match["language"], textwrap.dedent(match["indent"] + match["code"]))
    for match in MARKED.finditer(README)
]

needs_model = pytest.mark.skipif(
    not (ROOT / "models" / "smollm2-135m" / "config.json").exists(),
    reason="no base model: python scripts/base_model.py",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder in which the README's relative paths lead into the repository."""
    for name in ("configs", "eval", "inference", "training", "scripts", "models"):
        (tmp_path / name).symlink_to(ROOT / name)
    return tmp_path


def small(block: Block) -> str:
    """The block's code with the arguments of ``append`` behind its last command, before a comment."""
    if not block.how.startswith("append "):
        return block.code
    code = block.code.split("  #")[0].rstrip()
    return f"{code} {shlex.join(shlex.split(block.how.removeprefix('append ')))}"


def command(block: Block) -> list[str]:
    if block.language == "python":
        return [sys.executable, "-c", block.code]
    return ["bash", "-e", "-o", "pipefail", "-c", small(block)]


def test_the_readme_marks_what_is_run() -> None:
    assert [block.how.split()[0] for block in BLOCKS].count("append") == 2
    assert {block.language for block in BLOCKS} == {"bash", "python"}
    assert len(BLOCKS) == README.count("<!-- test:")


def test_files_that_the_readme_names_exist() -> None:
    missing = [name for name in NAMED.findall(README) if not (ROOT / name).exists()]
    assert not missing


@pytest.mark.slow
@needs_model
@pytest.mark.parametrize("block", BLOCKS, ids=[f"{block.language}-{number}" for number, block in enumerate(BLOCKS)])
def test_block_runs(block: Block, folder: Path) -> None:
    if block.how == "run with data" and not Path(os.environ.get("CREAJUDGE_DATA", "-")).is_dir():
        pytest.skip("CREAJUDGE_DATA does not name the directory of the real data")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "HF_HUB_OFFLINE": "1", "WANDB_MODE": "offline", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command(block),
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=580,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, f"{block.code}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    assert "Traceback" not in done.stderr
