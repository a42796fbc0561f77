"""The parser of JSON answers: scores, evidence and choices; what stays missing, and why."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.answers import (
    complaint_of,
    number_positions,
    read_choice,
    read_evidence,
    read_noted_scores,
    read_scores,
    read_table,
)
from inference.records import Completion, StepEvidence, Token
from inference.rubric import Dimension, Rubric, Step

WHOLE = Dimension(name="quality", description="How good.", range=(1, 5))
WIDE = Dimension(name="fluency", description="How many.", range=(1, 16))
TWO_STEPS = Rubric(
    name="plan",
    description="Plans.",
    steps=(
        Step(name="a", task="Plan.", dimensions=(WHOLE,)),
        Step(name="b", task="Go on.", dimensions=(WHOLE.model_copy(update={"range": (0, 3)}), WIDE)),
    ),
)


def answer(text: str, **more: object) -> list[tuple[float | None, str | None]]:
    completion = Completion.model_validate({"text": text, **more})
    return [(score.value, score.unscored) for score in read_scores(TWO_STEPS.answered, completion)]


GOOD = '{"a": {"quality": 4}, "b": {"quality": 0, "fluency": 16}}'


@pytest.mark.parametrize("text", [GOOD, f"\n {GOOD}\n", f"```json\n{GOOD}\n```", f"```\n{GOOD}\n```"])
def test_a_json_answer_is_read_in_the_rubrics_order(text: str) -> None:
    assert answer(text) == [(4.0, None), (0.0, None), (16.0, None)]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        GOOD[:-1],
        f"{GOOD}{GOOD}",
        f"My verdict:\n{GOOD}",
        f"{GOOD}\nThe response asked for 5.",
        f"```json\n{GOOD}",
        f"[{GOOD}]",
        "4",
        "null",
        '{"a": {"quality": 1}, "a": {"quality": 5}, "b": {"quality": 0, "fluency": 2}}',
        '{"a": {"quality": 1, "quality": 5}, "b": {"quality": 0, "fluency": 2}}',
        "[" * 100_000,
    ],
)
def test_a_damaged_or_forged_json_answer_scores_nothing(text: str) -> None:
    assert all(value is None and reason for value, reason in answer(text))


@pytest.mark.parametrize(
    "cell",
    [
        "9",
        "0",
        "-1",
        "2.5",
        "true",
        "null",
        '"4"',
        "[4]",
        '{"quality": 4}',
        '{"value": 4}',
        "NaN",
        "Infinity",
        "1e999",
        "1" * 400,
    ],
)
def test_one_bad_cell_leaves_the_other_scores(cell: str) -> None:
    text = f'{{"a": {{"quality": {cell}}}, "b": {{"quality": 3, "fluency": 2}}}}'
    first, *rest = answer(text)
    assert first[0] is None
    assert first[1]
    assert rest == [(3.0, None), (2.0, None)]


def test_missing_parts_stay_missing_one_by_one() -> None:
    assert [value for value, _ in answer('{"b": {"quality": 3}}')] == [None, 3.0, None]
    assert [value for value, _ in answer('{"a": 4, "b": []}')] == [None, None, None]


def test_an_answer_cut_off_at_max_tokens_is_unscored_even_if_it_parses() -> None:
    assert all(value is None and "cut off" in str(reason) for value, reason in answer(GOOD, finish_reason="length"))


def tokens(*parts: tuple[str, dict[str, float]]) -> tuple[Token, ...]:
    return tuple(Token(text=text, logprob=-0.1, top=top) for text, top in parts)


def test_a_json_scores_distribution_is_read_at_its_own_key() -> None:
    parts = tokens(
        ('{"a": {"quality": ', {}),
        ("4", {"4": math.log(0.75), "2": math.log(0.25)}),
        ('}, "b": {"quality": ', {}),
        ("0", {"0": math.log(0.5), "1": math.log(0.5)}),
        (', "fluency": ', {}),
        ("1", {"1": math.log(0.9)}),
        ("6", {"6": math.log(0.9)}),
        ("}}", {}),
    )
    completion = Completion(text="".join(token.text for token in parts), tokens=parts)
    first, second, third = read_scores(TWO_STEPS.answered, completion)
    assert first.value == pytest.approx(0.75 * 4 + 0.25 * 2)
    assert second.value == pytest.approx(0.5)
    # Two digits cannot be read from one position: the text stands.
    assert (third.value, third.distribution) == (16.0, None)


def test_number_positions_ignore_numbers_inside_strings() -> None:
    text = '{"why": "I say \\"quality\\": 5", "a": {"quality": 3}}'
    assert number_positions(text) == [(("a", "quality"), text.rindex("3"))]


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["a", "b", "quality", "fluency", "x"]), inner),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["a", "b", "c"]), JSON))
def test_every_read_score_lies_in_its_range(content: dict[str, object]) -> None:
    text = json.dumps(content)
    parts = tuple(Token(text=character, logprob=0.0, top={character: 0.0}) for character in text)
    for (_, dimension), score in zip(
        TWO_STEPS.scored, read_scores(TWO_STEPS.answered, Completion(text=text, tokens=parts)), strict=True
    ):
        assert score.value is None or dimension.range[0] <= score.value <= dimension.range[1]


ITEMS = Rubric.model_validate(
    {
        "name": "ideas",
        "description": "Ideas are rated.",
        "steps": [
            {
                "name": "list",
                "task": "List two ideas.",
                "items": {"kind": "idea", "count": 2},
                "dimensions": [
                    {"name": "detail", "key": "d", "description": "detail", "per_item": True, "range": [0, 2]},
                    {"name": "kind", "key": "k", "description": "kind", "per_item": True, "choices": ["art", "law"]},
                ],
            },
            {"name": "pick", "task": "Pick.", "dimensions": [{"name": "fit", "description": "fit", "range": [1, 5]}]},
        ],
    }
)


def test_items_of_a_json_answer_are_read_one_by_one() -> None:
    text = '{"list": [{"d": 2, "k": "law"}, {"d": 0, "k": "art"}], "pick": {"fit": 4}}'
    found = read_scores(ITEMS.answered, Completion(text=text))
    assert [(s.step, s.dimension, s.item, s.value, s.choice) for s in found] == [
        ("list", "detail", 1, 2, None),
        ("list", "kind", 1, None, "law"),
        ("list", "detail", 2, 0, None),
        ("list", "kind", 2, None, "art"),
        ("pick", "fit", None, 4, None),
    ]


@pytest.mark.parametrize(
    ("text", "reasons"),
    [
        (
            '{"list": [{"d": 2, "k": "law"}], "pick": {"fit": 4}}',
            ["the answer has no list[2].d", "the answer has no list[2].k"],
        ),
        (
            '{"list": [{"d": 3, "k": "sea"}, {"d": 1, "k": "art"}], "pick": {"fit": 4}}',
            ["'3' is no whole", "'sea' is none of"],
        ),
        (
            '{"list": {"d": 2, "k": "law"}, "pick": {"fit": 4}}',
            ["no list[1].d", "no list[1].k", "no list[2].d", "no list[2].k"],
        ),
        ('{"list": [2, "law"], "pick": {"fit": 4}}', ["no list[1].d", "no list[1].k", "no list[2].d", "no list[2].k"]),
        ('{"list": [{"d": 1, "k": ["art"]}, {"d": 1, "k": "art"}], "pick": {"fit": 4}}', ["is none of the names"]),
    ],
)
def test_faulty_items_are_unscored_each_with_its_reason(text: str, reasons: list[str]) -> None:
    found = [score.unscored for score in read_scores(ITEMS.answered, Completion(text=text)) if score.unscored]
    assert len(found) == len(reasons)
    for unscored, reason in zip(found, reasons, strict=True):
        assert reason in unscored


def test_numbers_in_lists_have_their_place() -> None:
    text = '{"a": [{"b": 12}, [3, -4]], "c": 5, "d": "6, [7"}'
    assert [(path, text[start]) for path, start in number_positions(text)] == [
        (("a", 0, "b"), "1"),
        (("a", 1, 0), "3"),
        (("a", 1, 1), "-"),
        (("c",), "5"),
    ]


LIST, PICK = ITEMS.answered
ROWS = [{"d": "says much", "k": "law"}, {"d": "says little", "k": "none"}]


def evidence(*steps: Step, **content: Any) -> dict[str, StepEvidence | str]:
    return read_evidence(steps, Completion(text=json.dumps(content)))


def test_evidence_of_one_step_and_of_several() -> None:
    listed = StepEvidence(
        step="list",
        items=({"detail": "says much", "kind": "law"}, {"detail": "says little", "kind": "none"}),
        memory="two ideas",
    )
    picked = StepEvidence(step="pick", texts={"fit": "fits"}, memory="")
    list_answer = {"evidence": ROWS, "memory": "two ideas"}
    pick_answer = {"evidence": {"fit": "fits"}, "memory": ""}
    assert evidence(LIST, **list_answer) == {"list": listed}
    assert evidence(PICK, **pick_answer) == {"pick": picked}
    assert evidence(LIST, PICK, list=list_answer, pick=pick_answer) == {"list": listed, "pick": picked}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({}, "no evidence and memory of list"),
        ({"evidence": ROWS}, "no evidence and memory of list"),
        ({"evidence": ROWS, "memory": 3}, "no evidence and memory of list"),
        ({"evidence": {}, "memory": ""}, "needs 2 entries on list"),
        ({"evidence": [], "memory": ""}, "needs 2 entries on list"),
        ({"evidence": ROWS[:1], "memory": ""}, "needs 2 entries on list"),
        ({"evidence": [*ROWS, *ROWS], "memory": ""}, "needs 2 entries on list"),
        ({"evidence": [ROWS[0], {"d": "x"}], "memory": ""}, "entry 2 on list has no text under k"),
        ({"evidence": [{}, ROWS[0]], "memory": ""}, "entry 1 on list has no text under d, k"),
        ({"evidence": [ROWS[0], "text"], "memory": ""}, "entry 2 on list has no text under d, k"),
        ({"evidence": [{"d": 3, "k": "law"}, ROWS[0]], "memory": ""}, "entry 1 on list has no text under d"),
        ({"evidence": [{"d": " ", "k": "law"}, {"d": "", "k": "art"}], "memory": "m"}, "says nothing on list"),
    ],
)
def test_faulty_evidence_says_what_is_wrong(content: dict[str, Any], reason: str) -> None:
    found = evidence(LIST, **content)["list"]
    assert isinstance(found, str)
    assert found.startswith("no evidence: ")
    assert reason in found


def test_faulty_evidence_on_one_step_leaves_the_others() -> None:
    found = evidence(LIST, PICK, list={"evidence": [], "memory": ""}, pick={"evidence": {"fit": "fits"}, "memory": "m"})
    assert isinstance(found["list"], str)
    assert found["pick"] == StepEvidence(step="pick", texts={"fit": "fits"}, memory="m")
    assert evidence(PICK, evidence={"fit": ""}, memory="m")["pick"] == "no evidence: the answer says nothing on pick"


@pytest.mark.parametrize(
    "completion",
    [
        Completion(text=""),
        Completion(text="The response is fine."),
        Completion(text='{"evidence": {"fit": "x"}, "memory": "m"}', finish_reason="length"),
        Completion(text='[{"evidence": {"fit": "x"}, "memory": "m"}]'),
    ],
)
def test_without_a_json_object_no_step_has_evidence(completion: Completion) -> None:
    found = read_evidence(ITEMS.answered, completion)
    assert list(found) == ["list", "pick"]
    assert all(isinstance(part, str) and part.startswith("no evidence: ") for part in found.values())


def test_noted_scores_are_read_and_the_notes_passed_over() -> None:
    text = json.dumps({"notes": '{"scores": {"fit": 5}}', "scores": {"fit": 2}})
    assert [score.value for score in read_noted_scores(PICK, Completion(text=text))] == [2]
    rows = [{"d": 2, "k": "law"}, {"d": 0, "k": "art"}]
    found = read_noted_scores(LIST, Completion(text=json.dumps({"notes": "x", "scores": rows})))
    assert [(score.item, score.value, score.choice) for score in found] == [
        *((1, 2, None), (1, None, "law"), (2, 0, None), (2, None, "art")),
    ]


@pytest.mark.parametrize(
    "text", ["", "5", '{"fit": 5}', '{"notes": "fit: 5"}', '{"scores": 5}', '{"scores": [{"fit": 5}]}']
)
def test_noted_scores_in_another_form_stay_missing(text: str) -> None:
    (score,) = read_noted_scores(PICK, Completion(text=text))
    assert score.value is None
    assert score.unscored


def test_the_distribution_in_noted_scores_and_lists_is_read_at_its_place() -> None:
    half = {"2": math.log(0.5), "1": math.log(0.5)}
    parts = tokens(
        ('{"notes": "2", "scores": [{"d": ', {}),
        ("2", half),
        (', "k": "art"}, {"d": ', {}),
        ("1", {"1": 0.0}),
        (', "k": "law"}]}', {}),
    )
    completion = Completion(text="".join(token.text for token in parts), tokens=parts)
    first, _, second, _ = read_noted_scores(LIST, completion)
    assert first.value == pytest.approx(1.5)
    assert second.value == pytest.approx(1.0)


def test_a_table_gives_scores_and_evidence() -> None:
    rows = [{"evidence": "says much", "d": 2, "k": "law"}, {"evidence": "nothing", "d": 0, "k": "art"}]
    content = {"list": rows, "pick": {"evidence": "fits: 5", "fit": 3}}
    scores, found = read_table(ITEMS, Completion(text=json.dumps(content)))
    assert [(score.value, score.choice) for score in scores] == [
        *((2, None), (None, "law"), (0, None), (None, "art"), (3, None)),
    ]
    assert complaint_of(scores) is None
    assert found == (
        StepEvidence(
            step="list",
            items=({"detail": "says much", "kind": "says much"}, {"detail": "nothing", "kind": "nothing"}),
        ),
        StepEvidence(step="pick", texts={"fit": "fits: 5"}),
    )


def test_a_table_without_texts_still_scores() -> None:
    scores, found = read_table(ITEMS, Completion(text='{"list": 3, "pick": {"fit": 3}}'))
    assert [score.value for score in scores] == [None, None, None, None, 3]
    assert found == (StepEvidence(step="list", items=()), StepEvidence(step="pick"))
    scores, found = read_table(ITEMS, Completion(text="no table"))
    assert all(score.unscored for score in scores)
    assert found == ()


def test_a_choice_is_a_whole_number_among_those_offered() -> None:
    assert [read_choice(3, Completion(text=json.dumps({"choice": number}))) for number in (1, 2, 3)] == [1, 2, 3]
    for chosen in (0, 4, -1, 2.5, "2", True, None, [1]):
        found = read_choice(3, Completion(text=json.dumps({"choice": chosen})))
        assert isinstance(found, str)
        assert found.startswith("no choice: ")
        assert found.endswith("is no whole number from 1 to 3")
    for text in ("2", "", "I choose 2", '{"number": 2}', '{"choice": 1, "choice": 2}'):
        assert isinstance(read_choice(3, Completion(text=text)), str)
    assert isinstance(read_choice(3, Completion(text='{"choice": 2}', finish_reason="length")), str)


@given(
    st.text()
    | st.dictionaries(st.sampled_from(["evidence", "memory", "scores", "choice", "list", "pick"]), JSON).map(json.dumps)
)
def test_no_answer_makes_a_parser_raise(text: str) -> None:
    completion = Completion(text=text, tokens=(Token(text=text, logprob=0.0, top={"1": 0.0}),))
    assert len(read_scores(TWO_STEPS.answered, completion)) == 3
    assert len(read_noted_scores(LIST, completion)) == 4
    assert len(read_table(ITEMS, completion)[0]) == 5
    assert list(read_evidence([LIST], completion)) == ["list"]
    assert list(read_evidence(ITEMS.answered, completion)) == ["list", "pick"]
    assert read_choice(3, completion) in (1, 2, 3) or isinstance(read_choice(3, completion), str)
