"""Metrics on values derived by hand, against scipy, scikit-learn and pingouin, and on odd data."""

import math
import warnings

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import cohen_kappa_score

from eval import agreement as ag

HUMAN = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
JUDGE = np.array([2.0, 2.0, 3.0, 5.0, 5.0])
# Means 3 and 3.4; Σ(h − 3)² = 10; Σ(j − 3.4)² = 67 − 57.8 = 9.2; Σ(h − 3)(j − 3.4) = 60 − 51 = 9.
# Differences judge − human: 1, 0, 0, 1, 0.
# Analysis of variance: rows (10 + 9.2 + 18) / 2 = 18.6, raters 5 · 0.16 / 2 = 0.4, residual (10 + 9.2 − 18) / 2 = 0.6;
# mean squares 4.65, 0.4, 0.15, within rows (0.4 + 0.6) / 5 = 0.2.
BY_HAND = {
    "pearson": 9 / math.sqrt(92),
    "spearman": 9 / math.sqrt(90),  # mid-ranks of judge 1.5, 1.5, 3, 4.5, 4.5: sum of squares 9, cross 54 − 45
    "kendall_tau_b": 8 / math.sqrt(10 * 8),  # ten pairs, two tied in judge, the rest concordant
    "qwk_integer": 1 - 0.4 / (2 + 1.84 + 0.16),  # observed mean of d²; expected var + var + bias²
    "qwk_integer_half_even": 0.9,
    "qwk_half_point": 0.9,
    "qwk_tenth": 0.9,
    "icc1_1": 4.45 / 4.85,
    "icc2_1": 4.5 / (4.65 + 0.15 + 2 * 0.25 / 5),
    "icc3_1": 4.5 / 4.8,
    "icc1_k": 4.45 / 4.65,
    "icc2_k": 4.5 / (4.65 + 0.25 / 5),
    "icc3_k": 4.5 / 4.65,
    "rmse": math.sqrt(0.4),
    "mae": 0.4,
    "bias_pred_minus_target": 0.4,
    "sd_target": math.sqrt(2.5),
    "sd_pred": math.sqrt(2.3),
}


def random_scores(seed: int, n: int = 300) -> tuple[ag.Array, ag.Array]:
    """Ratings in tenths and correlated judge's scores, both on 1..5, with ties."""
    random = np.random.default_rng(seed)
    human = np.clip(np.round(random.normal(2.3, 0.9, n), 1), 1, 5)
    judge = np.clip(np.round(0.6 * human + random.normal(1.3, 0.6, n), 2), 1, 5)
    return human, judge


def test_all_metrics_by_hand() -> None:
    assert ag.agreement(HUMAN, JUDGE, (1, 5)) == pytest.approx(BY_HAND, abs=1e-12)


def test_named_functions_are_the_metrics() -> None:
    names = ["pearson", "spearman", "kendall_tau_b", "rmse", "mae", "bias_pred_minus_target", "sd_target", "sd_pred"]
    found = {name: getattr(ag, name)(HUMAN, JUDGE) for name in names}
    assert found == pytest.approx({name: BY_HAND[name] for name in names}, abs=1e-12)


def test_kappa_from_a_confusion_matrix_by_hand() -> None:
    # Labels 1, 2 of four rows: human 1 1 2 2, judge 1 2 2 2. Observed disagreement 1/4.
    # Marginals (1/2, 1/2) and (1/4, 3/4): expected 1/2 · 3/4 + 1/2 · 1/4 = 1/2. Kappa 1 − (1/4) / (1/2).
    assert ag.qwk(np.array([1.0, 1, 2, 2]), np.array([1.0, 2, 2, 2]), step=1, score_range=(1, 5)) == pytest.approx(0.5)


def test_rounding_of_ties() -> None:
    scores = np.array([1.0, 1.5, 2.5, 3.5, 4.49, 5.2, 0.3])
    assert ag.to_labels(scores, 1, (1, 5)).tolist() == [1, 2, 3, 4, 4, 5, 1]
    assert ag.to_labels(scores, 1, (1, 5), half_even=True).tolist() == [1, 2, 2, 4, 4, 5, 1]
    assert ag.to_labels(np.array([1.25, 1.24, 4.75]), 0.5, (1, 5)).tolist() == [3, 2, 10]


@pytest.mark.parametrize("seed", range(5))
def test_correlations_against_scipy(seed: int) -> None:
    human, judge = random_scores(seed)
    assert ag.pearson(human, judge) == pytest.approx(stats.pearsonr(human, judge).statistic, abs=1e-12)
    assert ag.spearman(human, judge) == pytest.approx(stats.spearmanr(human, judge).statistic, abs=1e-12)
    assert ag.kendall_tau_b(human, judge) == pytest.approx(stats.kendalltau(human, judge).statistic, abs=1e-12)


@pytest.mark.parametrize("name", ag.QWK_ROUNDINGS)
@pytest.mark.parametrize("seed", range(3))
def test_kappa_against_scikit_learn(name: str, seed: int) -> None:
    human, judge = random_scores(seed)
    step, half_even = ag.QWK_ROUNDINGS[name]
    labels = [ag.to_labels(scores, step, (1, 5), half_even=half_even).astype(int) for scores in (human, judge)]
    every_label = list(range(round(1 / step), round(5 / step) + 1))
    expected = cohen_kappa_score(*labels, labels=every_label, weights="quadratic")
    assert ag.agreement(human, judge, (1, 5))[name] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("raters", [2, 3])
def test_icc_against_pingouin(raters: int) -> None:
    pingouin, pandas = pytest.importorskip("pingouin"), pytest.importorskip("pandas")
    random = np.random.default_rng(raters)
    ratings = np.round(random.normal(3, 1, (60, 1)) + random.normal(0, 0.7, (60, raters)) + 0.3 * np.arange(raters), 1)
    long = pandas.DataFrame(
        {
            "thing": np.repeat(np.arange(60), raters),
            "rater": np.tile(np.arange(raters), 60),
            "score": ratings.ravel(),
        }
    )
    table = pingouin.intraclass_corr(long, targets="thing", raters="rater", ratings="score")
    names = dict(
        zip(["ICC(1,1)", "ICC(A,1)", "ICC(C,1)", "ICC(1,k)", "ICC(A,k)", "ICC(C,k)"], ag.ICC_FORMS, strict=True)
    )
    expected = {names[row.Type]: row.ICC for row in table.itertuples()}
    assert {form: ag.icc(ratings, form) for form in ag.ICC_FORMS} == pytest.approx(expected, abs=1e-9)


def test_icc_of_the_paper() -> None:
    # The worked example of Shrout and Fleiss (1979): six targets, four judges; coefficients printed to two digits.
    ratings = np.array([[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]], float)
    printed = {"icc1_1": 0.17, "icc2_1": 0.29, "icc3_1": 0.71, "icc1_k": 0.44, "icc2_k": 0.62, "icc3_k": 0.91}
    assert {form: round(ag.icc(ratings, form), 2) for form in ag.ICC_FORMS} == printed


def test_icc_of_two_raters_is_the_matrix_form() -> None:
    human, judge = random_scores(1)
    found = ag.agreement(human, judge, (1, 5))
    for form in ag.ICC_FORMS:
        assert found[form] == pytest.approx(ag.icc(np.column_stack([human, judge]), form), abs=1e-12)


@pytest.mark.parametrize("rows", [0, 1])
def test_too_few_rows_are_nan_without_a_warning(rows: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = ag.agreement(HUMAN[:rows], JUDGE[:rows], (1, 5))
        assert math.isnan(ag.icc(np.zeros((rows, 2)), "icc2_1"))
    defined = {name: value for name, value in found.items() if not math.isnan(value)}
    assert defined == ({} if rows == 0 else {"rmse": 1.0, "mae": 1.0, "bias_pred_minus_target": 1.0})


@pytest.mark.parametrize("constant", [3.0, 2.2, 0.1 + 0.2])
def test_constant_judge(constant: float) -> None:
    human, _ = random_scores(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = ag.agreement(human, np.full(len(human), constant), (1, 5))
    assert [name for name, value in found.items() if math.isnan(value)] == ["pearson", "spearman", "kendall_tau_b"]
    assert found["sd_pred"] == 0.0
    assert found["qwk_integer"] == 0.0  # no better than chance
    assert found["rmse"] == pytest.approx(math.sqrt(np.mean((human - constant) ** 2)))


def test_both_constant_and_equal() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = ag.agreement(np.full(9, 2.2), np.full(9, 2.2), (1, 5))
    errors = {"rmse", "mae", "bias_pred_minus_target", "sd_target", "sd_pred"}
    assert {name for name, value in found.items() if value == 0.0} == errors
    assert all(math.isnan(value) for name, value in found.items() if name not in errors)


def test_identical_scores_agree_perfectly() -> None:
    human, _ = random_scores(0)
    found = ag.agreement(human, human, (1, 5))
    perfect = [name for name, value in found.items() if value == pytest.approx(1.0, abs=1e-12)]
    assert set(perfect) == {"pearson", "spearman", "kendall_tau_b", *ag.QWK_ROUNDINGS, *ag.ICC_FORMS}


def test_far_from_zero_nothing_is_lost() -> None:
    human, judge = random_scores(2)
    assert ag.pearson(human + 1e6, judge + 1e6) == pytest.approx(ag.pearson(human, judge), abs=1e-8)
