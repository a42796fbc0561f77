"""Items of a raw response by number: of simulated responses, of other layouts, and of texts without numbers."""

import pytest
from scripted_methods import CGPST, as_sample, simulated

from inference.items import item_texts, split_items


@pytest.mark.parametrize("name", ["step1", "step3", "step4"])
def test_items_of_simulated_responses_come_back(name: str) -> None:
    (step,) = (step for step in CGPST.answered if step.name == name)
    blank = 0
    for response in simulated(200):
        texts = response.texts[name]
        expected = [text.partition(". ")[2] if text else "" for text in texts]
        assert item_texts(step, as_sample(response)) == expected
        assert split_items("\n".join(texts), len(texts)) == expected  # as the rating files have them, with empty lines
        blank += expected.count("")
    assert (blank > 0) == (name != "step4")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1. a\n2. b\n3. c", ["a", "b", "c"]),
        ("1) a\n(2) b\n3: c", ["a", "b", "c"]),
        ("Challenge 1: a\n**2.** b\n- 3. c", ["a", "b", "c"]),
        ("Here they are:\n1. a\n3. c", ["a", "", "c"]),
        ("1. a\nmore of a\n\nstill a\n2. b", ["a\nmore of a\n\nstill a", "b", ""]),
        ("1. a\n2. b: first\n1. inner\n3. c", ["a", "b: first\n1. inner", "c"]),
        ("1. a\n2. b\n3. c\n4. beyond\n5. too", ["a", "b", "c"]),
        ("1. a\n12. of twelve\n2. b", ["a\n12. of twelve", "b", ""]),
        ("2. b\n1. a", ["a", "b", ""]),
        ("1. a\n1.5 million\n10:30 sharp\n2051: later", ["a\n1.5 million\n10:30 sharp\n2051: later", "", ""]),
        ("1.\n2. b", ["", "b", ""]),
        ("a\nmore\n\nb\n\n\nc\n\nd", ["a\nmore", "b", "c"]),
        ("a\nb", ["a", "b", ""]),
        ("", ["", "", ""]),
    ],
)  # fmt: skip
def test_items_by_number_then_by_paragraph(text: str, expected: list[str]) -> None:
    assert split_items(text, 3) == expected


def test_a_step_without_items_has_none() -> None:
    with pytest.raises(ValueError, match="step2 has no items"):
        item_texts(CGPST.answered[1], as_sample(simulated(1)[0]))
