"""Scores from log-probabilities and single numbers: what counts as a score, and what stays missing."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.records import Completion
from inference.rubric import Dimension
from inference.scoring import grid_branches, grid_logprobs, read_number_answer, score_from_logprobs

WHOLE = Dimension(name="quality", description="How good.", range=(1, 5))
HALVES = WHOLE.model_copy(update={"fractional": True})
WIDE = Dimension(name="fluency", description="How many.", range=(1, 16))


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


@given(st.text())
def test_no_text_makes_the_parser_raise(text: str) -> None:
    score = read_number_answer("use", WHOLE, Completion(text=text))
    assert (score.value is None) == (score.unscored is not None)


@given(st.dictionaries(st.sampled_from([*"0123456789", "10", "the", ""]), st.floats(max_value=0.0)))
def test_a_distribution_sums_to_one_and_its_mean_stays_in_range(logprobs: dict[str, float]) -> None:
    score = score_from_logprobs("use", WHOLE, logprobs)
    if score.value is not None:
        assert score.distribution is not None
        assert math.fsum(score.distribution.values()) == pytest.approx(1.0)
        assert 1.0 - 1e-9 <= score.value <= 5.0 + 1e-9
