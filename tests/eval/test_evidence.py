"""Form of evidence, quotations that stand in the response, names and numbers that don't."""

import pytest
from scripted_methods import CGPST, as_sample, simulated

from eval.evidence import Quality, form_fault, has_quotation, quality, quotations, step_fault, unfounded
from inference.records import StepEvidence

STEP1, STEP2 = CGPST.answered[0], CGPST.answered[1]
TEXT = "1. Tug-of-war teams mend the town's old feuds, says Orrery in 2051."


def test_quotations_of_every_kind() -> None:
    assert quotations('a "b c" d “e f” „g“ «h» "') == ["b c", "e f", "g", "h"]


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ('"mend the town\'s"', True),
        ('"MEND, the town’s"', True),
        ('"tug-of-war teams mend the town\'s old feuds"', True),
        ('"mend the"', False),
        ('"tug-of-war teams mend the town\'s old feuds, says"', False),
        ('"mend the old"', False),
        ("mend the town's old", False),
        ('"mend the old" and "the town\'s old"', True),
    ],
)
def test_a_quotation_has_three_to_seven_words_of_the_response(said: str, found: bool) -> None:
    assert has_quotation([said], TEXT) is found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Names what Orrery said of 2051", []),
        ("names what Orrery's people said", []),
        ("names what Kepler said of 2049", ["2049", "Kepler"]),
        ("Kepler opens. Kepler again: Kepler", []),
        ("takes up the Future Problem of challenge 7 and step 2", []),
        ("belongs to the Technology side", []),
        ("the shared 7 of them", ["7"]),
    ],
)
def test_names_and_numbers_come_from_response_scenario_or_rubric(text: str, found: list[str]) -> None:
    assert unfounded([text], [TEXT, "a problem of the future"], STEP1, CGPST) == found


def test_form() -> None:
    sound = {d.name: "Technology" if d.choices else "said" for d in STEP1.asked}
    assert form_fault(STEP1, sound) is None
    assert form_fault(STEP1, {**sound, "category": "none"}) is None
    assert form_fault(STEP1, {**sound, "category": "moot"}) == "'moot' is none of the names of category"
    assert form_fault(STEP1, {**sound, "category": "moot"}, ["moot"]) is None
    assert form_fault(STEP1, {**sound, "elaboration": " "}) == "nothing on elaboration"
    assert form_fault(STEP1, {**sound, "focus": "x"}) == "focus is not asked of step1"
    assert step_fault(STEP1, StepEvidence(step="step1", items=(sound,) * 8)) is None
    assert step_fault(STEP1, StepEvidence(step="step1", items=(sound,) * 7)) == "7 items in place of 8"
    assert step_fault(STEP2, StepEvidence(step="step2", items=(sound,))) == "items on a step that has none"


def test_the_oracle_is_valid_and_grounded_and_nothing_is_not() -> None:
    responses = simulated(12, 16)
    samples = [as_sample(response) for response in responses]
    evidence = {response.id: response.evidence for response in responses}
    settings = {"no_choice": ["does not apply"], "unquoted_steps": ["step5"]}
    found = quality(CGPST, samples, evidence, **settings)
    for name, part in found.items():
        assert part.asked == part.valid == part.founded > 0
        assert part.quotable == (0 if name == "step5" else part.asked)
        assert part.grounded == part.quotable
    assert quality(CGPST, samples, {}, **settings)["step2"] == Quality(12, 0, 0, 0, 0)
    # Evidence on another response quotes what isn't there.
    swapped = dict(zip(evidence, [*list(evidence.values())[1:], responses[0].evidence], strict=True))
    other = quality(CGPST, samples, swapped, **settings)
    assert sum(part.grounded for part in other.values()) < 0.1 * sum(part.quotable for part in other.values())
    assert other["step1"].founded < other["step1"].valid
