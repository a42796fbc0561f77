"""The protocol of several dimensions: by hand, against naive recomputation, and where something is undefined."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plan_ratings import (
    FOUR,
    JUDGE,
    KEYS,
    RATER_1,
    RATER_2,
    RUBRIC,
    finder,
    judgements,
    naive,
    of,
    random_plan,
    rating,
    sample,
    verdict,
)
from scipy import stats

from eval.protocol import ALL, HUMAN, HUMAN_HUMAN, MEAN, MEAN_OF_JUDGES, METRICS, Protocol, averages
from inference.records import Sample
from inference.rubric import load_rubric


def test_four_samples_by_hand() -> None:
    """Fluency is reversed (r = −1); novelty and clarity are those of rater 1."""
    find = finder(of(FOUR, judgements("j", "direct", *JUDGE)))
    # Both raters gave 0 1 2 3, the judge 3 2 1 0: mean squared difference 20/4, expected of independents 2 · 5/4.
    assert find("j", "ideas", "fluency", "pearson") == pytest.approx(-1)
    assert find("j", "ideas", "fluency", "qwk") == pytest.approx(1 - 5 / 2.5)
    # Novelty against rater 2: deviations (−2 0 0 2) and (−1 −1 1 1), cross 4, squares 8 and 4; equal means.
    novelty_r = (1 + 4 / math.sqrt(8 * 4)) / 2
    assert find("j", "ideas", "novelty", "pearson") == pytest.approx(novelty_r)
    novelty_qwk = (1 + (1 - (4 / 4) / ((8 + 4) / 4))) / 2
    assert find("j", "ideas", "novelty", "qwk") == pytest.approx(novelty_qwk)
    # Clarity against rater 2: (1 2 4 5) with (1 3 3 5), squares 10 and 8, cross 8.
    clarity_r = (1 + 8 / math.sqrt(10 * 8)) / 2
    clarity_qwk = (1 + (1 - (2 / 4) / (18 / 4))) / 2
    assert find("j", "plan", "clarity", "qwk") == find("j", "plan", MEAN, "qwk") == pytest.approx(clarity_qwk)
    assert find("j", "ideas", MEAN, "pearson") == pytest.approx((-1 + novelty_r) / 2)
    assert find("j", ALL, MEAN, "pearson") == pytest.approx((-1 + novelty_r + clarity_r) / 3)
    assert find("j", ALL, MEAN, "qwk") == pytest.approx((-1 + novelty_qwk + clarity_qwk) / 3)
    # The raters: 1 on fluency, and the values against rater 2 that the judge has elsewhere.
    human = (1 + 4 / math.sqrt(8 * 4) + 8 / math.sqrt(10 * 8)) / 3
    assert find(HUMAN_HUMAN, ALL, MEAN, "pearson", "value") == pytest.approx(human)


def test_order_and_what_the_rows_say() -> None:
    found = of(FOUR, judgements("j", "direct", *JUDGE))
    first = found.rows[0]
    assert (first.judge, first.score, first.rater, first.step, first.dimension) == ("j", "value", MEAN, ALL, MEAN)
    assert list(dict.fromkeys((row.step, row.dimension) for row in found.rows)) == [
        *((ALL, MEAN), ("ideas", MEAN), ("plan", MEAN)),
        *(("ideas", "fluency"), ("ideas", "novelty"), ("plan", "clarity")),
    ]
    assert list(dict.fromkeys(row.metric for row in found.rows)) == list(METRICS)
    assert [(row.judge, row.method, row.score) for row in found.rows[::18]] == [
        *(("j", "direct", "value"), ("j", "direct", "top"), (HUMAN_HUMAN, HUMAN, "value")),
    ]
    assert {(row.n, row.coverage, row.simulated) for row in found.rows} == {(4, 1.0, True)}
    assert found.notes == {"test": []}


def naive_means(samples: Sequence[Sample], columns: Sequence[tuple[Any, Any]]) -> np.ndarray[Any, Any]:
    """(3,): metrics averaged over pairs of columns (sample, key → score or None), then over dimensions."""
    found = []
    for key, (_, dimension) in zip(KEYS, RUBRIC.reported, strict=True):
        of_raters = []
        for first, second in columns:
            pairs = [(first(one, key), second(one, key)) for one in samples]
            a, b = zip(*[pair for pair in pairs if None not in pair], strict=True)
            of_raters.append(naive(a, b, range(dimension.range[0], dimension.range[1] + 1)))
        found.append(np.mean(of_raters, axis=0))
    return np.asarray(np.mean(found, axis=0))


@pytest.mark.parametrize("kind", ["value", "top"])
def test_naive_recomputation_of_random_data(kind: str) -> None:
    samples, judges = random_plan(60, 6)
    find = finder(of(samples, [one for judged in judges for one in judged]))
    expected = {}
    for judged in judges:
        columns = [(rating(rater), verdict(judged, kind)) for rater in ("rater1", "rater2")]
        expected[judged[0].judge] = naive_means(samples, columns)
        found = [find(judged[0].judge, ALL, MEAN, metric, kind) for metric in METRICS]
        assert found == pytest.approx(expected[judged[0].judge], abs=1e-9)
    mean = [find(MEAN_OF_JUDGES, ALL, MEAN, metric, kind, "direct") for metric in METRICS]
    assert mean == pytest.approx((expected["a"] + expected["b"]) / 2)
    human = [find(HUMAN_HUMAN, ALL, MEAN, metric, "value") for metric in METRICS]
    assert human == pytest.approx(naive_means(samples, [(rating("rater1"), rating("rater2"))]), abs=1e-9)


def test_only_methods_with_several_judges_are_averaged() -> None:
    samples, judges = random_plan(30, 6)
    recorded = [
        one.model_copy(update={"method": "recorded", "judge": f"r{number}"})
        for number in range(2)
        for one in judges[number]
    ]
    found = of(samples, [*judges[0], *judges[1], *judges[2], *recorded])
    assert {row.method for row in found.rows if row.judge == MEAN_OF_JUDGES} == {"direct"}


def test_n_and_coverage_are_those_of_the_dimension_with_the_fewest() -> None:
    judged = judgements("j", "direct", *JUDGE[:3], (None, 4, 5))
    found = of([*FOUR, sample(4)], judged)
    rows = {(row.step, row.dimension): (row.n, row.coverage) for row in found.rows if row.judge == "j"}
    assert rows["ideas", "fluency"] == (3, 3 / 5)
    assert rows["ideas", "novelty"] == (4, 4 / 5)
    assert rows["ideas", MEAN] == pytest.approx((3, 0.7))
    assert rows[ALL, MEAN] == pytest.approx((3, (0.6 + 0.8 + 0.8) / 3))


def test_undefined_dimensions_leave_averages_missing_and_are_named() -> None:
    constant = [(2, 0, 1), (2, 2, 2), (2, 2, 4), (2, 4, 5)]
    found = of(FOUR, judgements("j", "direct", *constant))
    find = finder(found)
    assert find("j", "ideas", "fluency", "pearson") is None
    assert find("j", "ideas", "fluency", "qwk") == pytest.approx(0)
    for step in ("ideas", ALL):
        assert find("j", step, MEAN, "pearson") is None
        assert find("j", step, MEAN, "qwk") is not None
    assert find("j", "plan", MEAN, "pearson") is not None
    (note,) = found.notes["test"]
    assert note.startswith("j, expected and top scores: r undefined for Ideas Fluency (constant scores")
    missing = [row for row in found.rows if row.value is None]
    assert {(row.low, row.high) for row in missing} == {(None, None)}


def test_a_rater_who_is_constant_is_named() -> None:
    samples = [
        sample(number, one, (2, *other[1:])) for number, (one, other) in enumerate(zip(RATER_1, RATER_2, strict=True))
    ]
    found = of(samples, judgements("j", "direct", *JUDGE))
    assert finder(found)("j", "ideas", "fluency", "pearson") is None
    assert any("r undefined for Ideas Fluency (rater2) (constant" in note for note in found.notes["test"])
    assert any(note.startswith("human–human: r undefined for Ideas Fluency (") for note in found.notes["test"])


def test_one_rater_has_no_human_line() -> None:
    samples = [sample(number, scores) for number, scores in enumerate(RATER_1)]
    found = of(samples, judgements("j", "direct", *JUDGE))
    assert {row.judge for row in found.rows} == {"j"}
    assert finder(found)("j", "ideas", "novelty", "pearson") == pytest.approx(1)


def test_one_sample_only_is_missing_everywhere() -> None:
    found = of(FOUR[:1], judgements("j", "direct", JUDGE[0]))
    assert {(row.value, row.low, row.n) for row in found.rows} == {(None, None, 1)}
    assert len(found.notes["test"]) == 2
    assert all("QWK, r, ICC(2,1) undefined for all 3 dimensions" in note for note in found.notes["test"])


def test_nobody_rated_anything() -> None:
    assert of([sample(0), sample(1)], judgements("j", "direct", *JUDGE[:2])) == Protocol([], {})


def test_intervals_are_of_whole_scenarios_drawn_alike_for_all_dimensions() -> None:
    samples, judges = random_plan(60, 6)
    rows = {
        (row.judge, row.step, row.dimension, row.metric): row
        for row in of(samples, judges[1], resamples=400).rows
        if row.score == "value"
    }
    one, every = rows["b", "plan", "clarity", "pearson"], rows["b", ALL, MEAN, "pearson"]
    assert one.low is not None
    assert one.value is not None
    assert one.high is not None
    assert one.low < one.value < one.high
    # By hand: the same draws of scenarios, the mean of all dimensions in each.
    draws = np.random.default_rng(0).multinomial(6, np.full(6, 1 / 6), size=400)
    columns = [(rating(rater), verdict(judges[1], "value")) for rater in ("rater1", "rater2")]
    means = []
    for draw in draws:
        drawn = [one for number in range(6) for one in samples[number::6] for _ in range(draw[number])]
        r = [
            stats.pearsonr(*zip(*[p for p in [(x(s, key), y(s, key)) for s in drawn] if None not in p], strict=True))[0]
            for x, y in columns
            for key in KEYS
        ]
        means.append(np.mean(r))
    assert (every.low, every.high) == pytest.approx(np.percentile(means, [2.5, 97.5]), abs=1e-9)


def test_a_judge_of_few_scenarios_has_no_interval() -> None:
    samples, judges = random_plan(60, 6)
    kept = {one.id for one in samples if one.scenario_id in ("FS0", "FS1")}
    found = of(samples, [one for one in judges[1] if one.sample_id in kept])
    rows = [row for row in found.rows if row.judge == "b"]
    assert all(row.value is not None for row in rows)
    assert {(row.low, row.high) for row in rows} == {(None, None)}


def test_averages_are_missing_where_a_part_is() -> None:
    means = averages(np.array([1.0, np.nan, 3.0]), RUBRIC.reported)
    assert {key: str(value) for key, value in means.items()} == {
        (ALL, MEAN): "nan",
        ("ideas", MEAN): "nan",
        ("plan", MEAN): "3.0",
    }


def test_printed_averages_of_the_paper(data_dir: Path) -> None:
    rubric = load_rubric("cgpst")
    published = json.loads((data_dir / "cgpst" / "rubric_facts.json").read_text())["published"]
    checked = 0
    for table in ("qwk_table2_and_8", "pcc_table12", "icc_table13"):
        for method, of_method in published[table].items():
            printed = of_method["per_dimension"]
            values = [printed[f"{step.label}/{dimension.label}"] for step, dimension in rubric.reported]
            mean = float(averages(np.array(values, dtype=float), rubric.reported)[ALL, MEAN])
            if None in values:
                assert (method, math.isnan(mean)) == ("SFT_Evidence", True)
                continue
            assert mean == pytest.approx(of_method["average"], abs=6e-5), (table, method)
            checked += 1
    assert checked == 24
