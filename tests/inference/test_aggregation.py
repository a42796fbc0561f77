"""Items add up and derived dimensions are computed: by hand, against enumeration, and with answers missing."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.aggregation import aggregate
from inference.records import Score
from inference.rubric import Rubric, load_rubric

NAMES = ("Arts", "Law", "Sport")
RUBRIC = Rubric.model_validate(
    {
        "name": "ideas",
        "description": "Ideas are rated.",
        "steps": [
            {
                "name": "list",
                "task": "List three ideas.",
                "items": {"kind": "idea", "count": 3, "valid": "fluency"},
                "dimensions": [
                    {"name": "fluency", "description": "counts", "per_item": True, "range": [0, 1]},
                    {"name": "flexibility", "description": "kinds", "distinct": "kind"},
                    {"name": "detail", "description": "detail", "per_item": True, "range": [0, 2]},
                    {"name": "kind", "description": "kind", "per_item": True, "choices": list(NAMES)},
                    {"name": "overall", "description": "sum", "sum_of": ["fluency", "flexibility", "detail"]},
                ],
            },
            {
                "name": "pick",
                "task": "Pick one.",
                "dimensions": [{"name": "fit", "description": "fit", "range": [1, 5]}],
            },
            {
                "name": "all",
                "dimensions": [{"name": "total", "description": "sum", "sum_of": ["list.overall", "pick.fit"]}],
            },
        ],
    }
)


def number(dimension: str, item: int | None, value: float, top: float | None = None, step: str = "list") -> Score:
    return Score(step=step, dimension=dimension, item=item, value=value, top=value if top is None else top)


def choice(item: int, distribution: dict[str, float]) -> Score:
    best = max(distribution, key=lambda name: distribution[name])
    return Score(step="list", dimension="kind", item=item, choice=best, distribution=distribution)


def values(answers: list[Score], kind: str = "value") -> dict[str, float | None]:
    return {score.key: getattr(score, kind) for score in aggregate(RUBRIC, answers)}


def answers(valid: list[float], detail: list[float], kinds: list[dict[str, float]], fit: float = 4) -> list[Score]:
    found = [number("fit", None, fit, step="pick")]
    for item, (p, d, k) in enumerate(zip(valid, detail, kinds, strict=True), 1):
        found += [number("fluency", item, p, round(p)), number("detail", item, d, round(d)), choice(item, k)]
    return found


SURE = [{"Arts": 1.0}, {"Law": 1.0}, {"Arts": 1.0}]


def test_whole_answers_add_up() -> None:
    found = values(answers([1, 1, 1], [2, 0, 1], SURE))
    assert found == {
        "list.fluency": 3, "list.flexibility": 2, "list.detail": 3, "list.overall": 8, "pick.fit": 4, "all.total": 12,
    }  # fmt: skip
    assert values(answers([1, 0, 1], [2, 2, 1], SURE))["list.flexibility"] == 1
    assert values(answers([1, 0, 1], [2, 2, 1], SURE))["list.detail"] == 3


def test_probabilities_weight_what_else_an_item_scores() -> None:
    found = answers([0.9, 0.5, 0.2], [1.5, 2, 1], SURE)
    assert values(found)["list.fluency"] == pytest.approx(1.6)
    assert values(found)["list.detail"] == pytest.approx(0.9 * 1.5 + 0.5 * 2 + 0.2)
    assert values(found)["list.flexibility"] == pytest.approx((1 - 0.1 * 0.8) + 0.5)
    assert values(found, "top")["list.fluency"] == 1  # of .9, .5 and .2 only the first rounds to 1
    assert values(found, "top")["list.flexibility"] == 1


@given(
    st.lists(st.floats(0, 1), min_size=3, max_size=3),
    st.lists(st.lists(st.floats(0.01, 1), min_size=3, max_size=3), min_size=3, max_size=3),
)
def test_expected_distinct_kinds_equal_the_enumeration(valid: list[float], weights: list[list[float]]) -> None:
    """Over all 4³ outcomes: an item doesn't count, or has one of three kinds."""
    kinds = [{name: w / math.fsum(row) for name, w in zip(NAMES, row, strict=True)} for row in weights]
    expected = 0.0
    for outcome in itertools.product((None, *NAMES), repeat=3):
        chances = [1 - p if o is None else p * k[o] for o, p, k in zip(outcome, valid, kinds, strict=True)]
        expected += math.prod(chances) * len({o for o in outcome if o})
    assert values(answers(valid, [0, 0, 0], kinds))["list.flexibility"] == pytest.approx(expected, abs=1e-9)


def test_an_item_without_answer_leaves_what_depends_on_it_unscored() -> None:
    whole = answers([1, 1, 1], [2, 0, 1], SURE)
    without = [score for score in whole if (score.dimension, score.item) != ("detail", 2)]
    found = {score.key: score for score in aggregate(RUBRIC, without)}
    assert found["list.fluency"].value == 3
    assert found["list.flexibility"].value == 2
    assert found["list.detail"].unscored == "item 2: no answer on detail"
    assert "item 2" in (found["list.overall"].unscored or "")
    assert found["all.total"].value is None
    unread = [
        s.model_copy(update={"value": None, "unscored": "7 is off"}) if s.dimension == "fit" else s for s in whole
    ]
    assert {s.key: s.unscored for s in aggregate(RUBRIC, unread)}["all.total"] == "pick.fit: 7 is off"


def test_an_item_that_surely_does_not_count_needs_no_further_answers() -> None:
    whole = answers([1, 0, 1], [2, 2, 1], SURE)
    kept = [score for score in whole if score.item != 2 or score.dimension == "fluency"]
    assert values(kept) == values(whole)
    unsure = [s.model_copy(update={"value": 0.1}) if (s.dimension, s.item) == ("fluency", 2) else s for s in kept]
    assert values(unsure)["list.detail"] is None


def test_an_answer_for_the_whole_step_is_taken_as_it_is() -> None:
    found = values([number("fluency", None, 2.5), number("flexibility", None, 2), number("detail", None, 4)])
    assert found["list.overall"] == 8.5
    assert found["pick.fit"] is None


def test_no_answers_at_all() -> None:
    scores = aggregate(RUBRIC, [])
    assert [score.key for score in scores] == [f"{step.name}.{d.name}" for step, d in RUBRIC.scored]
    assert all(score.unscored for score in scores)


def test_cgpst_adds_up_to_its_published_maxima() -> None:
    rubric = load_rubric("cgpst")
    ranges = {f"{step.name}.{d.name}": d.range for step, d in rubric.scored}
    overall = {key: high for key, (_, high) in ranges.items() if key.endswith(".overall")}
    assert list(overall.values()) == [48, 30, 48, 20, 5, 35]
    assert ranges["total.total"] == (9, 186)
    assert ranges["step2.integrity"] == (0, 10)
    assert len(rubric.reported) == 20
    assert len([d for _, d in rubric.scored if not d.sum_of]) == 23
    released = load_rubric("cgpst#purpose_0_2,correctly_used_0_5")
    assert {f"{s.name}.{d.name}": d.range for s, d in released.scored}["total.total"] == (8, 185)
    assert released.digest != rubric.digest


def changed(dimension: str, item: int, **cells: object) -> dict[str, Score]:
    """Scores of whole answers of which one is replaced."""
    whole = answers([1, 1, 1], [2, 0, 1], SURE)
    kept = [score for score in whole if (score.dimension, score.item) != (dimension, item)]
    other = Score.model_validate({"step": "list", "dimension": dimension, "item": item, **cells})
    return {score.key: score for score in aggregate(RUBRIC, [*kept, other])}


@pytest.mark.parametrize(
    ("dimension", "cells", "depends", "reason"),
    [
        ("detail", {}, "detail", "item 2: no answer on detail"),
        ("detail", {"choice": "Arts"}, "detail", "item 2: no answer on detail"),
        ("detail", {"top": 1.0}, "detail", "item 2: no answer on detail"),
        ("kind", {"value": 1.0}, "flexibility", "item 2: no answer on kind"),
        ("kind", {"distribution": {"Arts": 1.0}}, "flexibility", "item 2: no answer on kind"),
        ("fluency", {}, "fluency", "item 2: no answer on fluency"),
        ("detail", {"value": 3.0}, "detail", "item 2: detail 3 is outside the range 0 to 2 of an item"),
        ("detail", {"value": 1.0, "top": -1.0}, "detail", "item 2: detail -1 is outside the range"),
        ("fluency", {"value": 1e308, "top": 1.0}, "fluency", "item 2: fluency 1e+308 is outside the range 0 to 1"),
        ("kind", {"choice": "Cooking"}, "flexibility", "item 2: 'Cooking' is none of the names of kind"),
        (
            "kind",
            {"choice": "Law", "distribution": {"Law": 0.5, "Tax": 0.5}},
            "flexibility",
            "'Tax' is none of the names of kind",
        ),
        ("kind", {"choice": "Law", "distribution": {"Law": 1.5, "Arts": -0.5}}, "flexibility", "are negative or all 0"),
        ("kind", {"choice": "Law", "distribution": {"Law": 0.0}}, "flexibility", "are negative or all 0"),
    ],
)
def test_an_answer_that_is_none_counts_as_missing(
    dimension: str, cells: dict[str, object], depends: str, reason: str
) -> None:
    found = changed(dimension, 2, **cells)
    for key in (f"list.{depends}", "list.overall", "all.total"):
        assert reason in (found[key].unscored or "")
        assert found[key].value is None


def test_a_whole_step_without_value_or_reason_is_missing() -> None:
    found = {score.key: score for score in aggregate(RUBRIC, [Score(step="pick", dimension="fit")])}
    assert found["pick.fit"].unscored == "no answer on fit"


def test_expected_values_may_leave_the_range_by_a_rounding_error() -> None:
    assert changed("detail", 1, value=2 + 1e-15, top=2.0)["list.detail"].value == pytest.approx(3)


@pytest.mark.parametrize("scale", [1.0, 2.0, 1e-300, 1e308])
def test_probabilities_of_choices_are_taken_relative_to_their_sum(scale: float) -> None:
    weights = {"Arts": 0.75 * scale, "Sport": 0.25 * scale}
    found = changed("kind", 3, choice="Arts", distribution=weights)["list.flexibility"]
    assert (found.value, found.top) == (pytest.approx(2.25), 2)  # Arts and Law are there already


def test_an_item_that_may_count_needs_its_further_answers() -> None:
    """Expected value 0, but most likely 1: top needs what else the item scores."""
    rated = [score for score in answers([1, 1, 1], [2, 0, 1], SURE) if score.item != 2]
    found = {score.key: score for score in aggregate(RUBRIC, [*rated, number("fluency", 2, 0, 1)])}
    assert (found["list.fluency"].value, found["list.fluency"].top) == (2, 3)
    assert found["list.detail"].unscored == "item 2: no answer on detail"
    assert found["list.flexibility"].unscored == "item 2: no answer on kind"


def test_an_item_that_most_likely_does_not_count_needs_no_choice() -> None:
    """An analyst names no category of such an item, and the judge is never quite sure that it doesn't count."""
    rated = [s for s in answers([1, 0, 1], [2, 1, 1], SURE) if not (s.item == 2 and s.dimension in ("fluency", "kind"))]
    none = Score(step="list", dimension="kind", item=2, unscored="no name")
    likely = {s.key: s for s in aggregate(RUBRIC, [*rated, none, number("fluency", 2, 0.2, 0)])}
    others = {choice for number, part in enumerate(SURE) if number != 1 for choice in part}
    assert (likely["list.flexibility"].value, likely["list.flexibility"].top) == (len(others), len(others))
    assert likely["list.detail"].value == pytest.approx(2 + 0.2 + 1)
    counts = {s.key: s for s in aggregate(RUBRIC, [*rated, none, number("fluency", 2, 0.8, 1)])}
    assert counts["list.flexibility"].unscored == "item 2: no name"
