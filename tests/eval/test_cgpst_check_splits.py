"""``data check`` of splits and of a simulation's properties."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cgpst_files import RUBRIC, save

from eval.benchmarks.cgpst.check import check_file, inspect_file
from eval.benchmarks.cgpst.findings import Finding
from eval.benchmarks.simulation.simulate import simulate
from inference.errors import UserError

Change = Callable[[Any], Any]


def triples(found: list[Finding]) -> list[tuple[str, str, str]]:
    return [(one.kind, one.place, one.message) for one in found]


SPLITS: dict[str, Any] = {
    "scenario": {"train": ["A01_FS1", "A02_FS1"], "test": ["A01_FS2", "A02_FS2"]},
    "sample": {"train": ["A01_FS1", "A01_FS2"], "test": ["A02_FS1", "A02_FS2"]},
}


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        (lambda c: c["sample"].pop("test"), ("error", "sample", 'needs {"train"')),
        (lambda c: c["sample"].update(test="A"), ("error", "sample, test", "needs a list of answer ids")),
        (lambda c: c["sample"].update(test=[3]), ("error", "sample, test", "needs a list of answer ids")),
        (lambda c: c["sample"].update(test=[]), ("error", "sample, test", "names no answer")),
        (lambda c: c["sample"]["test"].append("A02_FS1"), ("error", "sample, test", "more than once: A02_FS1")),
        (lambda c: c["sample"]["test"].append("A02"), ("error", "sample, test", "do not end in a scenario, as A01")),
        (lambda c: c["sample"]["test"].append("A01_FS1"), ("error", "sample", "train and test share A01_FS1")),
        (lambda c: c["scenario"]["test"].append("A09_FS1"), ("error", "scenario", "FS1 is on both sides")),
        (lambda c: c["scenario"]["test"].append("A09_FS77"), ("note", "scenario FS77", "none of the ten published")),
        (lambda c: c["scenario"]["test"].append("A09_FS2"), ("note", "sample", "another split has: A09_FS2")),
        (lambda c: c["sample"].update(dev=[]), ("note", "sample", "the key dev is unknown")),
        (lambda c: c.update(voice=c["sample"]), ("note", "voice", "is not read; the splits are scenario, sample")),
    ],
)
def test_faults_of_splits(change: Change, finding: tuple[str, str, str], tmp_path: Path) -> None:
    content = json.loads(json.dumps(SPLITS))
    assert inspect_file(save(tmp_path / "s.json", content)).summary == "splits: 4 samples, 0 errors, 0 notes"
    change(content)
    kind, place, message = finding
    found = triples(check_file(save(tmp_path / "s.json", content)))
    assert [f for f in found if f[:2] == (kind, place) and message in f[2]], found


def test_properties_of_a_simulation(tmp_path: Path) -> None:
    parts = [response.parts for _, response in zip(range(2), simulate(RUBRIC, 0), strict=False)]
    lines = [one.model_dump_json() for one in parts]
    path = tmp_path / "p.jsonl"
    path.write_text("\n".join(lines))
    assert inspect_file(path).summary == "properties: 2 samples, 0 errors, 0 notes"
    path.write_text("\n".join([lines[0], lines[0], lines[1].replace('"scenario":"FS1"', '"scenario":"FS2"'), "{}"]))
    found = triples(check_file(path))
    assert [(kind, place) for kind, place, _ in found] == [("error", f"line {n}") for n in (2, 3, 4)]
    assert [message.split(":")[0] for *_, message in found] == [
        "the id A01_FS1 occurs more than once",
        "the id A02_FS1 does not end in the scenario, which is FS2",
        "id",
    ]
    path.write_text('{"id": "a", "scenario": "b", "response": "c"}\n')
    with pytest.raises(UserError, match=r"only a simulation's properties are JSON lines; responses for `python -m inf"):
        check_file(path)
    path.write_text("\n")
    with pytest.raises(UserError, match="nothing is in it"):
        check_file(path)
