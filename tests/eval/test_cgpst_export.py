"""Results go out in the released layout and come back as a recorded judge."""

from pathlib import Path

import pytest
import yaml

from eval.benchmarks.cgpst.check import inspect_file
from eval.benchmarks.cgpst.export import export_run
from eval.benchmarks.simulation.files import write_simulation
from eval.run import evaluate
from eval.run_files import load_run
from inference.errors import UserError


def config(folder: Path, name: str, **changes: object) -> Path:
    data = folder / "data"
    content = {
        "run": name,
        "out": str(folder / name),
        "rubric": "cgpst",
        "benchmark": {
            "name": "cgpst",
            "ratings": str(data / "simulated_ratings.json"),
            "scenarios": str(data / "simulated_scenarios.json"),
        },
        "resamples": 100,
        **changes,
    }
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return path


def test_export_and_import(tmp_path: Path) -> None:
    write_simulation(tmp_path / "data", 0)
    judges = [{"id": "drawn", "engine": "scripted", "model": "x", "method": "creaeval"}]
    evaluate(config(tmp_path, "asked", judges=judges), limit=4, quiet=True)
    scores, evidence = export_run(tmp_path / "asked", tmp_path / "exported")
    assert (scores.name, evidence.name) == ("drawn_scores.json", "drawn_evidence.json")
    assert inspect_file(scores).errors == 0
    evaluate(config(tmp_path, "again", recorded=[{"file": str(scores)}]), limit=4, quiet=True)
    asked, again = load_run(tmp_path / "asked"), load_run(tmp_path / "again")
    assert list(again.judges) == ["drawn"]
    for one, other in zip(asked.judgements, again.judgements, strict=True):
        assert [(s.key, s.top) for s in one.scores] == [(s.key, s.top) for s in other.scores]


def test_a_file_of_other_answers_and_another_judge_are_refused(tmp_path: Path) -> None:
    write_simulation(tmp_path / "data", 0)
    other = tmp_path / "other_scores.json"
    other.write_text('{"A99_FS9": {}}', encoding="utf-8")
    with pytest.raises(UserError, match="none of its ids is among the samples"):
        evaluate(config(tmp_path, "a", recorded=[{"file": str(other)}]), quiet=True)
    with pytest.raises(UserError, match="has no judge mine; it has other"):
        evaluate(config(tmp_path, "b", recorded=[{"file": str(other), "judges": ["mine"]}]), quiet=True)
