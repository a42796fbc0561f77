"""The bootstrap against a naive loop over the same resamples, its coverage, and the paired comparison."""

import math
import warnings

import numpy as np
import pytest

from eval import resampling as rs
from eval.agreement import Array, agreement
from inference.errors import UserError

SCALE = (1.0, 5.0)


def clustered(seed: int, clusters: int = 12, rows: int = 20) -> tuple[Array, Array, list[str]]:
    random = np.random.default_rng(seed)
    names = [f"object {number}" for number in range(clusters) for _ in range(rows)]
    human = np.clip(np.round(random.normal(2.5, 0.9, clusters * rows), 1), 1, 5)
    judge = np.clip(np.round(0.5 * human + random.normal(1.5, 0.7, clusters * rows), 1), 1, 5)
    return human, judge, names


@pytest.mark.parametrize("clusters", [12, 70, 3])  # few, many, too few
def test_resampled_equals_a_naive_loop(clusters: int) -> None:
    human, judge, names = clustered(0, clusters, rows=10)
    index = rs.groups(names)
    weights = rs.cluster_weights(int(index.max()) + 1, 70, seed=5)
    naive = [
        agreement(human[rows], judge[rows], SCALE)
        for rows in (np.repeat(np.arange(len(human)), weight[index].astype(int)) for weight in weights)
    ]
    for metric in rs.INTERVAL_METRICS:
        found = rs.resampled(metric, human, judge, index, weights, SCALE)
        np.testing.assert_allclose(found, [one[metric] for one in naive], atol=1e-10, err_msg=metric)


def test_weights_draw_as_many_clusters_as_there_are() -> None:
    weights = rs.cluster_weights(21, 500, seed=0)
    assert weights.shape == (500, 21)
    assert np.all(weights.sum(axis=1) == 21)
    assert weights.std() == pytest.approx(math.sqrt(20 / 21), rel=0.05)  # multinomial: 21 · (1/21) · (20/21)


def test_few_clusters_resample_rows() -> None:
    assert rs.groups(["a", "b", "a", "c", "d"]).tolist() == [0, 1, 2, 3, 4]
    assert rs.groups(["e", "b", "a", "c", "d", "a"]).tolist() == [4, 1, 0, 2, 3, 0]


def test_intervals_are_seeded_and_hold_the_value() -> None:
    human, judge, names = clustered(1)
    found = rs.intervals(human, judge, names, SCALE, seed=3, resamples=500)
    assert found == rs.intervals(human, judge, names, SCALE, seed=3, resamples=500)
    assert found != rs.intervals(human, judge, names, SCALE, seed=4, resamples=500)
    values = agreement(human, judge, SCALE)
    assert set(found) == set(values) - {"kendall_tau_b"}
    for metric, (low, high) in found.items():
        assert low < values[metric] < high, metric


def test_intervals_do_not_depend_on_the_order_of_rows() -> None:
    human, judge, names = clustered(1)
    order = np.random.default_rng(0).permutation(len(human))
    shuffled = rs.intervals(human[order], judge[order], [names[row] for row in order], SCALE, resamples=200)
    for metric, ends in rs.intervals(human, judge, names, SCALE, resamples=200).items():
        assert shuffled[metric] == pytest.approx(ends, abs=1e-9)


def test_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    covered = 0
    for seed in range(200):
        random = np.random.default_rng(seed)
        human = random.normal(size=400)
        judge = 0.6 * human + 0.8 * random.normal(size=400)  # true correlation 0.6
        names = [str(row % 40) for row in range(400)]
        low, high = rs.intervals(human, judge, names, SCALE, seed=seed, resamples=300, metrics=["pearson"])["pearson"]
        covered += low <= 0.6 <= high
    assert 0.89 <= covered / 200 <= 0.985


def test_clustered_answers_widen_the_interval() -> None:
    random = np.random.default_rng(0)
    names = [str(row // 30) for row in range(600)]
    bias = np.repeat(random.normal(0, 1, 20), 30)  # the judge errs by object
    human = random.normal(3, 1, 600)
    judge = human + bias + random.normal(0, 0.3, 600)
    by_object = rs.intervals(human, judge, names, SCALE, metrics=["bias_pred_minus_target"])
    by_row = rs.intervals(human, judge, [str(row) for row in range(600)], SCALE, metrics=["bias_pred_minus_target"])
    width = {
        key: found["bias_pred_minus_target"][1] - found["bias_pred_minus_target"][0]
        for key, found in (("object", by_object), ("row", by_row))
    }
    assert width["object"] > 3 * width["row"]  # √30 = 5.5 for errors shared by all 30 rows


@pytest.mark.parametrize("rows", [0, 1])
def test_too_few_rows_have_no_interval(rows: int) -> None:
    found = rs.intervals(np.ones(rows), np.ones(rows), ["a"] * rows, SCALE)
    assert all(math.isnan(low) and math.isnan(high) for low, high in found.values())
    difference = rs.paired_difference(
        np.ones(rows), np.ones(rows), np.ones(rows), ["a"] * rows, "mae", score_range=SCALE
    )
    assert difference.n == rows
    assert math.isnan(difference.p)


def test_constant_judge_has_no_interval_of_r_and_no_warning() -> None:
    human, _, names = clustered(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = rs.intervals(human, np.full(len(human), 2.2), names, SCALE, resamples=50)
    assert math.isnan(found["pearson"][0])
    assert math.isnan(found["spearman"][0])
    assert found["sd_pred"] == (0.0, 0.0)
    assert found["mae"][0] > 0


def test_mean_interval_of_clusters() -> None:
    # Two values 0 and 1, five times each: the mean of ten draws has standard error √(1/4 / 10) = .158.
    low, high = rs.mean_interval(np.array([0.0, 1.0] * 5), seed=0)
    assert (low, high) == pytest.approx((0.2, 0.8), abs=0.01)
    assert math.isnan(rs.mean_interval(np.array([0.1, 0.2, 0.3, 0.4]))[0])


@pytest.mark.parametrize("metric", rs.INTERVAL_METRICS)
def test_swapping_the_judges_changes_the_sign_alone(metric: str) -> None:
    human, judge, names = clustered(2)
    other = np.clip(judge + np.random.default_rng(0).normal(0, 0.5, len(judge)), 1, 5)
    forth = rs.paired_difference(human, judge, other, names, metric, 1, score_range=SCALE, resamples=300)
    back = rs.paired_difference(human, other, judge, names, metric, 1, score_range=SCALE, resamples=300)
    assert (back.difference, back.low, back.high) == pytest.approx((-forth.difference, -forth.high, -forth.low))
    assert back.p == forth.p
    values = [agreement(human, scores, SCALE)[metric] for scores in (judge, other)]
    assert forth.difference == pytest.approx(values[0] - values[1], abs=1e-12)
    assert (forth.n, forth.clusters) == (240, 12)


def test_the_same_judge_twice_differs_in_nothing() -> None:
    human, judge, names = clustered(3)
    found = rs.paired_difference(human, judge, judge, names, "pearson", score_range=SCALE)
    assert (found.difference, found.low, found.high, found.p) == (0.0, 0.0, 0.0, 1.0)


def test_a_much_better_judge_is_found() -> None:
    human, judge, names = clustered(3)
    found = rs.paired_difference(human, human, judge, names, "pearson", score_range=SCALE, resamples=999)
    assert found.low > 0
    assert found.p == 2 / 1000  # no resample on the other side: 2 · (1 + 0) / (1 + 999)


def test_equal_judges_are_seldom_found_different() -> None:
    found = []
    for seed in range(200):
        random = np.random.default_rng(seed)
        human = random.normal(size=300)
        a, b = (human + random.normal(size=300) for _ in range(2))
        names = [str(row % 30) for row in range(300)]
        found.append(rs.paired_difference(human, a, b, names, "pearson", seed, score_range=SCALE, resamples=200).p)
    assert 0.01 <= np.mean(np.array(found) < 0.05) <= 0.11


def test_kendall_has_no_bootstrap() -> None:
    human, judge, names = clustered(0)
    with pytest.raises(UserError, match=r"kendall_tau_b.*choose one of spearman"):
        rs.paired_difference(human, judge, judge, names, "kendall_tau_b", score_range=SCALE)
