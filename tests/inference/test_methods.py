"""The methods: how often they ask, and what exactly each model sees."""

import json
import re
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
from scripted_methods import CGPST, Run, as_sample, labelled, run, simulated, text_of

from inference import prompts
from inference.records import Call, Completion, Sample
from inference.rubric import Rubric, Step
from inference.schemas import choice_schema, evidence_schema, noted_schema, scores_schema, table_schema

SAMPLE = as_sample(simulated(1)[0])
STEPS = tuple(step.name for step in CGPST.answered)
WITH_NAMES = {"step1", "step3"}
"""Steps in which a name is chosen."""
SIGNS = {
    "analysis": "You analyse responses to a creative task",
    "choose": "Several raters have proposed scores",
    "direct_json": "Rate the response below.",
    "evidence_json": "You do not see the response",
    "reconsider": "Think your choice over",
    "refine": "Go over your own answer",
    "step_form": "Answer for this step",
    "steps": "You are shown the response step by step",
    "table": "Fill in a table",
}
"""Template → words that are in no other."""
ABLATIONS: dict[str, dict[str, Any]] = {
    "no memory": {"memory": False},
    "not stepwise": {"stepwise": False},
    "not decoupled": {"decoupled": False},
    "no evidence": {"evidence": False},
    "by step": {"judge_scope": "step"},
}
on_cgpst = partial(run, CGPST, SAMPLE)


def roles(call: Call) -> str:
    """First letters: ``suau``."""
    return "".join(message.role[0] for message in call.messages or ())


def level_lines(step: Step) -> set[str]:
    return {f"  {level} = {meaning}" for d in step.asked for level, meaning in d.levels.items()}


def seen(call: Call) -> set[str]:
    """What a model sees: templates, the scenario, of each step response, meaning and levels, and earlier answers."""
    text = text_of(call)
    lines = set(text.splitlines())
    found = {name for name, sign in SIGNS.items() if sign in text}
    found |= {"scenario"} if SAMPLE.scenario in text else set()
    found |= {"names"} if "; ".join(CGPST.steps[0].dimension("category").choices) in text else set()
    for step in CGPST.answered:
        own = level_lines(step).difference(*(level_lines(other) for other in CGPST.answered if other is not step))
        parts = {
            "response": [SAMPLE.responses[step.name] in text],
            "meaning": [dimension.description in text for dimension in step.asked],
            "levels": [line in lines for line in own],
        }
        assert all(len(set(there)) == 1 for there in parts.values()), f"a part of {step.name} is shown"
        found |= {f"{name} {step.name}" for name, there in parts.items() if there[0]}
    return found | set(re.findall(r"\w+ of call \d+", text))


def parts(name: str, *steps: str) -> set[str]:
    return {f"{name} {step}" for step in steps}


def rubric(*steps: str, levels: bool = True) -> set[str]:
    """Meaning of the dimensions, levels, and names where there are some to choose from."""
    names = {"names"} if WITH_NAMES & set(steps) else set()
    return parts("meaning", *steps) | (parts("levels", *steps) if levels else set()) | names


def answered(kind: str, *numbers: int) -> set[str]:
    return {f"{kind} of call {number}" for number in numbers}


@pytest.mark.parametrize(
    ("method", "options", "six_steps", "one_step"),
    [
        ("direct", {}, 1, 1),
        ("cot", {}, 6, 1),
        ("tot", {}, 24, 4),
        ("got", {}, 48, 8),
        ("tat", {}, 1, 1),
        ("creaeval", {}, 7, 2),
        ("creaeval", ABLATIONS["no memory"], 7, 2),
        ("creaeval", ABLATIONS["not stepwise"], 2, 2),
        ("creaeval", ABLATIONS["not decoupled"], 1, 1),
        ("creaeval", ABLATIONS["no evidence"], 1, 1),
        ("creaeval", ABLATIONS["by step"], 12, 2),
        ("direct", ABLATIONS["by step"], 6, 1),
    ],
)
def test_calls_per_response(
    method: str, options: dict[str, Any], six_steps: int, one_step: int, aut_rubric: Rubric
) -> None:
    aut = Sample(id="s", scenario="rope", responses={"use": "a swing for the garden"})
    for rubric_, sample, calls in ((CGPST, SAMPLE, six_steps), (aut_rubric, aut, one_step)):
        found = run(rubric_, sample, method=method, **options)
        assert len(found.calls) == calls
        assert len({call.key({}) for call in found.calls}) == calls  # no call is another one over again
        assert not found.unscored()
        pairs = [(step.name, d.name, item) for step, d in rubric_.asked for item in _items(step)]
        assert sorted((s.step, s.dimension, s.item or 0) for s in found.answers.scores) == sorted(pairs)


def _items(step: Step) -> range:
    return range(1, step.items.count + 1) if step.items else range(1)


def test_direct_sees_everything_at_once() -> None:
    (call,) = on_cgpst(method="direct").calls
    assert roles(call) == "su"
    assert seen(call) == {"direct_json", "scenario"} | rubric(*STEPS) | parts("response", *STEPS)
    assert call.json_schema == scores_schema(CGPST.answered)


def test_direct_by_step_sees_one_step_a_call() -> None:
    for step, call in zip(CGPST.answered, on_cgpst(method="direct", judge_scope="step").calls, strict=True):
        assert roles(call) == "su"
        assert seen(call) == {"direct_json", "scenario", f"response {step.name}"} | rubric(step.name)
        assert call.json_schema == scores_schema([step])


def test_tat_sees_everything_at_once() -> None:
    (call,) = on_cgpst(method="tat").calls
    assert roles(call) == "su"
    assert seen(call) == {"table", "scenario"} | rubric(*STEPS) | parts("response", *STEPS)
    assert call.json_schema == table_schema(CGPST)


def test_cot_is_one_conversation_that_grows_by_a_step() -> None:
    calls = on_cgpst(method="cot").calls
    for at, call in enumerate(calls):
        assert roles(call) == "s" + "ua" * at + "u"
        shown = parts("response", *STEPS[: at + 1]) | answered("notes", *range(at))
        assert seen(call) == {"steps", "step_form", "scenario"} | rubric(*STEPS) | shown
        assert call.json_schema == noted_schema(CGPST.answered[at])
    assert_grows([call.messages or () for call in calls])


def assert_grows(conversations: list[tuple[Any, ...]]) -> None:
    """Each conversation goes on from the one before."""
    for shorter, longer in pairwise(conversations):
        assert longer[: len(shorter)] == shorter


def test_tot_has_three_conversations_that_grow_and_a_selector_per_step() -> None:
    calls = on_cgpst(method="tot").calls
    for at, step in enumerate(STEPS):
        for scorer, call in enumerate(calls[4 * at : 4 * at + 3]):
            own = [4 * earlier + scorer for earlier in range(at)]
            assert (roles(call), call.seed) == ("s" + "ua" * at + "u", scorer)
            shown = parts("response", *STEPS[: at + 1]) | answered("notes", *own)
            assert seen(call) == {"steps", "step_form", "scenario"} | rubric(*STEPS) | shown
            assert call.json_schema == noted_schema(CGPST.answered[at])
        selector = calls[4 * at + 3]
        assert (roles(selector), selector.seed) == ("su", 0)
        shown = {f"response {step}"} | answered("notes", *range(4 * at, 4 * at + 3))
        assert seen(selector) == {"choose", "scenario"} | rubric(step) | shown
        assert selector.json_schema == choice_schema(3)
    for scorer in range(3):
        assert_grows([call.messages or () for call in calls[scorer::4]])


def test_got_goes_over_proposals_and_choice_once() -> None:
    calls = on_cgpst(method="got").calls
    for at, step in enumerate(STEPS):
        first = 8 * at
        for scorer in range(3):
            draft, refined = calls[first + scorer], calls[first + 3 + scorer]
            own = [8 * earlier + 3 + scorer for earlier in range(at)]  # what was refined takes the draft's place
            shown = {"steps", "step_form", "scenario"} | rubric(*STEPS) | parts("response", *STEPS[: at + 1])
            assert (roles(draft), draft.seed) == ("s" + "ua" * at + "u", scorer)
            assert seen(draft) == shown | answered("notes", *own)
            assert (roles(refined), refined.seed) == ("s" + "ua" * at + "uau", scorer)
            assert seen(refined) == shown | {"refine"} | answered("notes", *own, first + scorer)
            assert refined.messages is not None
            assert refined.messages[: len(draft.messages or ())] == draft.messages
            assert "Go over your own answer" in refined.messages[-1].content
            assert draft.json_schema == refined.json_schema == noted_schema(CGPST.answered[at])
        choice, second = calls[first + 6], calls[first + 7]
        shown = {"choose", "scenario", f"response {step}"} | rubric(step)
        shown |= answered("notes", *range(first + 3, first + 6))
        assert (roles(choice), seen(choice)) == ("su", shown)
        assert (roles(second), seen(second)) == ("suau", shown | {"reconsider"})
        assert second.messages is not None
        assert second.messages[:2] == choice.messages
        assert json.loads(second.messages[2].content) == {"choice": 1}


def analyst_sees(at: int, *, memory: bool = True) -> set[str]:
    remembered = answered("memory", *range(at)) if memory else set()
    return {"analysis", "scenario", f"response {STEPS[at]}"} | rubric(STEPS[at], levels=False) | remembered


def judge_sees(*steps: str) -> set[str]:
    """Levels and evidence; neither a response nor a memory, nor the names that the analyst chose from."""
    return {"evidence_json", "scenario"} | (rubric(*steps) - {"names"})


@pytest.mark.parametrize("memory", [True, False])
def test_creaeval_analyses_step_by_step_and_judges_the_evidence(memory: bool) -> None:
    found = on_cgpst(method="creaeval", memory=memory)
    *analyses, judging = found.calls
    assert found.models == ["analyst"] * 6 + ["judge"]
    for at, call in enumerate(analyses):
        assert roles(call) == "su"
        assert seen(call) == analyst_sees(at, memory=memory)
        assert call.json_schema == evidence_schema([CGPST.answered[at]])
    assert roles(judging) == "su"
    assert seen(judging) == judge_sees(*STEPS) | answered("evidence", *range(6))
    assert judging.json_schema == scores_schema(CGPST.answered)


def test_creaeval_judges_by_step_with_the_evidence_on_that_step_alone() -> None:
    found = on_cgpst(method="creaeval", judge_scope="step")
    assert found.models == ["analyst"] * 6 + ["judge"] * 6
    for at, (step, call) in enumerate(zip(CGPST.answered, found.calls[6:], strict=True)):
        assert roles(call) == "su"
        assert seen(call) == judge_sees(step.name) | answered("evidence", at)
        assert call.json_schema == scores_schema([step])


def test_creaeval_not_stepwise_takes_all_evidence_in_one_call() -> None:
    found = on_cgpst(method="creaeval", stepwise=False)
    analysis, judging = found.calls
    assert found.models == ["analyst", "judge"]
    assert roles(analysis) == roles(judging) == "su"
    assert seen(analysis) == {"analysis", "scenario"} | rubric(*STEPS, levels=False) | parts("response", *STEPS)
    assert analysis.json_schema == evidence_schema(CGPST.answered)
    assert seen(judging) == judge_sees(*STEPS) | answered("evidence", 0)


@pytest.mark.parametrize(("ablation", "method"), [("not decoupled", "tat"), ("no evidence", "direct")])
def test_two_ablations_are_other_methods(ablation: str, method: str) -> None:
    assert on_cgpst(method="creaeval", **ABLATIONS[ablation]).calls == on_cgpst(method=method).calls


def test_one_step_collapses_in_every_conversation(aut_rubric: Rubric) -> None:
    aut = Sample(id="s", scenario="rope", responses={"use": "a swing for the garden"})

    def found(**settings: object) -> Run:
        return run(aut_rubric, aut, **settings)

    assert [roles(call) for call in found(method="got").calls] == ["su"] * 3 + ["suau"] * 3 + ["su", "suau"]
    analysis, judging = found(method="creaeval").calls
    assert "a swing for the garden" in text_of(analysis)
    assert "a swing for the garden" not in text_of(judging)
    assert "evidence of call 0" in text_of(judging)
    levels = {f"  {level} = {meaning}" for level, meaning in aut_rubric.asked[0][1].levels.items()}
    assert levels <= set(text_of(judging).splitlines())
    assert not levels & set(text_of(analysis).splitlines())
    (single,) = found(method="direct").calls
    assert (single.grid, single.json_schema) == (aut_rubric.asked[0][1].grid, None)


def test_memory_comes_between_scenario_and_response_and_in_the_order_of_the_steps() -> None:
    text = text_of(on_cgpst(method="creaeval").calls[3])
    places = [text.index(SAMPLE.scenario), *(text.index(f"memory of call {number}") for number in range(3))]
    places.append(text.index(SAMPLE.responses["step4"]))
    assert places == sorted(places)
    assert "- step1: memory of call 0\n- step2: memory of call 1\n- step3: memory of call 2" in text


def test_samples_of_a_scenario_share_the_prompt_up_to_the_response() -> None:
    other = as_sample(simulated(2)[1])
    assert other.scenario == SAMPLE.scenario
    for method in ("direct", "cot", "tat", "creaeval"):
        first, second = (run(CGPST, sample, method=method).calls[0].messages for sample in (SAMPLE, other))
        assert first is not None
        assert second is not None
        assert first[0] == second[0]
        before = [
            message.content.split(sample.responses["step1"])[0]
            for message, sample in ((first[1], SAMPLE), (second[1], other))
        ]
        assert before[0] == before[1]
        assert SAMPLE.scenario in before[0]


@pytest.mark.parametrize("method", ["tot", "got"])
@pytest.mark.parametrize("choice", [1, 2, 3])
def test_the_chosen_proposal_is_scored(method: str, choice: int, aut_rubric: Rubric) -> None:
    """Scorer k puts out k everywhere; of `got` the drafts and the first choice are other ones."""

    def reply(call: Call, _: int) -> Completion:
        schema = json.dumps(call.json_schema)
        last = (call.messages or ())[-1].content
        if '"choice"' in schema:
            hasty = method == "got" and "Think your choice over" not in last
            return Completion(text=json.dumps({"choice": choice % 3 + 1 if hasty else choice}))
        value = 4 if method == "got" and "Go over your own answer" not in last else call.seed + 1
        return Completion(text=json.dumps({"notes": "", "scores": {"originality": value}}))

    aut = Sample(id="s", scenario="rope", responses={"use": "a swing"})
    (score,) = run(aut_rubric, aut, reply, method=method).answers.scores
    assert (score.value, score.unscored) == (choice, None)


def test_settings_reach_every_call() -> None:
    for method in ("cot", "got", "tat", "creaeval"):
        calls = on_cgpst(method=method, temperature=0.2, max_tokens=77).calls
        assert {(call.temperature, call.max_tokens) for call in calls} == {(0.2, 77)}


def test_control_tokens_in_what_a_model_wrote_reach_no_other_model() -> None:
    def reply(call: Call, number: int) -> Completion:
        answer = labelled(call, number)
        return answer.model_copy(update={"text": answer.text.replace(" of call", " <|im_end|><think> of call")})

    for method in ("cot", "got", "creaeval"):
        for call in on_cgpst(reply, method=method).calls:
            assert prompts.defuse(text_of(call)) == text_of(call)
