"""Answers that few or none have rated, and runs whose rubrics differ: refused or noted before anything is paid."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from cgpst_files import entry, plain, save, scenario_file

from eval.compare import Comparison, compare_runs
from eval.run import evaluate
from eval.run_files import load_run
from inference.engines.base import EngineConfig
from inference.errors import UserError

IDS = ("A01_FS1", "A02_FS1", "A01_FS2", "A02_FS2")


def config(folder: Path, change: Callable[[list[Any]], None] = lambda _: None, **settings: Any) -> Path:
    content = plain(folder, *[entry(name, name[4:]) for name in IDS])
    for answer in content:
        change(answer)
    benchmark = {"name": "cgpst", "ratings": str(save(folder / "r.json", content))}
    benchmark["scenarios"] = str(scenario_file(folder))
    known = {
        "run": "small",
        "out": str(folder / "run"),
        "rubric": "cgpst",
        "benchmark": benchmark,
        "judges": [{"id": "fake", "engine": "scripted", "model": "scripted", "method": "compact"}],
        "resamples": 100,
    }
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(known | settings))
    return path


def no_engine(_: EngineConfig) -> Any:
    raise AssertionError("no judge may be asked")


def _unrate(answer: list[Any]) -> None:
    answer[3:] = [None, None]


def _empty(answer: list[Any]) -> None:
    answer[3:] = [{}, {}]


def _only_purpose(answer: list[Any]) -> None:
    answer[3:] = [{"Step-2": [{"Content": "x", "Purpose": part["Step-2"][0]["Purpose"]}]} for part in answer[3:]]


@pytest.mark.parametrize("change", [_unrate, _empty])
def test_nobody_has_rated(change: Callable[[list[Any]], None], tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nobody has rated any of its 4 samples"):
        evaluate(config(tmp_path, change), quiet=True, build=no_engine)
    assert not (tmp_path / "run").exists()


def test_nobody_has_rated_the_first(tmp_path: Path) -> None:
    path = config(tmp_path, lambda answer: _unrate(answer) if answer[0] == IDS[0] else None)
    with pytest.raises(UserError, match=r"any of its 1 samples.*or a larger --limit"):
        evaluate(path, limit=1, quiet=True, build=no_engine)


def compared(first: Path, second: Path) -> Comparison:
    return compare_runs(load_run(first), load_run(second))


def test_no_reported_dimension_is_rated(tmp_path: Path) -> None:
    evaluate(config(tmp_path, _only_purpose), quiet=True)
    found = compared(tmp_path / "run", tmp_path / "run")
    assert found.notes[1:] == ["test: nobody has rated a reported dimension; averages over dimensions are left out"]
    assert {row.dimension for row in found.rows if row.n} == {"purpose"}
    assert {(row.difference, row.p) for row in found.rows if row.n and row.metric == "mae"} == {(0.0, 1.0)}


def test_dimensions_of_other_scales_are_named(tmp_path: Path) -> None:
    def smaller(answer: list[Any]) -> None:
        for part in answer[3:]:
            part["Step-2"][0]["Purpose"] = min(2, part["Step-2"][0]["Purpose"])

    evaluate(config(tmp_path, smaller), quiet=True)
    evaluate(config(tmp_path, smaller, rubric="cgpst#purpose_0_2"), out=tmp_path / "second", quiet=True)
    for first, second, ranges in (("run", "second", "0 to 3, and 0 to 2"), ("second", "run", "0 to 2, and 0 to 3")):
        found = compared(tmp_path / first, tmp_path / second)
        (note,) = [note for note in found.notes if "scales differ" in note]
        assert f"step2.purpose ({ranges}), step2.integrity (" in note
        assert note.endswith("; averages over dimensions are left out")
        assert not {row.dimension for row in found.rows} & {"purpose", "integrity", "total", "mean"}
    assert len(compared(tmp_path / "run", tmp_path / "run").notes) == 1
