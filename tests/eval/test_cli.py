"""The commands as a user types them: output, exit codes, one sentence per mistake, quick help."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from eval.cli import main, with_wandb_mode

WriteConfig = Callable[..., Path]
ROOT = Path(__file__).parents[2]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Runs ``python -m eval`` in this process: exit code, stdout, stderr."""

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["eval", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        shown = capsys.readouterr()
        code = stop.value.code
        return code if isinstance(code, int) else 0, shown.out, shown.err

    return run


Command = Callable[..., tuple[int, str, str]]


def test_help_is_quick_and_loads_nothing_heavy() -> None:
    heavy = ("torch", "transformers", "vllm", "openai", "wandb", "pandas", "numpy", "scipy", "jinja2")
    code = (
        "import sys, runpy\n"
        "sys.argv = ['eval', '--help']\n"
        "try:\n    runpy.run_module('eval', run_name='__main__')\n"
        "except SystemExit as stop:\n    assert not stop.code\n"
        f"loaded = [name for name in {heavy!r} if name in sys.modules]\n"
        "assert not loaded, loaded\n"
    )
    seconds = []
    for _ in range(3):
        started = time.monotonic()
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
        seconds.append(time.monotonic() - started)
        assert done.returncode == 0, done.stderr
        assert all(name in done.stdout for name in ("run", "report", "compare", "data"))
        if seconds[-1] < 1:
            break
    assert min(seconds) < 1, seconds


def test_run_prints_tidy_rows_and_nothing_else(command: Command, write_config: WriteConfig, tmp_path: Path) -> None:
    code, out, _ = command("run", "--config", write_config(), "--json")
    assert code == 0
    rows = [json.loads(line) for line in out.splitlines()]
    assert out == (tmp_path / "run" / "metrics.jsonl").read_text()
    assert {row["judge"] for row in rows} == {"exact", "reversed"}
    assert list(rows[0]) == [
        *("run", "benchmark", "split", "judge", "method", "score", "rater", "step", "dimension", "metric"),
        *("value", "low", "high", "n", "coverage", "simulated"),
    ]


def test_run_shows_a_table_and_where_the_report_is(command: Command, write_config: WriteConfig, tmp_path: Path) -> None:
    code, out, err = command("run", "--config", write_config(), "--out", tmp_path / "here", "--limit", 6)
    lines = out.splitlines()
    assert (code, err) == (0, "")
    assert lines[0] == "test"
    assert lines[1].split() == ["judge", "kind", "score", "r", "QWK", "RMSE", "ICC(2,1)", "n", "coverage"]
    assert lines[2].split() == [
        *("exact", "recorded", "expected", "1.000*", "1.000*", "0.000*", "1.000*"),
        *("6", "100.0", "%"),
    ]
    assert lines[-1] == f"report: {tmp_path / 'here' / 'report.html'}"


def test_a_dry_run_asks_and_writes_nothing(command: Command, write_config: WriteConfig, tmp_path: Path) -> None:
    judges = [{"id": name, "engine": "scripted", "model": "scripted", "method": "compact"} for name in ("one", "two")]
    config = write_config(judges=judges, budget={"max_tokens_total": 20})
    code, out, err = command("run", "--config", config, "--dry-run", "--limit", 4)
    shown = " ".join(out.split())
    assert (code, err) == (0, "")
    assert "dry run: 4 samples, no call made" in shown
    found = [line.strip("│").split("│") for line in out.splitlines() if line.startswith("│")]
    # The two judges are the same model with the same prompts, asked once.
    counts = {row[0].strip(): row[1].strip() for row in found if row[0].strip()}
    assert counts == {"one": "4", "two": "4", "all judges": "4"}
    assert "over the budget: at most" in shown
    assert not (tmp_path / "run").exists()
    _, out, _ = command("run", "--config", write_config(), "--dry-run")
    assert out == "dry run: no judge is asked, all scores are recorded\n"
    code, out, err = command("run", "--config", config, "--dry-run", "--json")
    assert (code, out) == (2, "")
    assert "--json prints the rows of a report" in err


def test_report_prints_the_table_again(command: Command, write_config: WriteConfig, tmp_path: Path) -> None:
    _, before, _ = command("run", "--config", write_config())
    assert command("report", tmp_path / "run") == (0, before, "")


def test_compare_prints_differences(command: Command, write_config: WriteConfig, tmp_path: Path) -> None:
    command("run", "--config", write_config())
    run = tmp_path / "run"
    code, out, err = command("compare", run, run, "--judges", "exact", "reversed", "--json")
    rows = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [row["metric"] for row in rows] == ["pearson", "qwk_half_point", "rmse", "mae"] * 2
    assert rows[0]["difference"] == pytest.approx(2)
    assert err == "note: 12 samples are in both runs (12 in the first, 12 in the second)\n"
    _, text, _ = command("compare", run, run, "--judges", "exact", "reversed")
    assert text.splitlines()[0] == "test, use originality, rater human: exact (small) − reversed (small)"
    assert text.splitlines()[2].split()[:5] == ["expected", "r", "1.000", "−1.000", "+2.000"]


def test_mistakes_are_one_sentence_and_exit_code_2(command: Command, write_config: WriteConfig, tmp_path: Path) -> None:
    config = write_config()
    command("run", "--config", config)
    (tmp_path / "empty").mkdir()
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "note.txt").write_text("mine")
    mistakes = {
        "none.yaml: no such file": ("run", "--config", tmp_path / "none.yaml"),
        "holds files but no config.yaml": ("run", "--config", config, "--out", tmp_path / "foreign"),
        "was made with other settings": ("run", "--config", write_config("other.yaml", seed=3)),
        "no such run directory": ("report", tmp_path / "none"),
        "has no config.yaml, so it holds no evaluation": ("report", tmp_path / "empty"),
        "has no judge 'x'": ("compare", tmp_path / "run", tmp_path / "run", "--judges", "x", "y"),
    }
    for expected, arguments in mistakes.items():
        code, out, err = command(*arguments)
        assert (code, out) == (2, ""), arguments
        assert err.startswith("error: ")
        assert expected in err
        assert err.count("\n") == 1
    assert list((tmp_path / "foreign").iterdir()) == [tmp_path / "foreign" / "note.txt"]
    assert list((tmp_path / "empty").iterdir()) == []


def shell(line: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a line of bash in which ``$EVAL`` is ``python -m eval``."""
    variables = {**os.environ, "EVAL": f"{sys.executable} -m eval", **environment}
    command = ["bash", "-o", "pipefail", "-c", line]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=variables, check=False)


def test_a_reader_that_leaves_early_is_no_fault(write_config: WriteConfig, tmp_path: Path) -> None:
    config, run = write_config(), tmp_path / "run"
    for line in (f"run --config {config} --json", f"report {run}", f"compare {run} {run} --json"):
        done = shell(f"{{ sleep 0.2; $EVAL {line}; }} 2>{tmp_path}/err | true")  # the reader has gone before it starts
        noted = [text for text in (tmp_path / "err").read_text().splitlines() if not text.startswith("note: ")]
        assert (done.returncode, noted) == (0, []), line
    assert (run / "report.html").is_file()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_output_is_one_sentence(write_config: WriteConfig) -> None:
    done = shell(f"$EVAL run --config {write_config()} --json >/dev/full")
    assert done.returncode == 2
    assert done.stderr == (
        "error: the output cannot be written (No space left on device); free space where it is sent, "
        "or send it elsewhere\n"
    )


def test_characters_that_the_terminal_lacks_are_replaced(write_config: WriteConfig, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert shell(f"$EVAL run --config {write_config()}").returncode == 0
    done = shell(f"$EVAL compare {run} {run} --judges exact reversed", PYTHONIOENCODING="latin-1")
    assert done.returncode == 0
    assert "exact (small) ? reversed (small)" in done.stdout


def test_fetch_says_what_is_wrong_with_a_mirror(command: Command, tmp_path: Path) -> None:
    code, _, err = command("data", "fetch", "aut", "--out", tmp_path, "--mirror", "http://127.0.0.1:1")
    assert code == 2
    assert err.splitlines()[-1].startswith("error: ")
    assert "127.0.0.1:1" in err


def test_wandb_alone_means_offline() -> None:
    assert with_wandb_mode(["report", "--wandb", "run"]) == ["report", "--wandb", "offline", "run"]
    assert with_wandb_mode(["report", "run", "--wandb"]) == ["report", "run", "--wandb", "offline"]
    assert with_wandb_mode(["report", "run", "--wandb", "online"]) == ["report", "run", "--wandb", "online"]


def test_online_tracking_without_a_login_fails_before_the_report(
    command: Command, write_config: WriteConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("wandb")
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    monkeypatch.setenv("NETRC", str(tmp_path / "none"))
    command("run", "--config", write_config())
    (tmp_path / "run" / "report.md").unlink()
    code, _, err = command("report", tmp_path / "run", "--wandb", "online")
    assert (code, err) == (
        2,
        "error: --wandb online needs a login and there is none: run `wandb login`, or leave `online` out\n",
    )
    assert not (tmp_path / "run" / "report.md").exists()


@pytest.mark.slow
def test_offline_tracking_leaves_a_run_to_sync(write_config: WriteConfig, tmp_path: Path) -> None:
    pytest.importorskip("wandb")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("WANDB_")}

    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-m", "eval", *arguments]
        return subprocess.run(line, capture_output=True, text=True, cwd=ROOT, env=environment, check=False)

    assert call("run", "--config", str(write_config())).returncode == 0
    done = call("report", str(tmp_path / "run"), "--wandb")
    assert (done.returncode, done.stderr) == (0, "")
    folders = list((tmp_path / "run" / "wandb").glob("offline-run-*"))
    assert len(folders) == 1
    content = next(folders[0].glob("*.wandb")).read_bytes()
    assert b"report-run" in content
    assert b"test/exact/originality/pearson" in content
