"""The best judge against the second best, and the t-test over dimensions."""

import math
from typing import Any

import numpy as np
import pytest
from plan_ratings import FOUR, JUDGE, KEYS, RUBRIC, judgements, naive, of, random_plan, rating, verdict
from scipy import stats

from eval.metrics import score_tables
from eval.protocol import ALL, MEAN, Frame
from eval.resampling import paired_difference
from eval.significance import best_two, differences, paired, t_test


def test_best_two_on_their_common_samples() -> None:
    samples, judges = random_plan(60, 6)
    judged = [one for of_judge in judges for one in of_judge]
    splits = {"test": {one.id for one in samples}}
    found = best_two(samples, judged, RUBRIC, splits, 0, of(samples, judged).rows, 400)
    assert [(one.score, one.judges, one.methods, one.dimensions) for one in found] == [
        ("value", ("b", "a"), ("direct", "direct"), 3),
        ("top", ("b", "a"), ("direct", "direct"), 3),
    ]
    top = found[1].paired
    b, a = (verdict(judges[number], "top") for number in (1, 0))
    per_dimension = []
    for key, (_, dimension) in zip(KEYS, RUBRIC.reported, strict=True):
        labels = range(dimension.range[0], dimension.range[1] + 1)
        values = []
        for rater in ("rater1", "rater2"):
            rows = [(rating(rater)(s, key), b(s, key), a(s, key)) for s in samples]
            human, best, second = zip(*[row for row in rows if None not in row], strict=True)
            values.append([naive(human, scores, labels)[0] for scores in (best, second)])
        per_dimension.append(np.mean(values, axis=0))
    best, second = np.array(per_dimension).T
    assert (top.a[0], top.b[0]) == pytest.approx((best.mean(), second.mean()))
    expected = stats.ttest_rel(best, second)
    assert (top.t, top.p_t) == pytest.approx((expected.statistic, expected.pvalue))
    assert top.low[0] <= found[1].difference <= top.high[0]
    assert 0 < top.p[0] <= 1
    assert top.coverage == pytest.approx(
        np.mean([sum(None not in (a(s, key), b(s, key)) for s in samples) / 60 for key in KEYS])
    )


def test_the_bootstrap_is_that_of_single_dimensions_where_there_is_one() -> None:
    samples, judges = random_plan(40, 8)
    only = (RUBRIC.reported[2],)
    samples = [one.model_copy(update={"human": {"rater1": one.human["rater1"]}}) for one in samples]
    tables: list[Any] = [
        {
            "plan.clarity": {
                one.sample_id: (one.scores[2].value, one.scores[2].top) for one in judged if one.scores[2].top
            }
        }
        for judged in (judges[0], judges[1])
    ]
    found = paired(Frame(samples, only, 3, 200), tables[0], tables[1], "top")
    used = [one for one in samples if all(one.id in table["plan.clarity"] for table in tables)]
    human, a, b = (
        np.array(column)
        for column in (
            [one.human["rater1"]["plan.clarity"] for one in used],
            *([table["plan.clarity"][one.id][1] for one in used] for table in tables),
        )
    )
    clusters = [one.scenario_id for one in used]
    expected = paired_difference(human, a, b, clusters, "qwk_integer", 3, score_range=(1, 5), resamples=200)
    assert found.a[0] - found.b[0] == pytest.approx(expected.difference)
    assert (found.low[0], found.high[0], found.p[0]) == pytest.approx((expected.low, expected.high, expected.p))
    assert math.isnan(found.t)


def test_differences_of_single_dimensions_and_steps() -> None:
    """Each is what a frame of its dimensions alone gives."""
    samples, judges = random_plan(60, 6)
    tables = [next(iter(score_tables(judged).values())) for judged in judges[:2]]
    found = differences(Frame(samples, RUBRIC.reported, 0, 200), *tables, "value")
    assert list(found) == [(ALL, MEAN), ("ideas", MEAN), ("plan", MEAN), *(tuple(key.split(".")) for key in KEYS)]
    for cell, pairs in (
        (("ideas", "novelty"), RUBRIC.reported[1:2]),
        (("plan", "clarity"), RUBRIC.reported[2:]),
        (("plan", MEAN), RUBRIC.reported[2:]),
        (("ideas", MEAN), RUBRIC.reported[:2]),
        ((ALL, MEAN), RUBRIC.reported),
    ):
        alone = paired(Frame(samples, pairs, 0, 200), *tables, "value")
        for name in ("a", "b", "low", "high", "p"):
            assert getattr(found[cell], name) == pytest.approx(getattr(alone, name)), (cell, name)
        assert found[cell].n == alone.n


def test_one_judge_or_undefined_averages_have_no_test() -> None:
    splits = {"test": {one.id for one in FOUR}}
    one = judgements("j", "direct", *JUDGE)
    unscored = judgements("k", "direct", *[(None, None, None)] * 4)
    assert best_two(FOUR, one, RUBRIC, splits, 0, of(FOUR, one).rows, 100) == []
    both = [*one, *unscored]
    assert best_two(FOUR, both, RUBRIC, splits, 0, of(FOUR, both).rows, 100) == []


@pytest.mark.parametrize("b", [[0.1, 0.2, 0.3], [0.2, 0.3, 0.4], [0.1, np.nan, 0.2]])
def test_t_is_missing_without_variation(b: list[float]) -> None:
    assert all(map(math.isnan, t_test(np.array([0.1, 0.2, 0.3]), np.array(b))))
