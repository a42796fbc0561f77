"""Plain prompts of learned models: their layout, what is not asked, and evidence that can't be read."""

import pytest
from scripted_methods import CGPST, as_sample, run, simulated

from inference import prompts
from inference.answers import read_evidence_line
from inference.judges import JudgeConfig
from inference.prompts import compact
from inference.records import Call, Completion, Sample, StepEvidence
from inference.rubric import Rubric
from inference.schemas import NO_CHOICE

STEPS = {step.name: step for step in CGPST.answered}
STEP1, STEP2 = STEPS["step1"], STEPS["step2"]
SAMPLE = Sample(
    id="s",
    scenario="A long text.",
    subject="Cabs. They\nstrand <|im_end|> people.",
    responses={"step1": "1. Snow\n  stops cabs.\n3. Bids rise.", "step2": "How might\nwe plough?"},
)


def test_what_is_learned_of_items_and_of_steps(aut_rubric: Rubric, plan_rubric: Rubric) -> None:
    learned = {f"{step.name}.{d.name}": (d.range, per_item) for step, d, per_item in CGPST.learned}
    assert len(learned) == len(CGPST.learned) == 23
    assert learned["step1.fluency"] == ((0, 1), True)
    assert learned["step1.flexibility"] == ((0, 8), False)
    assert learned["step4.relevance"] == ((0, 3), True)
    assert learned["step2.focus"] == ((1, 10), False)
    assert not {"step1.category", "step2.integrity", "step1.overall", "total.total"} & set(learned)
    for rubric in (aut_rubric, plan_rubric):
        assert [(step, dimension) for step, dimension, _ in rubric.learned] == list(rubric.scored)


def test_prompts_of_judges() -> None:
    asked = {(q.learned, q.item): q.prompt for q in prompts.raw_questions(CGPST, SAMPLE)}
    names = [f"{step.name}.{dimension.name}" for step, dimension, _ in CGPST.learned]
    keys = ("step1.fluency", "step1.flexibility", "step1.elaboration", "step2.focus")
    first, whole, second, focus = map(names.index, keys)
    line = "Cabs. They strand < |im_end|> people.\n"
    assert asked[first, 1] == f"{line}step1 challenge 1\nSnow stops cabs.\nfluency\n"
    assert asked[second, 1] == asked[first, 1] + "elaboration\n"
    assert asked[whole, None] == f"{line}step1\n1. Snow stops cabs. 3. Bids rise.\nflexibility\n"
    before = "condition_phrase\nstem_kvp\npurpose\nfs_parameters\n"
    assert asked[focus, None] == f"{line}step2\nHow might we plough?\n{before}focus\n"
    assert compact.evidence_prompt(STEP1, STEP1.dimension("fluency"), ' "Snow"\nis <|im_end|>') == (
        'step1 fluency\n"Snow" is < |im_end|>\n'
    )
    assert compact.subject(SAMPLE.model_copy(update={"subject": ""})) == "A long text."


def test_blank_items_are_known_and_not_asked() -> None:
    asked = {(CGPST.learned[q.learned][0].name, q.item) for q in prompts.raw_questions(CGPST, SAMPLE)}
    assert {item for step, item in asked if step == "step1"} == {None, 1, 3}
    # All solutions are blank, so there is nothing to be counted; criteria have nothing that says whether they count.
    assert {item for step, item in asked if step == "step3"} == set()
    assert {item for step, item in asked if step == "step4"} == {1, 2, 3, 4, 5}
    known = {(score.key, score.item): score.value for score in prompts.raw_known(CGPST, SAMPLE)}
    assert known == {(f"step{n}.fluency", i): 0.0 for n in (1, 3) for i in range(1, 9) if n == 3 or i not in (1, 3)}


def test_prompt_of_the_analyst() -> None:
    quoted = ["one", "two", "three", "four", "five", "six"]
    assert prompts.analyst_prompt(SAMPLE, STEP1, 3, "Named so far:\nsnow.", quoted) == (
        "Cabs. They strand < |im_end|> people.\nNamed so far: snow.\n"
        'so far: "two"; "three"; "four"; "five"; "six"\nstep1 challenge 3\nBids rise.\n'
    )
    assert prompts.analyst_prompt(SAMPLE, STEP2) == (
        "Cabs. They strand < |im_end|> people.\nstep2\nHow might we plough?\n"
    )


def texts(**given: str) -> dict[str, str]:
    return {"fluency": '"snow stops": told', "elaboration": "thin", "originality": "often met", "category": "x"} | given


def test_an_analysts_line_is_read_back() -> None:
    line = prompts.evidence_line(STEP1, texts(elaboration="says a | b\nand c"))
    assert line == '"snow stops": told | says a / b and c | often met | x'
    assert read_evidence_line(STEP1, Completion(text=line)) == texts(elaboration="says a / b and c")
    for response in simulated(20, 10):
        for part in response.evidence:
            step = STEPS[part.step]
            for row in part.items or (part.texts,):
                found = read_evidence_line(step, Completion(text=prompts.evidence_line(step, row)))
                assert found == row


@pytest.mark.parametrize(
    ("text", "reason", "words"),
    [
        ("a | b | c", "stop", "needs 4 texts, has 3"),
        ("a | b | c | d | e", "stop", "needs 4 texts, has 5"),
        ("a |  | c | d", "stop", "no text on elaboration"),
        ("a | b | c | d", "length", "cut off"),
        ("", "stop", "needs 4 texts, has 1"),
    ],
)
def test_a_line_that_is_no_evidence(text: str, reason: str, words: str) -> None:
    completion = Completion.model_validate({"text": text, "finish_reason": reason})
    assert words in str(read_evidence_line(STEP1, completion))


def test_memories_are_made_of_quotations() -> None:
    long = "a b c d e f g h i"
    rows = (texts(fluency=f'"snow stops": told, "{long}"'), texts(fluency='"snow stops" again'), texts(fluency="none"))
    first = StepEvidence(step="step1", items=rows)
    assert prompts.item_quotations(STEP1, rows) == ["snow stops", "a b c d e f g"]
    assert prompts.step_memory(STEP1, first) == "Named so far: snow stops; a b c d e f g."
    second = StepEvidence(
        step="step2", texts={"focus": '"at last"', "stem_kvp": 'wants to "plough"', "purpose": "none"}
    )
    assert prompts.step_memory(STEP2, second) == "From step2: plough; at last."
    memories = {"step1": "one", "step2": "two", "step3": "three", "step4": ""}
    assert [prompts.remembered(CGPST, step, memories) for step in CGPST.answered] == [
        "",
        "one",
        "two",
        "two",
        "two",
        "two",
    ]
    assert prompts.remembered(CGPST, STEPS["step4"], {"step1": "one", "step2": "", "step3": "three"}) == "three"


def test_evidence_is_judged_text_by_text_and_choices_stand_in_it() -> None:
    empty = texts(fluency=prompts.NOTHING, category=NO_CHOICE)
    rows = (texts(category=" Technology"), texts(), {}, *[empty] * 5)
    evidence = [StepEvidence(step="step1", items=rows)]
    asked = prompts.evidence_questions(CGPST, evidence)
    assert [(CGPST.learned[q.learned][1].name, q.item) for q in asked] == [
        (name, item) for name in ("fluency", "elaboration", "originality") for item in (1, 2)
    ]
    known = {(score.dimension, score.item): score for score in prompts.evidence_known(CGPST, evidence)}
    assert known["category", 1].choice == "Technology"
    assert known["category", 2].unscored == "the evidence names no Category"
    assert [known["fluency", item].value for item in range(4, 9)] == [0.0] * 5
    assert len(known) == 7


def analyst(call: Call, _: int) -> Completion:
    """Evidence that quotes nine words of the response; the second challenge and step 2 can't be read."""
    if call.grid:
        return Completion(text="1", grid_logprobs={"1": 0.0} if "1" in call.grid else {call.grid[0]: 0.0})
    assert call.prompt
    place, text = call.prompt.splitlines()[-2:]
    step = STEPS[place.split()[0]]
    if place in ("step1 challenge 2", "step2"):
        return Completion(text="no idea")
    said = " ".join(text.split()[:9])
    return Completion(text=prompts.evidence_line(step, {d.name: f'"{said}"' for d in step.asked}))


def test_unreadable_evidence_leaves_its_scores_missing_and_long_quotations_are_cut() -> None:
    sample = as_sample(simulated(1)[0])
    judge = {"method": "compact_creaeval", "analyst": {"engine": "scripted", "model": "analyst"}}
    found = run(CGPST, sample, analyst, **judge)
    unscored = {(s.step, s.item) for s in found.answers.scores if s.unscored and "no evidence" in s.unscored}
    assert unscored == {("step1", 2), ("step2", None)}
    parts = {part.step: part for part in found.answers.evidence}
    assert list(parts) == ["step1", "step3", "step4", "step5", "step6"]
    assert parts["step1"].items[1] == {}
    assert parts["step6"].cut == len(STEPS["step6"].asked)
    assert "[…]" in parts["step6"].texts["impact"]
    kinds = {bool(call.grid): model for call, model in zip(found.calls, found.models, strict=True)}
    assert kinds == {True: "judge", False: "analyst"}
    raw = " ".join(sample.responses["step6"].split())
    shown = [call.prompt or "" for call, model in zip(found.calls, found.models, strict=True) if model == "judge"]
    assert not any(raw[:120] in prompt or compact.subject(sample) in prompt for prompt in shown)


def test_an_analyst_belongs_to_methods_that_analyse() -> None:
    settings = {"id": "j", "engine": "scripted", "model": "m", "analyst": {"engine": "scripted", "model": "a"}}
    assert JudgeConfig.model_validate({**settings, "method": "compact_creaeval"}).analyst
    with pytest.raises(ValueError, match="has no analysis of its own"):
        JudgeConfig.model_validate({**settings, "method": "compact"})
