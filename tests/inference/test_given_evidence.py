"""Evidence that exists already: judged as what an analyst wrote, guarded, and missing where there is none."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from scripted_methods import CGPST, Run, as_sample, labelled, run, simulated, text_of

from inference.engines.base import EngineConfig
from inference.engines.scripted import ScriptedEngine
from inference.errors import UserError
from inference.estimate import estimate_all
from inference.judge import JudgingConfig
from inference.judgement_file import JudgementFile
from inference.judges import JudgeConfig, JudgeGrid, resolved_judge
from inference.methods.evidence import MISSING, Evidence, given_evidence
from inference.prompts import NOTHING, evidence_line
from inference.records import Call, Completion, Judgement, Sample, StepEvidence
from inference.runner import run_judges
from inference.store import Store

STEPS = {step.name: step for step in CGPST.answered}
METHODS = ("creaeval", "compact_creaeval")
SAMPLE = Sample(
    id="s",
    scenario="A town floats.",
    responses={step.name: f"The answer to {step.name}." for step in CGPST.answered}
    | {n: "\n".join(f"{i}. Point number {i} of {n}." for i in range(1, 9)) for n in ("step1", "step3", "step4")},
)


def told(**changed: Mapping[str, Any] | None) -> list[StepEvidence]:
    """Evidence on every step; the named ones have other `texts` or `items`, and None leaves one out."""
    parts = []
    for step in CGPST.answered:
        row = {d.name: d.choices[0] if d.choices else f"{d.name} is met" for d in step.asked}
        shown: dict[str, Any] = {"items": (row,) * step.items.count} if step.items else {"texts": row}
        change = changed.get(step.name, {})
        if change is not None:
            parts.append(StepEvidence(step=step.name, **{**shown, **change}))
    return parts


def analyst(call: Call, number: int) -> Completion:
    """The first score, and for an analyst on plain prompts a line that names the item."""
    if call.prompt is None or call.grid:
        return labelled(call, number)
    place = call.prompt.splitlines()[-2]
    step = STEPS[place.split()[0]]
    return Completion(text=evidence_line(step, {d.name: f"{d.name} of {place}" for d in step.asked}))


@pytest.mark.parametrize("method", METHODS)
def test_it_is_judged_as_what_an_analyst_wrote(method: str) -> None:
    sample = as_sample(simulated(1)[0])
    live = run(CGPST, sample, analyst, method=method)
    given = run(CGPST, sample, analyst, live.answers.evidence, method=method)
    assert set(given.models) == {"judge"}
    assert given.answers == live.answers
    asked = [call for call, model in zip(live.calls, live.models, strict=True) if model == "judge"]
    assert given.calls == asked


@pytest.mark.parametrize("method", METHODS)
def test_what_has_no_evidence_is_unscored_and_the_rest_is_judged(method: str) -> None:
    row = told()[0].items[0]
    some = {name: text for name, text in row.items() if name != "originality"} | {"elaboration": "  "}
    evidence = told(step1={"items": (row, {}, some)}, step2={"texts": {}}, step6=None)
    found = run(CGPST, SAMPLE, None, evidence, method=method)
    places = {(score.step, score.dimension, score.item): score.unscored for score in found.answers.scores}
    missing = {place for place, reason in places.items() if reason == MISSING}
    every = [d.name for d in STEPS["step1"].asked]
    assert missing == {
        *(("step1", name, item) for name in every for item in (2, 4, 5, 6, 7, 8)),
        *(("step1", name, 3) for name in ("originality", "elaboration")),
        *((name, d.name, None) for name in ("step2", "step6") for d in STEPS[name].asked),
    }
    assert not any(reason for place, reason in places.items() if place not in missing)
    assert len(places) == sum(len(step.asked) * (step.items.count if step.items else 1) for step in CGPST.answered)
    assert [part.step for part in found.answers.evidence] == ["step1", "step3", "step4", "step5"]
    assert found.answers.evidence[0].items == (row, {}, {k: v for k, v in some.items() if v.strip()}, *[{}] * 5)


@pytest.mark.parametrize("method", METHODS)
def test_a_blank_response_needs_none(method: str) -> None:
    points = "\n".join(f"{i}. Point." for i in (1, 2, 3, 5, 6, 7, 8))
    sample = SAMPLE.model_copy(update={"responses": {**SAMPLE.responses, "step1": points, "step2": " "}})
    items = told()[0].items
    evidence = told(step1={"items": (*items[:3], {}, *items[4:])}, step2=None)
    found = run(CGPST, sample, None, evidence, method=method)
    assert not found.unscored()
    parts = {part.step: part for part in found.answers.evidence}
    assert parts["step1"].items[3]["fluency"] == parts["step2"].texts["focus"] == NOTHING
    assert parts["step1"].items[4] == items[4]


def test_items_and_dimensions_beyond_the_rubric_are_left_out_and_the_order_is_its_own() -> None:
    row = dict(reversed(told()[0].items[0].items())) | {"mood": "bright"}
    (part, *_) = given_evidence(CGPST, SAMPLE, told(step1={"items": (row,) * 12}))
    assert len(part.items) == 8
    assert [list(item) for item in part.items] == [[d.name for d in STEPS["step1"].asked]] * 8


SAID = "we will lift the whole old harbour on nineteen wooden rafts before the next flood arrives"


def shown_to(found: Run) -> str:
    return " ".join(call.prompt if call.prompt is not None else text_of(call) for call in found.calls)


@pytest.mark.parametrize("method", METHODS)
def test_long_quotations_do_not_reach_the_judge(method: str) -> None:
    sample = SAMPLE.model_copy(update={"responses": {**SAMPLE.responses, "step6": SAID}})
    texts = told()[5].texts | {"impact": f"It says: {SAID}"}
    found = run(CGPST, sample, None, told(step6={"texts": texts}), method=method)
    part = found.answers.evidence[-1]
    assert (part.texts["impact"], part.cut) == ("It says: we will lift the whole old harbour […]", 1)
    assert "old harbour" in shown_to(found)
    assert "on nineteen" not in shown_to(found)


def test_a_quotation_does_not_go_on_behind_an_item_without_evidence() -> None:
    between = "challenge 2 fluency Nothing is written challenge 2 elaboration Nothing is written"
    response = f"alpha {between} challenge 2 originality"
    sample = SAMPLE.model_copy(update={"responses": {**SAMPLE.responses, "step1": f"1. {response}\n2. Point."}})
    row = told()[0].items[0]
    first = {**row, "category": "alpha"}
    second = {"originality": "it is new"}
    found = run(CGPST, sample, None, told(step1={"items": (first, second)}), method="creaeval")
    assert found.answers.evidence[0].cut > 0
    assert "alpha" not in shown_to(found)


# -- settings


def judge(**settings: Any) -> JudgeConfig:
    chosen = {"id": "j", "engine": "scripted", "model": "m", "method": "creaeval", "evidence_file": "e.json"}
    return JudgeConfig.model_validate({**chosen, **settings})


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"method": "direct"}, "evidence_file: method direct scores no evidence"),
        ({"method": "compact"}, "evidence_file: method compact scores no evidence"),
        ({"evidence": False}, "evidence_file: method creaeval scores no evidence"),
        ({"decoupled": False}, "evidence_file: method creaeval scores no evidence"),
        ({"memory": False}, "memory: no effect beside `evidence_file`"),
        ({"stepwise": False}, "stepwise: no effect beside `evidence_file`"),
        ({"analyst": {"engine": "scripted", "model": "a"}}, "analyst: no effect beside `evidence_file`"),
    ],
)
def test_what_does_not_go_with_it_is_refused(settings: dict[str, Any], fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        judge(**settings)


def test_in_a_grid_it_needs_no_analyst() -> None:
    model = {"engine": "scripted", "model": "m"}
    content: dict[str, Any] = {
        "judges": [{"id": "j1", **model}, {"id": "j2", **model}],
        "analysts": [{"id": "a", **model}],
        "methods": ["creaeval", {"method": "creaeval", "id": "recorded", "evidence_file": "e.json"}],
    }
    judges = JudgeGrid.model_validate(content).expand()
    assert [one.id for one in judges] == ["j1.creaeval.a", "j1.recorded", "j2.creaeval.a", "j2.recorded"]
    assert [(one.evidence_file, one.analyst is None) for one in judges[:2]] == [(None, False), ("e.json", True)]
    with pytest.raises(ValueError, match="no method of the grid has an analysis"):
        JudgeGrid.model_validate({**content, "methods": content["methods"][1:]})


def test_its_content_is_part_of_the_settings_of_a_run(tmp_path: Path) -> None:
    path = tmp_path / "e.json"
    digests = []
    for text in ("{}", "{} "):
        path.write_text(text)
        digests.append(resolved_judge(judge(evidence_file=str(path)))["evidence_sha256"])
    assert len(set(digests)) == 2
    # The directories of runs made before there was such a setting go on.
    assert not {"evidence_file", "evidence_sha256"} & set(resolved_judge(judge(evidence_file=None)))
    with pytest.raises(UserError, match=r"missing\.json"):
        resolved_judge(judge(evidence_file=str(tmp_path / "missing.json")))


def test_the_judge_command_refuses_it_by_name() -> None:
    settings = {"rubric": "cgpst", "input": "x.csv", "out": "run", "judges": judge().model_dump()}
    with pytest.raises(ValueError, match=r"judge j: evidence_file is read by `python -m eval run` alone"):
        JudgingConfig.model_validate(settings)


# -- runs

SAMPLES = [SAMPLE, SAMPLE.model_copy(update={"id": "t"}), SAMPLE.model_copy(update={"id": "u"})]


def judged(
    folder: Path, judges: Sequence[JudgeConfig], evidence: Mapping[str, Evidence] | None
) -> tuple[int, list[Judgement]]:
    """Calls and judgements."""
    calls = 0

    def build(config: EngineConfig) -> ScriptedEngine:
        honest = ScriptedEngine(config)

        def answer(call: Call) -> Completion:
            nonlocal calls
            calls += 1
            return honest._draw(call)

        return ScriptedEngine(config, answer)

    with Store(folder / "calls.sqlite") as store, JudgementFile(folder / "judgements.jsonl") as sink:
        work = run_judges(SAMPLES, judges, CGPST, store, sink, quiet=True, build=build, evidence=evidence)
        asyncio.run(work)
        return calls, list(sink.read())


def test_a_run_judges_samples_with_evidence_and_says_why_not_the_others(tmp_path: Path) -> None:
    given = {"s": told(), "t": told(step2=None), "elsewhere": told()}
    calls, (first, second, third) = judged(tmp_path, [judge()], {"j": given})
    assert calls == 2
    assert not any(score.unscored for score in first.scores)
    assert {s.step for s in second.scores if s.unscored and MISSING in s.unscored} == {"step2", "total"}
    assert {score.unscored for score in third.scores} == {"no evidence: none is given on this response"}
    assert third.calls == ()


@pytest.mark.parametrize(
    ("evidence", "settings", "words"),
    [
        (
            {"j": {"other": told()}},
            {},
            "evidence on none of the 3 responses, but on other; give the evidence of the same",
        ),
        ({"j": {"s": ()}}, {}, "evidence on none of the 3 responses"),
        ({"j": {}}, {}, "but on nothing"),
        (None, {}, r"nobody has read e\.json; `python -m eval run` does"),
        ({"j": {"s": told()}}, {"evidence_file": None}, "has no evidence_file that says so"),
    ],
)
def test_evidence_that_is_of_no_use_is_refused_before_a_call(
    evidence: Mapping[str, Evidence] | None, settings: dict[str, Any], words: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=words):
        judged(tmp_path, [judge(**settings)], evidence)
    assert (tmp_path / "judgements.jsonl").read_bytes() == b""


def test_an_estimate_counts_no_analyst_and_no_sample_without_evidence() -> None:
    responses = [as_sample(response) for response in simulated(3, 50)]
    given = {one.id: simulated(3, 50)[number].evidence for number, one in enumerate(responses[:2])}
    judges = [judge(), judge(id="live", evidence_file=None)]
    found = asyncio.run(estimate_all(responses, judges, CGPST, {"j": given}))
    assert [(one.calls, one.follows) for one in found.judges] == [(2, False), (21, True)]
