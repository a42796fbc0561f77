"""``traces quality``: what the evidence in a run is worth, responses counted on which the analyst failed."""

from pathlib import Path

import pytest
from scripted_methods import as_sample
from trace_runs import CONFIG, RESPONSES, write_run
from typer.testing import CliRunner

from inference.errors import UserError
from training.cli import app
from training.traces.quality import run_quality


def test_evidence_that_quotes_is_sound(run_dir: Path) -> None:
    found = run_quality(run_dir, CONFIG)
    assert list(found) == ["analyst"]
    for step, part in found["analyst"].items():
        assert part.asked == part.valid > 0
        assert part.grounded == part.quotable == (0 if step == "step5" else part.valid)


def test_a_step_without_readable_evidence_counts_as_not_valid(simulation: Path, tmp_path: Path) -> None:
    analyst = {"id": "analyst", "method": "creaeval", "model": "sound"}
    write_run(tmp_path / "run", simulation, [analyst], broken=as_sample(RESPONSES[0]).responses["step2"][:40])
    found = run_quality(tmp_path / "run", CONFIG)["analyst"]
    assert found["step2"].asked == len(RESPONSES)
    assert found["step2"].valid == len(RESPONSES) - 1


def test_the_command_prints_a_table_and_names_what_is_wrong(run_dir: Path, tmp_path: Path) -> None:
    printed = CliRunner().invoke(app, ["traces", "quality", str(run_dir)])
    assert "schema-valid" in printed.output
    assert "analyst" in printed.output
    with pytest.raises(UserError, match="so it is no run"):
        run_quality(tmp_path, CONFIG)
    with pytest.raises(UserError, match="has no judge other with an analyst"):
        run_quality(run_dir, CONFIG, ["other"])
