"""The parser of answers: what counts as a score, and what stays missing."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.answers import number_positions, read_scores
from inference.records import Completion, Token
from inference.rubric import Dimension, Rubric, Step
from inference.scoring import (
    grid_branches,
    grid_logprobs,
    read_number_answer,
    score_from_logprobs,
)

WHOLE = Dimension(name="quality", description="How good.", range=(1, 5))
HALVES = WHOLE.model_copy(update={"fractional": True})
WIDE = Dimension(name="fluency", description="How many.", range=(1, 16))
TWO_STEPS = Rubric(
    name="plan",
    description="Plans.",
    steps=(
        Step(name="a", task="Plan.", dimensions=(WHOLE,)),
        Step(name="b", task="Go on.", dimensions=(WHOLE.model_copy(update={"range": (0, 3)}), WIDE)),
    ),
)


@pytest.mark.parametrize(
    ("text", "value"),
    [("3", 3.0), (" 5\n", 5.0), ("1.0", 1.0), ("4e0", 4.0)],
)
def test_a_lone_number_is_a_score(text: str, value: float) -> None:
    score = read_number_answer("use", WHOLE, Completion(text=text))
    assert (score.value, score.top, score.unscored) == (value, value, None)


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "Score: 5", "5 out of 5", "5/5", "3\n5", "3 4", "five", "[5]", '"5"', '{"score": 5}', "```\n5\n```"),
        *(
            "0",
            "6",
            "-1",
            "55",
            "3.5",
            "1e400",
            "NaN",
            "Infinity",
            "-Infinity",
            "true",
            "null",
            "３",
            "5.",
            "0x5",
            "+5",
            "1" * 400,
            "[" * 100_000,
        ),
        "The response says: my score is 5. I give 2",
    ],
)
def test_anything_else_stays_missing_and_says_why(text: str) -> None:
    score = read_number_answer("use", WHOLE, Completion(text=text))
    assert score.value is None
    assert score.top is None
    assert score.unscored


def test_a_fractional_dimension_takes_fractions_in_range_only() -> None:
    assert read_number_answer("use", HALVES, Completion(text="3.5")).value == 3.5
    assert read_number_answer("use", HALVES, Completion(text="5.1")).value is None


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


def test_expected_value_and_mode_over_a_grid_by_hand() -> None:
    # p = .1, .2, .4 on 1, 2, 4 and .3 elsewhere: value = (.1 + .4 + 1.6) / .7 = 3, mode 4.
    logprobs = {"1": math.log(0.1), "2": math.log(0.2), "4": math.log(0.4), "the": math.log(0.3)}
    score = score_from_logprobs("use", WHOLE, logprobs)
    assert score.value == pytest.approx(3.0)
    assert score.top == 4.0
    assert score.off_grid == pytest.approx(0.3)
    assert score.distribution == pytest.approx({"1": 1 / 7, "2": 2 / 7, "4": 4 / 7})


def test_a_grid_far_down_in_the_vocabulary_still_has_its_distribution() -> None:
    score = score_from_logprobs("use", WHOLE, {"1": -2000.0, "3": -2000.0 + math.log(3)})
    assert score.value == pytest.approx(1 / 4 + 3 * 3 / 4)
    assert score.off_grid == pytest.approx(1.0)


@pytest.mark.parametrize("logprobs", [{}, {"1": -math.inf}, {"1": math.nan}, {"the": -0.1}])
def test_no_mass_on_the_grid_is_unscored(logprobs: dict[str, float]) -> None:
    assert score_from_logprobs("use", WHOLE, logprobs).unscored


def test_logprobs_of_the_grid_come_before_the_text() -> None:
    completion = Completion(text="2", grid_logprobs={"5": math.log(0.9), "2": math.log(0.1)})
    score = read_number_answer("use", WHOLE, completion)
    assert score.top == 5.0
    assert score.value == pytest.approx(4.7)


def test_branches_of_a_grid_with_shared_first_digits() -> None:
    assert grid_branches(WHOLE.grid) == {"": ("1", "2", "3", "4", "5")}
    assert grid_branches(WIDE.grid) == {"": tuple("123456789"), "1": tuple("0123456")}


def test_one_and_ten_to_sixteen_by_hand() -> None:
    # p(1) = .5, p(2) = .25; after "1": p(0) = .2, p(6) = .3, the other five digits of the grid .02 each.
    first = {"1": math.log(0.5), "2": math.log(0.25)}
    second = {"0": math.log(0.2), "6": math.log(0.3), **{digit: math.log(0.02) for digit in "12345"}}
    found = {text: math.exp(value) for text, value in grid_logprobs(WIDE.grid, {"": first, "1": second}).items()}
    assert found["1"] == pytest.approx(0.5 * (1 - 0.6))
    assert found["10"] == pytest.approx(0.5 * 0.2)
    assert found["16"] == pytest.approx(0.5 * 0.3)
    assert found["13"] == pytest.approx(0.5 * 0.02)
    assert found["2"] == pytest.approx(0.25)
    assert "3" not in found  # beyond the top-k
    assert math.fsum(found.values()) == pytest.approx(0.75)


def test_a_first_digit_that_is_always_continued_has_no_mass_of_its_own() -> None:
    found = grid_logprobs(WIDE.grid, {"": {"1": 0.0}, "1": {"2": 0.0}})
    assert found == {"1": -math.inf, "12": 0.0}


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


@given(st.text())
def test_no_text_makes_the_parsers_raise(text: str) -> None:
    completion = Completion(text=text, tokens=(Token(text=text, logprob=0.0, top={"1": 0.0}),))
    assert len(read_scores(TWO_STEPS.answered, completion)) == 3
    score = read_number_answer("use", WHOLE, completion)
    assert (score.value is None) == (score.unscored is not None)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["a", "b", "quality", "fluency", "x"]), inner),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["a", "b", "c"]), JSON))
def test_every_read_score_lies_in_its_range(content: dict[str, object]) -> None:
    import json

    text = json.dumps(content)
    parts = tuple(Token(text=character, logprob=0.0, top={character: 0.0}) for character in text)
    for (_, dimension), score in zip(
        TWO_STEPS.scored, read_scores(TWO_STEPS.answered, Completion(text=text, tokens=parts)), strict=True
    ):
        assert score.value is None or dimension.range[0] <= score.value <= dimension.range[1]


@given(st.dictionaries(st.sampled_from([*"0123456789", "10", "the", ""]), st.floats(max_value=0.0)))
def test_a_distribution_sums_to_one_and_its_mean_stays_in_range(logprobs: dict[str, float]) -> None:
    score = score_from_logprobs("use", WHOLE, logprobs)
    if score.value is not None:
        assert score.distribution is not None
        assert math.fsum(score.distribution.values()) == pytest.approx(1.0)
        assert 1.0 - 1e-9 <= score.value <= 5.0 + 1e-9


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
