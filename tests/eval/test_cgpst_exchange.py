"""Files of the released pipeline: same bytes back, same records back, sums of code's own."""

import json
from pathlib import Path
from typing import Any

import pytest
from cgpst_files import CATEGORIES, RUBRIC, SCENARIOS, answers, contents, save
from hypothesis import given, settings
from hypothesis import strategies as st

from eval.benchmarks.cgpst.exchange import read_evidence, read_responses, write_evidence, write_responses
from eval.benchmarks.cgpst.layout import line_end_of
from eval.benchmarks.cgpst.scenarios import Scenario, read_scenarios, write_scenarios
from eval.benchmarks.cgpst.score_json import read_scores, write_scores
from inference.aggregation import aggregate
from inference.errors import UserError
from inference.records import Judgement, Sample, Score, StepEvidence

NAMES = st.sampled_from(["A01_FS1", "A02_FS1", "B03_FS2"])
STEPS = [step.name for step in RUBRIC.answered]


def judgement(scores: list[Score], name: str = "A01_FS1") -> Judgement:
    return Judgement(
        sample_id=name,
        judge="judge",
        method="direct",
        rubric=f"{RUBRIC.name}@{RUBRIC.digest}",
        scores=aggregate(RUBRIC, scores),
        items=tuple(score for score in scores if score.item is not None),
    )


@pytest.fixture
def score_content(tmp_path: Path) -> dict[str, Any]:
    """A file of scores without fault."""
    write_scores(tmp_path / "made.json", [judgement(answers())], RUBRIC)
    content: dict[str, Any] = json.loads((tmp_path / "made.json").read_text())
    return content


@given(st.dictionaries(NAMES, st.dictionaries(st.sampled_from(STEPS), st.text())))
def test_responses(tmp_path_factory: pytest.TempPathFactory, texts: dict[str, dict[str, str]]) -> None:
    path = tmp_path_factory.mktemp("responses") / "r.json"
    found = {name: SCENARIOS[name[4:]] for name in texts}
    samples = [
        Sample(
            id=name, scenario=found[name].text, scenario_id=name[4:], subject=found[name].theme, responses=texts[name]
        )
        for name in texts
    ]
    write_responses(path, samples, RUBRIC)
    assert read_responses(path, RUBRIC, SCENARIOS) == samples
    first = path.read_bytes()
    write_responses(path, read_responses(path, RUBRIC, SCENARIOS), RUBRIC)
    assert path.read_bytes() == first


def test_lists_of_texts_are_joined(tmp_path: Path) -> None:
    path = save(tmp_path / "r.json", {"A01_FS1": {"Step-1": contents()["step1"], "Step-2": "one"}})
    (sample,) = read_responses(path, RUBRIC, SCENARIOS)
    assert sample.responses == {"step1": "\n".join(contents()["step1"]), "step2": "one"}


def item_texts(step: str) -> st.SearchStrategy[dict[str, str]]:
    dimensions = [dimension.name for dimension in {s.name: s for s in RUBRIC.steps}[step].asked]
    return st.dictionaries(st.sampled_from(dimensions), st.text())


@st.composite
def evidence(draw: st.DrawFn) -> StepEvidence:
    step = draw(st.sampled_from(RUBRIC.answered))
    texts = item_texts(step.name)
    if step.items is None:
        return StepEvidence(step=step.name, texts=draw(texts), memory=draw(st.text()))
    return StepEvidence(step=step.name, items=tuple(draw(st.lists(texts, max_size=9))), memory=draw(st.text()))


@given(st.dictionaries(NAMES, st.lists(evidence(), unique_by=lambda part: part.step).map(tuple)))
def test_evidence(tmp_path_factory: pytest.TempPathFactory, made: dict[str, tuple[StepEvidence, ...]]) -> None:
    path = tmp_path_factory.mktemp("evidence") / "e.json"
    write_evidence(path, made, RUBRIC)
    assert read_evidence(path, RUBRIC) == made
    first = path.read_bytes()
    write_evidence(path, read_evidence(path, RUBRIC), RUBRIC)
    assert path.read_bytes() == first


def test_evidence_has_the_official_keys(tmp_path: Path) -> None:
    parts = (
        StepEvidence(step="step1", items=({"fluency": "a", "category": "b"},), memory="m"),
        StepEvidence(step="step6", texts={"humaneness": "c"}, memory="n"),
    )
    write_evidence(tmp_path / "e.json", {"A01_FS1": parts}, RUBRIC)
    assert json.loads((tmp_path / "e.json").read_text()) == {
        "A01_FS1": {
            "Step-1": {"sot_evidence": {"item_1": {"Fluency": "a", "Flexibility": "b"}}, "task_status_memory": "m"},
            "Step-6": {"sot_evidence": {"Humaness": "c"}, "task_status_memory": "n"},
        }
    }


@st.composite
def rated_items(draw: st.DrawFn) -> list[Score]:
    """What a judge may have answered: scores of every dimension, some of them missing."""
    scores = []
    for step, dimension in RUBRIC.asked:
        for item in range(1, step.items.count + 1) if step.items else (None,):
            known = {"step": step.name, "dimension": dimension.name, "item": item}
            if dimension.choices:
                scores.append(Score(**known, choice=draw(st.sampled_from(CATEGORIES))))
            elif draw(st.integers(0, 20)) == 0:
                scores.append(Score(**known, unscored="no recorded score"))
            else:
                value = draw(st.integers(*dimension.range))
                scores.append(Score(**known, value=value, top=value))
    return scores


@settings(max_examples=25)
@given(st.dictionaries(NAMES, rated_items(), max_size=2))
def test_scores(tmp_path_factory: pytest.TempPathFactory, made: dict[str, list[Score]]) -> None:
    path = tmp_path_factory.mktemp("scores") / "s.json"
    judgements = [judgement(scores, name) for name, scores in made.items()]
    write_scores(path, judgements, RUBRIC)
    first = path.read_bytes()
    read = read_scores(path, RUBRIC, "judge")
    write_scores(path, read, RUBRIC)
    assert path.read_bytes() == first
    for before, after in zip(judgements, read, strict=True):
        assert after.sample_id == before.sample_id
        assert after.method == "recorded"
        assert {s.key: s.value for s in after.scores} == {s.key: s.value for s in before.scores}
        numbers = {(s.key, s.item): s.value for s in before.items if s.dimension != "category"}
        assert {(s.key, s.item): s.value for s in after.items} == numbers


def test_score_files_have_the_official_keys(score_content: dict[str, Any]) -> None:
    steps = score_content["A01_FS1"]
    assert list(steps) == ["Step-1", "Step-2", "Step-3", "Step-4", "Step-5", "Step-6"]
    assert list(steps["Step-1"]) == ["each_challenge", "summary"]
    assert list(steps["Step-1"]["each_challenge"][0]) == ["id", "Fluency", "Elaboration", "Originality"]
    assert list(steps["Step-1"]["summary"]) == ["Fluency", "Flexibility", "Elaboration", "Originality", "Overall"]
    assert list(steps["Step-4"]["each_criteria"][0]) == ["id", "Correctly Written", "Relevance"]
    assert "each_solution" in steps["Step-3"]
    assert list(steps["Step-2"]) == [
        *("Condition Phrase", "Stem & KVP", "Purpose", "FS Parameters", "Focus", "Adequacy", "Overall")
    ]
    assert "Humaness" in steps["Step-6"]


def test_what_is_written_is_the_most_likely_score_rounded(tmp_path: Path) -> None:
    scores = [
        score.model_copy(update={"value": 2.2, "top": 2.5}) if score.key == "step6.impact" else score
        for score in answers()
    ]
    write_scores(tmp_path / "s.json", [judgement(scores)], RUBRIC)
    plan = json.loads((tmp_path / "s.json").read_text())["A01_FS1"]["Step-6"]
    assert plan["Impact"] == 3
    assert plan["Overall"] == sum(value for key, value in plan.items() if key != "Overall")


def test_judgements_of_whole_steps_come_without_items(tmp_path: Path) -> None:
    whole = tuple(Score(step=s.name, dimension=d.name, value=1.0, top=1.0) for s, d in RUBRIC.unsummed)
    write_scores(tmp_path / "s.json", [judgement(list(whole))], RUBRIC)
    (read,) = read_scores(tmp_path / "s.json", RUBRIC, "judge")
    assert read.items == ()
    assert read.scores == aggregate(RUBRIC, whole)


def test_sums_are_never_taken_from_the_file(score_content: dict[str, Any], tmp_path: Path) -> None:
    first = score_content["A01_FS1"]["Step-1"]["summary"]
    right = dict(first)
    first |= {"Overall": 1, "Elaboration": 0, "Flexibility": 7}
    (read,) = read_scores(save(tmp_path / "s.json", score_content), RUBRIC, "judge")
    values = {score.key: score.value for score in read.scores}
    assert values["step1.elaboration"] == right["Elaboration"]
    assert values["step1.flexibility"] == 7
    assert values["step1.overall"] == right["Overall"] - right["Flexibility"] + 7


def test_what_is_no_score_is_unscored(score_content: dict[str, Any], tmp_path: Path) -> None:
    steps = score_content["A01_FS1"]
    steps["Step-2"]["Purpose"] = 4
    steps["Step-6"]["Impact"] = None
    del steps["Step-5"]
    (read,) = read_scores(save(tmp_path / "s.json", score_content), RUBRIC, "judge")
    found = {score.key: score.unscored for score in read.scores if score.unscored}
    assert found["step2.purpose"] == "'4' is no whole number in [0, 3]"
    assert found["step6.impact"] == "no recorded score"
    assert {"step5.correctly_used", "step2.integrity", "step6.overall", "total.total"} < set(found)


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_line_ends_can_be_kept(line_end: Any, tmp_path: Path) -> None:
    content = {"FS1": {"theme": "T", "text": "two\nlines", "year": 2040}}
    path = tmp_path / "s.json"
    path.write_bytes(json.dumps(content, indent=4).replace("\n", line_end).encode())
    assert line_end_of(path) == line_end
    first = path.read_bytes()
    write_scenarios(path, read_scenarios(path), line_end_of(path))
    assert path.read_bytes() == first
    assert read_scenarios(path) == {"FS1": Scenario("T", "two\nlines", {"year": 2040})}


def test_the_published_scenarios_keep_their_bytes(data_dir: Path, tmp_path: Path) -> None:
    original = data_dir / "cgpst" / "future_scenarios_en.json"
    write_scenarios(tmp_path / "s.json", read_scenarios(original))
    assert (tmp_path / "s.json").read_bytes() == original.read_bytes()


def _responses(path: Path) -> object:
    return read_responses(path, RUBRIC, SCENARIOS)


def _evidence(path: Path) -> object:
    return read_evidence(path, RUBRIC)


def _scores(path: Path) -> object:
    return read_scores(path, RUBRIC, "judge")


def _one(**evidence: Any) -> dict[str, Any]:
    return {"A01_FS1": {"Step-1": {"sot_evidence": evidence, "task_status_memory": ""}}}


@pytest.mark.parametrize(
    ("read", "content", "message"),
    [
        (_responses, [], "a file of responses is a JSON object by answer id"),
        (_responses, {"A01_FS1": "x"}, "A01_FS1: needs an object of steps"),
        (_responses, {"A01_FS1": {"Step-7": "x"}}, "A01_FS1, Step-7: no step of the benchmark"),
        (_responses, {"A01_FS1": {"Step-1": [1]}}, "A01_FS1, Step-1: needs a text or a list of texts"),
        (_responses, {"A01_FS9": {}}, "A01_FS9: the scenario FS9 is not in the scenario file, which has FS1"),
        (_evidence, {"A01_FS1": {"Step-1": {}}}, 'Step-1: needs {"sot_evidence"'),
        (_evidence, _one(item_2={}), "Step-1: needs item_1, item_2, … in order, found item_2"),
        (_evidence, _one(item_1={"Speed": "x"}), "Step-1 item 1, Speed: no dimension of Step-1"),
        (_evidence, _one(item_1={"Fluency": 1}), "Step-1 item 1, Fluency: needs a text"),
        (_evidence, _one(item_1={"Flexibility": "", "Category": ""}), "the same dimension stands here twice"),
        (_scores, {"A01_FS1": {"Step-1": {"summary": {}}}}, 'Step-1: needs {"each_challenge"'),
        (
            _scores,
            {"A01_FS1": {"Step-1": {"each_challenge": [{"id": 2}], "summary": {}}}},
            'challenge 1: needs "id": 1',
        ),
        (_scores, {"A01_FS1": {"Step-2": {"Speed": 1}}}, "Step-2, Speed: no dimension of Step-2"),
    ],
)
def test_other_structures_are_refused_with_their_place(read: Any, content: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=message):
        read(save(tmp_path / "f.json", content))


def test_two_judgements_of_one_answer_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="A01_FS1: two judgements of one answer"):
        write_scores(tmp_path / "s.json", [judgement(answers())] * 2, RUBRIC)
    assert not (tmp_path / "s.json").exists()
