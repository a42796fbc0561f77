"""Judgements to tidy rows: coverage, repeats, raters, splits, order, and the file they are stored in."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from eval.agreement import agreement, pearson
from eval.metrics import (
    SHOWN,
    cluster,
    headline_qwk,
    metric_rows,
    off_grid_masses,
    rated,
    score_tables,
    within_object_pearson,
)
from eval.rows import MetricRow, read_rows, write_rows
from inference.errors import UserError
from inference.records import Judgement, Sample, Score
from inference.rubric import Dimension, Rubric, Step

RUBRIC = Rubric(
    name="ideas",
    description="d",
    steps=(
        Step(
            name="use", task="t", dimensions=(Dimension(name="novel", description="d", range=(1, 5), fractional=True),)
        ),
    ),
)
KEY = "use.novel"


def sample(number: int, human: float | None, rater: str = "human") -> Sample:
    ratings = {} if human is None else {rater: {KEY: human}}
    return Sample(
        id=f"s{number}", scenario=f"object {number % 6}", responses={"use": "x" * (number + 1)}, human=ratings
    )


def judgement(
    number: int, value: float | None, *, judge: str = "j", top: float | None = None, repeat: int = 0
) -> Judgement:
    score = Score(
        step="use",
        dimension="novel",
        value=value,
        top=(value if top is None else top) if value is not None else None,
        unscored="why" if value is None else None,
    )
    return Judgement(
        sample_id=f"s{number}", judge=judge, method="direct", rubric="ideas@0", repeat=repeat, scores=(score,)
    )


def rows_of(
    samples: list[Sample], judgements: list[Judgement], splits: dict[str, set[str]] | None = None
) -> list[MetricRow]:
    splits = splits or {"test": {one.id for one in samples}}
    return metric_rows("run", "aut", samples, judgements, RUBRIC, splits, 0, False, resamples=50)


def values(rows: list[MetricRow], **wanted: str) -> dict[str, float | None]:
    return {row.metric: row.value for row in rows if all(getattr(row, key) == value for key, value in wanted.items())}


HUMAN = [1.0, 2.0, 3.0, 4.0, 5.0, 2.5, 1.5, 3.5]
JUDGED = [2.0, 2.0, 3.0, 5.0, 5.0, 2.0, 1.0, 3.0]


def test_rows_hold_the_agreement_of_value_and_top() -> None:
    samples = [sample(number, score) for number, score in enumerate(HUMAN)]
    judgements = [judgement(number, score, top=float(round(score / 2) + 1)) for number, score in enumerate(JUDGED)]
    rows = rows_of(samples, judgements)
    human, value = np.array(HUMAN), np.array(JUDGED)
    top = np.array([round(score / 2) + 1.0 for score in JUDGED])
    for kind, scores in (("value", value), ("top", top)):
        found = values(rows, score=kind)
        expected = agreement(human, scores, (1, 5))
        assert {name: found[name] for name in expected} == pytest.approx(expected)
        assert found["length_pearson"] == pytest.approx(pearson(np.arange(1.0, 9.0), scores))
        assert found["within_object_mean_pearson"] is None  # no object has 20 rows
    assert {(row.run, row.benchmark, row.split, row.judge, row.method, row.rater) for row in rows} == {
        ("run", "aut", "test", "j", "direct", "human")
    }
    assert {(row.n, row.coverage, row.simulated) for row in rows} == {(8, 1.0, False)}


def test_missing_scores_lower_coverage_and_are_never_numbers() -> None:
    samples = [sample(number, score) for number, score in enumerate(HUMAN)]
    judgements = [
        judgement(0, None),
        *(judgement(number, JUDGED[number]) for number in range(1, 7)),
    ]  # 7 has no judgement
    row = next(row for row in rows_of(samples, judgements) if row.metric == "mae")
    assert (row.n, row.coverage) == (6, 0.75)
    assert row.value == pytest.approx(np.mean(np.abs(np.array(HUMAN) - JUDGED)[1:7]))


def test_unrated_samples_count_for_coverage_but_not_for_n() -> None:
    samples = [sample(number, None if number == 0 else score) for number, score in enumerate(HUMAN)]
    rows = rows_of(samples, [judgement(number, score) for number, score in enumerate(JUDGED)])
    assert {(row.n, row.coverage) for row in rows} == {(7, 1.0)}


def test_a_judge_without_any_score_still_has_rows() -> None:
    samples = [sample(number, score) for number, score in enumerate(HUMAN)]
    rows = rows_of(samples, [judgement(number, None) for number in range(8)])
    assert {(row.value, row.n, row.coverage) for row in rows} == {(None, 0, 0.0)}
    assert {row.metric for row in rows} >= {"pearson", "qwk_half_point", "rmse"}


def test_repeats_are_averaged_per_sample_before_agreement() -> None:
    judgements = [judgement(0, 2.0), judgement(0, 3.0, top=5.0, repeat=1), judgement(0, None, repeat=2)]
    assert score_tables(judgements) == {("j", "direct"): {KEY: {"s0": (2.5, 3.5)}}}


def test_splits_raters_and_judges_each_have_their_rows() -> None:
    samples = [
        one.model_copy(update={"human": {**one.human, "second": {KEY: 6.0 - score}}})
        for one, score in ((sample(number, score), score) for number, score in enumerate(HUMAN))
    ]
    judgements = [judgement(number, score, judge=name) for number, score in enumerate(JUDGED) for name in ("b", "a")]
    rows = rows_of(samples, judgements, {"test": {one.id for one in samples}, "part": {"s0", "s1", "s2"}})
    groups = list(dict.fromkeys((row.split, row.judge, row.rater, row.score) for row in rows))
    assert groups == [
        (split, judge, rater, kind)
        for split in ("test", "part")
        for judge in ("b", "a")  # in the order of the judgements
        for rater in ("human", "second")
        for kind in ("value", "top")
    ]
    assert {row.n for row in rows if row.split == "part"} == {3}
    first, second = (values(rows, split="test", judge="a", score="value", rater=rater) for rater in ("human", "second"))
    assert first["pearson"] == pytest.approx(-second["pearson"])


def test_rated_takes_the_rows_that_all_judges_scored() -> None:
    samples = [sample(0, 1.0), sample(1, None), sample(2, 2.0), sample(3, 3.0)]
    tables = list(score_tables([judgement(0, 1.0), judgement(2, 1.0), judgement(0, 1.0, judge="k")]).values())
    assert [one.id for one in rated(samples, "human", KEY, tables[0])] == ["s0", "s2"]
    assert [one.id for one in rated(samples, "human", KEY, *tables)] == ["s0"]


def test_within_object_needs_twenty_rows() -> None:
    human = np.concatenate([np.arange(20.0), np.arange(19.0), np.arange(20.0), np.arange(20.0)])
    judge = np.concatenate([np.arange(20.0), np.zeros(19), -np.arange(20.0), np.ones(20)])
    objects = ["a"] * 20 + ["b"] * 19 + ["c"] * 20 + ["d"] * 20
    assert within_object_pearson(human, judge, objects).tolist() == [1.0, -1.0]  # b is too small, d is constant


def test_rows_survive_the_file(tmp_path: Path) -> None:
    samples = [sample(number, score) for number, score in enumerate(HUMAN)]
    rows = rows_of(samples, [judgement(number, 2.0) for number in range(8)])
    path = tmp_path / "new" / "metrics.jsonl"
    write_rows(path, rows)
    first = json.loads(path.read_text().splitlines()[0])
    assert (first["metric"], first["value"], first["low"]) == ("pearson", None, None)
    assert list(first) == list(MetricRow.model_fields)
    assert read_rows(path) == rows
    before = path.read_bytes()
    write_rows(path, rows)
    assert path.read_bytes() == before
    assert [entry.name for entry in path.parent.iterdir()] == ["metrics.jsonl"]


def test_names_with_unusual_line_ends_survive_the_file(tmp_path: Path) -> None:
    rows = rows_of([sample(0, 1.0)], [judgement(0, 1.0, judge="a\u2028b\x85c")])
    write_rows(tmp_path / "metrics.jsonl", rows)
    assert read_rows(tmp_path / "metrics.jsonl") == rows


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_undefined_numbers_become_null(value: float) -> None:
    row = rows_of([sample(0, 1.0)], [judgement(0, 1.0)])[0]
    assert MetricRow(**{**row.model_dump(), "value": value}).value is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "line 1 is not JSON"),
        ("[1]", "line 1 is not a JSON object"),
        ("[" * 200_000, "line 1 is not JSON"),
        ('{"run": "x"}', "line 1: benchmark: Field required"),
    ],
)
def test_a_broken_file_names_the_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text(text)
    with pytest.raises(UserError, match=message):
        read_rows(path)
    with pytest.raises(UserError, match="no such file"):
        read_rows(tmp_path / "none.jsonl")


def test_mass_off_the_scale_is_averaged_over_the_judgements_of_a_split() -> None:
    def with_mass(number: int, value: float | None, off_grid: float | None, repeat: int = 0) -> Judgement:
        one = judgement(number, value, repeat=repeat)
        return one.model_copy(update={"scores": (one.scores[0].model_copy(update={"off_grid": off_grid}),)})

    judgements = [
        *(with_mass(0, 2.0, 0.25), with_mass(0, 2.0, 0.75, repeat=1)),
        *(with_mass(1, None, 1.0), with_mass(2, 3.0, None), with_mass(3, 3.0, 0.0)),
        judgement(0, 2.0, judge="without"),
    ]
    assert off_grid_masses(judgements) == {
        ("j", "direct", KEY, "s0"): [0.25, 0.75],
        ("j", "direct", KEY, "s1"): [1.0],
        ("j", "direct", KEY, "s3"): [0.0],
    }
    samples = [sample(number, score) for number, score in enumerate(HUMAN[:4])]
    rows = rows_of(samples, judgements, {"test": {"s0", "s1", "s2", "s3"}, "part": {"s0", "s1", "s2"}, "none": {"s2"}})
    found = [row for row in rows if row.metric == "off_grid_mean"]
    assert [(row.split, row.judge, row.score, row.low, row.high) for row in found] == [
        ("test", "j", "value", None, None),
        ("part", "j", "value", None, None),
    ]
    assert [row.value for row in found] == pytest.approx([2.0 / 4, 2.0 / 3])


def test_the_qwk_of_reports_follows_the_scale() -> None:
    fractional = Dimension(name="d", description="d", range=(1, 5), fractional=True)
    whole = Dimension(name="d", description="d", range=(1, 5))
    assert (headline_qwk(fractional), headline_qwk(whole)) == ("qwk_half_point", "qwk_integer")


def test_scenarios_that_are_texts_are_clusters_by_their_short_name() -> None:
    one = Sample(id="s", scenario="a long text", responses={})
    assert (cluster(one), cluster(one.model_copy(update={"scenario_id": "FS1"}))) == ("a long text", "FS1")


def test_with_several_dimensions_only_what_is_shown_has_intervals() -> None:
    other = Dimension(name="useful", description="d", range=(1, 5))
    step = Step(name="use", task="t", dimensions=(*RUBRIC.steps[0].dimensions, other))
    rubric = Rubric(name="ideas", description="d", steps=(step,))
    samples = [sample(number, score) for number, score in enumerate(HUMAN)]
    judgements = [judgement(number, score) for number, score in enumerate(JUDGED)]
    splits = {"test": {one.id for one in samples}}
    rows = metric_rows("run", "x", samples, judgements, rubric, splits, 0, False, resamples=50)
    wide = {row.metric for row in rows if row.low is not None}
    assert wide == {*SHOWN, "qwk_half_point", "length_pearson"}
    single = {row.metric for row in rows_of(samples, judgements) if row.low is not None}
    assert single == wide | {
        *("spearman", "qwk_integer", "qwk_tenth", "qwk_integer_half_even", "mae", "sd_target", "sd_pred"),
        *("icc1_1", "icc3_1", "icc1_k", "icc2_k", "icc3_k", "length_spearman"),
    }
