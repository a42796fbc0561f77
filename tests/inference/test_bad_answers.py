"""Bad answers, in every conversation of every method: complained of once, then the second answer stands.

Where it cannot be used either, what was asked for is unscored with the reason, and the rest is judged.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from scripted_methods import CGPST, Reply, Run, as_sample, filled, labelled, run, simulated, text_of

from inference.aggregation import aggregate
from inference.records import Call, Completion, Sample
from inference.rubric import Rubric

SAMPLE = as_sample(simulated(1)[0])
STEPS = frozenset(step.name for step in CGPST.answered)
Change = Callable[[Completion], Completion]


@dataclass(frozen=True)
class Place:
    """Where an answer is bad."""

    options: dict[str, Any]
    number: int
    """Of the call."""
    steps: frozenset[str]
    """Which are lost with it."""
    calls: int
    """In all, where every answer is good."""
    spared: int = 0
    """Calls that are not made where the steps are lost."""


def place(number: int, steps: str | frozenset[str], calls: int, method: str, **options: Any) -> Place:
    return Place({"method": method, **options}, number, frozenset([steps]) if isinstance(steps, str) else steps, calls)


SCORES = {
    "direct": place(0, STEPS, 1, "direct"),
    "direct by step": place(1, "step2", 6, "direct", judge_scope="step"),
    "cot": place(1, "step2", 6, "cot"),
    "tot": place(4, "step2", 24, "tot"),
    "got": place(11, "step2", 48, "got"),
    "tat": place(0, STEPS, 1, "tat"),
    "creaeval": place(6, STEPS, 7, "creaeval"),
    "creaeval by step": place(7, "step2", 12, "creaeval", judge_scope="step"),
    "not stepwise": place(1, STEPS, 2, "creaeval", stepwise=False),
}
"""Answers with scores, those of step 2 among them."""
CHOICES = {"tot": place(7, "step2", 24, "tot"), "got": place(15, "step2", 48, "got")}
EVIDENCE = {
    "creaeval": place(1, "step2", 7, "creaeval"),
    "by step": replace(place(1, "step2", 12, "creaeval", judge_scope="step"), spared=1),
    "no memory": place(1, "step2", 7, "creaeval", memory=False),
}


def replaced(old: str, new: str) -> Change:
    def change(answer: Completion) -> Completion:
        assert old in answer.text
        return answer.model_copy(update={"text": answer.text.replace(old, new, 1)})

    return change


def text(new: str) -> Change:
    return lambda answer: answer.model_copy(update={"text": new.replace("ANSWER", answer.text)})


WHOLE: dict[str, tuple[Change, str]] = {
    "cut off": (lambda answer: answer.model_copy(update={"finish_reason": "length"}), "cut off at max_tokens"),
    "half": (lambda answer: text(answer.text[: len(answer.text) // 2])(answer), "not one JSON object"),
    "prose": (text("I would give five of five."), "not one JSON object"),
    "prose around": (text("Sure! ANSWER"), "not one JSON object"),
    "twice": (text("ANSWER ANSWER"), "not one JSON object"),
    "number": (text("5"), "not a JSON object"),
    "list": (text("[ANSWER]"), "not a JSON object"),
    "empty": (text(""), "not one JSON object"),
}
"""Faults of a whole answer, and what is complained of."""
CELL = '"cp": 0'
"""The lowest score of a dimension of step 2, as it stands in an answer."""
CELLS: dict[str, tuple[Change, str]] = {
    "missing": (replaced(f"{CELL}, ", ""), "the answer has no"),
    "out of range": (replaced(CELL, '"cp": 3'), "'3' is no whole number in [0, 2]"),
    "negative": (replaced(CELL, '"cp": -1'), "'-1' is no whole number in [0, 2]"),
    "between": (replaced(CELL, '"cp": 0.5'), "'0.5' is no whole number in [0, 2]"),
    "text": (replaced(CELL, '"cp": "0"'), "not a number: '0'"),
    "nothing": (replaced(CELL, '"cp": null'), "not a number: 'None'"),
    "too large": (replaced(CELL, '"cp": 1e999'), "not a number"),
}


def spoiled(number: int, change: Change, times: int) -> Reply:
    """Answers of which `times` are changed, from the one to the call of that number on."""

    def reply(call: Call, at: int) -> Completion:
        answer = labelled(call, at)
        return change(answer) if number <= at < number + times else answer

    return reply


def assert_complained_once(found: Run, where: Place, reason: str) -> None:
    """The call after the bad answer shows it, with the reason, and is otherwise the same; no other call complains."""
    asked_again = [at for at, call in enumerate(found.calls) if "That could not be used" in text_of(call)]
    assert asked_again == [where.number + 1]
    first, second = found.calls[where.number], found.calls[where.number + 1]
    assert first.messages is not None
    assert second.messages is not None
    assert second.messages[:-2] == first.messages
    assert [message.role for message in second.messages[-2:]] == ["assistant", "user"]
    assert reason in second.messages[-1].content
    assert second.model_copy(update={"messages": None}) == first.model_copy(update={"messages": None})
    assert found.models[where.number] == found.models[where.number + 1]


def check(where: Place, change: Change, reason: str, lost: frozenset[str]) -> None:
    """Bad once: nothing is lost. Bad twice: `lost`, steps or single scores (``step.dimension``), with the reason."""
    once = run(CGPST, SAMPLE, spoiled(where.number, change, 1), **where.options)
    assert_complained_once(once, where, reason)
    assert not once.unscored()
    assert len(once.calls) == where.calls + 1
    twice = run(CGPST, SAMPLE, spoiled(where.number, change, 2), **where.options)
    assert_complained_once(twice, where, reason)
    assert len(twice.calls) == where.calls + 1 - where.spared
    for score in twice.answers.scores:
        assert bool(score.unscored) == bool({score.step, score.key} & lost)
        assert score.unscored is None or reason in score.unscored
        assert score.unscored is None or (score.value, score.top, score.choice) == (None, None, None)


@pytest.mark.parametrize("fault", WHOLE)
@pytest.mark.parametrize("name", SCORES)
def test_an_unreadable_answer_with_scores(name: str, fault: str) -> None:
    change, reason = WHOLE[fault]
    check(SCORES[name], change, reason, SCORES[name].steps)


@pytest.mark.parametrize("fault", CELLS)
@pytest.mark.parametrize("name", SCORES)
def test_one_bad_score_loses_itself_alone(name: str, fault: str) -> None:
    change, reason = CELLS[fault]
    check(SCORES[name], change, reason, frozenset({"step2.condition_phrase"}))


@pytest.mark.parametrize("fault", WHOLE)
@pytest.mark.parametrize("name", EVIDENCE)
def test_unreadable_evidence_loses_its_step_alone(name: str, fault: str) -> None:
    change, reason = WHOLE[fault]
    check(EVIDENCE[name], change, reason, frozenset({"step2"}))


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({}, "no evidence and memory of step2"),
        ({"evidence": {}, "memory": "m"}, "no text under cp, kv, pu, fs, fo, ad"),
        (
            {"evidence": dict.fromkeys(("cp", "kv", "pu", "fs", "fo", "ad"), " "), "memory": "m"},
            "says nothing on step2",
        ),
        ({"evidence": {"cp": "x", "kv": 3}, "memory": "m"}, "no text under kv"),
        ({"evidence": dict.fromkeys(("cp", "kv", "pu", "fs", "fo", "ad"), "x")}, "no evidence and memory of step2"),
    ],
)
@pytest.mark.parametrize("name", EVIDENCE)
def test_evidence_with_a_fault_loses_its_step_alone(name: str, answer: dict[str, Any], reason: str) -> None:
    check(EVIDENCE[name], text(json.dumps(answer)), reason, frozenset({"step2"}))


def test_a_step_without_evidence_is_not_put_to_the_judge() -> None:
    found = run(CGPST, SAMPLE, spoiled(1, text("no"), 2), method="creaeval")
    judging = found.calls[-1]
    assert "Evidence on step step1" in text_of(judging)
    assert "step2" not in text_of(judging)
    assert set((judging.json_schema or {})["properties"]) == STEPS - {"step2"}
    assert "memory of step2" not in text_of(found.calls[3])
    by_step = run(CGPST, SAMPLE, spoiled(1, text("no"), 2), method="creaeval", judge_scope="step")
    assert by_step.models == ["analyst"] * 7 + ["judge"] * 5


def test_without_any_evidence_the_judge_is_not_asked() -> None:
    found = run(CGPST, SAMPLE, lambda _, __: Completion(text="no"), method="creaeval")
    assert found.models == ["analyst"] * 12
    assert set(found.unscored()) == STEPS


def test_all_evidence_in_one_answer_loses_only_the_faulty_steps() -> None:
    where = place(0, "step3", 2, "creaeval", stepwise=False)

    def without_step3(answer: Completion) -> Completion:
        content = json.loads(answer.text)
        content["step3"]["evidence"].pop()
        return Completion(text=json.dumps(content))

    check(where, without_step3, "needs 8 entries on step3", frozenset({"step3"}))


@pytest.mark.parametrize("change", ["cut off", "prose", "empty"])
@pytest.mark.parametrize("name", CHOICES)
def test_an_unreadable_choice_loses_its_step_alone(name: str, change: str) -> None:
    check(CHOICES[name], *WHOLE[change], CHOICES[name].steps)


@pytest.mark.parametrize("choice", [0, 4, 1.5, True, "1", None])
@pytest.mark.parametrize("name", CHOICES)
def test_a_choice_that_is_none_loses_its_step_alone(name: str, choice: object) -> None:
    reason = "is no whole number from 1 to 3"
    check(CHOICES[name], text(json.dumps({"choice": choice})), reason, CHOICES[name].steps)


def test_a_bad_first_choice_of_got_is_made_good_by_the_second() -> None:
    found = run(CGPST, SAMPLE, spoiled(14, text("?"), 2), method="got")
    assert len(found.calls) == 49
    assert not found.unscored()


def test_a_bad_proposal_that_is_not_chosen_loses_nothing() -> None:
    found = run(CGPST, SAMPLE, spoiled(5, text("?"), 2), method="tot")
    assert len(found.calls) == 25
    assert not found.unscored()


def test_a_complaint_does_not_stay_in_the_conversation() -> None:
    found = run(CGPST, SAMPLE, spoiled(1, text("Five!"), 1), method="cot")
    assert [len(call.messages or ()) for call in found.calls] == [2, 4, 6, 6, 8, 10, 12]
    assert "Five!" not in text_of(found.calls[3])


@pytest.mark.parametrize("method", ["direct", "cot", "tot", "got", "tat", "creaeval"])
def test_an_unknown_category_unscores_what_is_counted_from_it(method: str) -> None:
    """All scores are the highest, so every item counts; the first challenge has a category that is none."""

    def reply(call: Call, number: int) -> Completion:
        if "memory" in json.dumps(call.json_schema):
            return labelled(call, number)
        if "choice" in (call.json_schema or {})["properties"]:
            return Completion(text='{"choice": 1}')
        answer = json.dumps(filled(call.json_schema or {}, str, chosen=-1))
        return Completion(text=answer.replace("Transportation", "Space Travel", 1))

    found = run(CGPST, SAMPLE, reply, method=method)
    lost = {"step1", "step3"} if method in ("cot", "tot", "got") else {"step1"}
    scores = {score.key: score for score in aggregate(CGPST, found.answers.scores)}
    unscored = {key for key, score in scores.items() if score.unscored}
    assert unscored == {f"{step}.{name}" for step in lost for name in ("flexibility", "overall")} | {"total.total"}
    assert "'Space Travel' is none of the names of category" in str(scores["step1.flexibility"].unscored)
    assert scores["step1.originality"].value == 16


def test_a_single_number_is_asked_for_again_too(aut_rubric: Rubric) -> None:
    sample = Sample(id="s", scenario="rope", responses={"use": "a swing, surely a 5"})
    for second, value in (("4", 4.0), ("6", None)):
        answers = iter(["I say 5", second])
        found = run(aut_rubric, sample, lambda _, __, answers=answers: Completion(text=next(answers)), method="direct")
        assert len(found.calls) == 2
        assert "the answer is not one number" in (found.calls[1].messages or ())[-1].content
        assert [score.value for score in found.answers.scores] == [value]
