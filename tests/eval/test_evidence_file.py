"""Evaluations of judges on recorded evidence, and of adapters that note what they have learned from."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from rich.console import Console
from scripted_methods import CGPST
from trace_files import IDS, benchmark, evidence, write_files

from eval.benchmarks.cgpst.exchange import read_evidence, write_evidence
from eval.benchmarks.cgpst.export import export_run
from eval.report import write_report
from eval.run import dry_run, evaluate
from inference.adapter_notes import judge_note, write_note
from inference.engines.base import EngineConfig
from inference.engines.scripted import ScriptedEngine
from inference.errors import UserError
from inference.records import Call, Completion, Sample
from training.traces.collect import collect_runs

FILE = "recorded_evidence.json"
Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes four rated answers, evidence on the first three of them, and a config with the judge's settings."""
    folder = write_files(tmp_path / "data")
    write_evidence(folder / FILE, dict.fromkeys(IDS[:3], evidence()), CGPST)

    def config(**settings: Any) -> Path:
        judge = {"id": "fake", "engine": "scripted", "model": "m", "method": "compact_creaeval", **settings}
        judge = {"evidence_file": str(folder / FILE)} | judge
        content = {
            "run": "small",
            "out": str(tmp_path / "run"),
            "rubric": "cgpst",
            "benchmark": benchmark(folder),
            "judges": [{name: value for name, value in judge.items() if value is not None}],
            "resamples": 100,
        }
        (tmp_path / "config.yaml").write_text(yaml.safe_dump(content))
        return tmp_path / "config.yaml"

    return config


class Judging:
    """Builds engines that judge and write nothing."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, config: EngineConfig) -> ScriptedEngine:
        honest = ScriptedEngine(config)

        def answer(call: Call) -> Completion:
            assert call.grid or (call.messages and "evidence" in call.messages[-1].content.lower())
            self.calls += 1
            return honest._draw(call)

        return ScriptedEngine(config, answer)


@pytest.mark.parametrize("method", ["creaeval", "compact_creaeval"])
def test_recorded_evidence_is_judged_and_kept(
    method: str, write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    build = Judging()
    report = evaluate(write(method=method), quiet=True, build=build)
    assert build.calls > 0
    assert {row.coverage for row in report.rows if row.judge == "fake" and row.metric == "pearson"} == {0.75}
    assert "evidence_file has nothing on 1 of 4 responses (A02_FS2), which stay unscored" in capsys.readouterr().err
    _, exported = export_run(tmp_path / "run", tmp_path / "exported")
    assert read_evidence(exported, CGPST) == dict.fromkeys(IDS[:3], evidence())
    (judge,) = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())["judges"]
    assert judge["evidence_file"].endswith(FILE)
    assert len(judge["evidence_sha256"]) == 64
    assert write_report(tmp_path / "run").rows == report.rows


def test_changed_evidence_is_another_run(write: Write, tmp_path: Path) -> None:
    path = write()
    evaluate(path, quiet=True)
    write_evidence(tmp_path / "data" / FILE, dict.fromkeys(IDS[:2], evidence()), CGPST)
    with pytest.raises(UserError, match=r"changed: judges\.0\.evidence_sha256"):
        evaluate(path, quiet=True)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "no such file"),
        ([], "a file of evidence is a JSON object by answer id"),
        ({"B01_FS1": {}}, "evidence on none of the 4 responses, but on B01_FS1"),
        ({"A01_FS1": {"Step-9": {}}}, "no step of the benchmark"),
    ],
)
def test_a_file_of_no_use_is_named_before_anything_is_written(
    content: Any, words: str, write: Write, tmp_path: Path
) -> None:
    path = tmp_path / "other.json"
    if content is not None:
        path.write_text(json.dumps(content))
    with pytest.raises(UserError, match=rf"other\.json.*{words}"):
        evaluate(write(evidence_file=str(path)), quiet=True)
    assert not (tmp_path / "run").exists()


def test_a_dry_run_counts_the_judge_alone(write: Write) -> None:
    console = Console(width=200, record=True)
    with console.capture() as shown:
        console.print(dry_run(write(method="creaeval")))
    (line,) = (line for line in shown.get().splitlines() if "fake" in line)
    assert [cell.strip() for cell in line.split("│")][1:3] == ["fake", "2"]  # to each scenario the same evidence


def test_evidence_from_a_file_is_not_taken_for_an_analysts(write: Write, tmp_path: Path) -> None:
    evaluate(write(), quiet=True)
    with pytest.raises(UserError, match="none of its judges has an analyst"):
        collect_runs([tmp_path / "run"], tmp_path / "traces")


def test_answers_that_an_adapter_has_learned_from_are_no_test(write: Write, tmp_path: Path) -> None:
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    learned = [Sample(id=name, scenario="", responses={}) for name in (IDS[2], "B01_FS1")]
    write_note(adapter, judge_note(CGPST, "sft_raw", learned))
    model = {"engine": "openai", "base_url": "http://127.0.0.1:1/v1", "adapter": str(adapter), "evidence_file": None}
    with pytest.raises(UserError, match=r"learned from 1 of the responses to be evaluated on \(A01_FS2\)"):
        evaluate(write(method="compact", **model), quiet=True)
    with pytest.raises(UserError, match="`recipe: sft_raw`, but method compact_creaeval needs sft_evidence"):
        evaluate(write(**model), quiet=True)
    assert not (tmp_path / "run").exists()
