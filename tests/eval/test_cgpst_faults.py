"""Faults that the checks find and the readers refuse alike, and what no message may choke on."""

import json
from pathlib import Path
from typing import Any

import pytest
from cgpst_files import RUBRIC, SCENARIOS, answers, entry, plain, save, scenario_file

from eval.benchmarks.cgpst.check import inspect_file
from eval.benchmarks.cgpst.exchange import read_evidence
from eval.benchmarks.cgpst.layout import read_json
from eval.benchmarks.cgpst.ratings import read_ratings
from eval.benchmarks.cgpst.samples import to_samples
from eval.benchmarks.cgpst.scenarios import read_scenarios
from eval.benchmarks.cgpst.score_json import read_scores, write_scores
from inference.aggregation import aggregate
from inference.errors import UserError
from inference.records import Judgement

TWICE = "the same dimension stands here twice, in two spellings"


def ratings_refused(path: Path) -> str:
    with pytest.raises(UserError) as caught:
        to_samples(read_ratings(path), RUBRIC, SCENARIOS)
    return str(caught.value)


def errors(path: Path) -> list[str]:
    found = inspect_file(path).findings
    for finding in found:
        assert finding.model_dump_json().encode()
        assert len(str(finding)) < 400
    return [f"{finding.place}: {finding.message}" for finding in found if finding.kind == "error"]


@pytest.mark.parametrize("value", [1, 5, None])
def test_two_spellings_in_a_rating_file(value: int | None, tmp_path: Path) -> None:
    content = plain(tmp_path)
    content[0][4]["Step-6"][0]["Humaneness"] = value
    path = save(tmp_path / "r.json", content)
    place = "A01_FS1, rater 2 (H02), Step-6"
    assert f"{place}: Humaneness: {TWICE}" in errors(path)
    assert ratings_refused(path).startswith(f"{place}, Humaneness: {TWICE}")


def test_two_spellings_in_a_score_file(tmp_path: Path) -> None:
    path = tmp_path / "scores.json"
    scores = aggregate(RUBRIC, answers())
    judgement = Judgement(sample_id="A01_FS1", judge="j", method="m", rubric="r", scores=scores, items=tuple(answers()))
    write_scores(path, [judgement], RUBRIC)
    content = json.loads(path.read_text())
    content["A01_FS1"]["Step-6"]["Humaneness"] = 1
    save(path, content)
    assert f"A01_FS1, Step-6: Humaneness: {TWICE}" in errors(path)
    with pytest.raises(UserError, match=f"A01_FS1, Step-6, Humaneness: {TWICE}"):
        read_scores(path, RUBRIC, "j")


@pytest.mark.parametrize(("step", "under", "key"), [("Step-6", (), "Humaneness"), ("Step-1", ("item_1",), "Category")])
def test_two_spellings_in_an_evidence_file(step: str, under: tuple[str, ...], key: str, tmp_path: Path) -> None:
    texts: dict[str, Any] = {"Humaness": "kind"} if step == "Step-6" else {"item_1": {"Flexibility": "Technology"}}
    content = {"A01_FS1": {step: {"sot_evidence": texts, "task_status_memory": "so far"}}}
    for name in under:
        texts = texts[name]
    texts[key] = "Technology"
    path = save(tmp_path / "e.json", content)
    assert any(f"{key}: {TWICE}" in error for error in errors(path))
    with pytest.raises(UserError, match=TWICE):
        read_evidence(path, RUBRIC)


def test_two_rows_with_scores_of_a_whole_step(tmp_path: Path) -> None:
    for number, what in ((1, "Score Summary"), (3, "Score Summary"), (2, "text")):
        content = plain(tmp_path)
        rows = content[0][3][f"Step-{number}"]
        rows.append(rows[-1])
        path = save(tmp_path / "r.json", content)
        place = f"A01_FS1, rater 1 (H01), Step-{number}"
        assert f"{place}: needs 1 {what}, has 2" in errors(path)
        assert ratings_refused(path).startswith(f"{place}: needs 1 {what}, has 2; correct the file")


@pytest.mark.parametrize("number", ["1" * 4300, "-" + "1" * 4299, "1e300", "1000001"])
@pytest.mark.parametrize("step", [1, 2, 5])
def test_long_numbers_are_cut_in_messages(step: int, number: str, tmp_path: Path) -> None:
    content = plain(tmp_path)
    for rater in (3, 4):
        row = content[0][rater][f"Step-{step}"][0]
        row["Correctly Used" if step == 5 else "Focus" if step == 2 else "Originality"] = 7777
        content[0][rater]["Total Score"] = 7777
        content[0][rater]["Step-1"][-1]["Score Summary"]["Overall"] = 7777
    path = save(tmp_path / "r.json", content)
    path.write_text(path.read_text().replace("7777", number))
    found = errors(path)
    assert [error for error in found if "is outside every range" in error]
    assert not [error for error in found if "1" * 21 in error]
    said = ratings_refused(path)
    assert "is outside the range" in said or "no whole number" in said
    assert "1" * 21 not in said


def test_numbers_longer_than_python_reads_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text("[" + "1" * 5000 + "]")
    with pytest.raises(UserError, match="not valid JSON"):
        inspect_file(path)


@pytest.mark.parametrize("name", ["\ud800", "1" * 500, "Idea \udfff " + "x" * 500])
def test_any_name_in_a_grid_can_be_shown(name: str, tmp_path: Path) -> None:
    content = plain(tmp_path)
    for rater in (3, 4):
        content[0][rater]["Step-5"][0]["Content"] = f"Name | C1 | C2 | Total\n{name} | 1 | 2 | 9\nother | 2 | 1 | 3"
    errors(save(tmp_path / "r.json", content))
    notes = [finding.message for finding in inspect_file(tmp_path / "r.json").findings if "grid" in finding.place]
    assert any("its ranks add up to 3" in note for note in notes)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400", "-1e999"])
def test_numbers_that_json_does_not_know_are_refused(number: str, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    for text in (f"[{number}]", f'{{"FS1": {{"theme": "a", "text": "b", "x": {number}}}}}'):
        path.write_text(text)
        for read in (read_json, read_ratings, read_scenarios, inspect_file):
            with pytest.raises(UserError, match=f"not valid JSON .'{number}' is no finite number"):
                read(path)


def test_half_surrogates_in_ids_of_scenarios(tmp_path: Path) -> None:
    name = "FS\ud800"
    content = json.loads(scenario_file(tmp_path).read_text())
    scenarios = read_scenarios(save(tmp_path / "s.json", {name: content["FS1"]}))
    (sample,) = to_samples([entry(f"A01_{name}", name)], RUBRIC, scenarios)
    assert sample.scenario_id == "FS\N{REPLACEMENT CHARACTER}"
    assert sample.model_dump_json()
    step = {"Step-2": {"sot_evidence": {}, "task_status_memory": ""}}
    evidence = read_evidence(save(tmp_path / "e.json", {"A\udc00_FS1": step}), RUBRIC)
    assert list(evidence) == ["A\N{REPLACEMENT CHARACTER}_FS1"]
