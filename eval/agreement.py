"""Agreement of a judge with human scores: correlation, kappa, intraclass correlation, error.

All functions take `human` and `judge`, float arrays (n,) on the same scale, without missing rows (the caller removes
them), and return a float. Nothing here raises or warns for odd data: an undefined value is NaN, namely

- no rows: every metric; one row: every metric but RMSE, MAE and bias;
- a constant `human` or `judge`: the correlations; QWK and ICC where their denominator is 0 (both constant and equal).

Everything except the rank correlations depends on the data through sums alone. So each such metric is written once, as
a formula on `Moments`; `eval.resampling` applies the same formulas to 2,000 resamples at a time.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import stats

Array: TypeAlias = npt.NDArray[np.float64]
IccForm = Literal["icc1_1", "icc2_1", "icc3_1", "icc1_k", "icc2_k", "icc3_k"]
ICC_FORMS: tuple[IccForm, ...] = ("icc1_1", "icc2_1", "icc3_1", "icc1_k", "icc2_k", "icc3_k")
# Sums of squares below this share of the uncentred sum are rounding noise of a constant column.
NOISE = 1e-12


@dataclass(frozen=True)
class Moments:
    """Sums over the rows of one sample (arrays of shape ()) or of R resamples (shape (R,))."""

    n: Array
    """Rows."""
    ss_human: Array
    """Σ (human − mean)²."""
    ss_judge: Array
    cross: Array
    """Σ (human − mean)(judge − mean)."""
    bias: Array
    """Mean of judge − human."""
    mae: Array
    """Mean of |judge − human|."""


def row_sums(human: Array, judge: Array) -> Array:
    """Terms (n, 7) whose (weighted) column sums `moments_from_sums` needs.

    Both columns are shifted by their first value: that keeps the sums small and makes a constant exactly zero.
    """
    x, y = human - human[:1], judge - judge[:1]
    return np.column_stack([np.ones_like(x), x, y, x * x, y * y, x * y, np.abs(judge - human)])


def moments_from_sums(sums: Array, offset: float) -> Moments:
    """Moments from sums (7,) or (R, 7) over `row_sums`; `offset` = judge[0] − human[0], what the shifts took."""
    n, x, y, xx, yy, xy, absolute = np.moveaxis(sums, -1, 0)
    rows = np.where(n > 0, n, np.nan)
    ss_x, ss_y = xx - x * x / rows, yy - y * y / rows
    return Moments(
        n=rows,
        ss_human=np.where(ss_x > NOISE * xx, ss_x, 0.0 * rows),
        ss_judge=np.where(ss_y > NOISE * yy, ss_y, 0.0 * rows),
        cross=xy - x * y / rows,
        bias=(y - x) / rows + offset,
        mae=absolute / rows,
    )


def moments(human: Array, judge: Array) -> Moments:
    """Moments of one sample."""
    offset = float(judge[0] - human[0]) if len(human) else 0.0
    return moments_from_sums(row_sums(human, judge).sum(axis=0), offset)


def ratio(numerator: Any, denominator: Any) -> Array:
    """numerator / denominator, NaN where the denominator is 0 or unknown."""
    safe = np.where(denominator != 0, denominator, np.nan)
    return np.asarray(numerator / safe)


def _pearson(m: Moments) -> Array:
    return np.clip(ratio(m.cross, np.sqrt(m.ss_human * m.ss_judge)), -1.0, 1.0)


def _sd(ss: Array, n: Array) -> Array:
    return np.sqrt(ratio(ss, n - 1))


def _rmse(m: Moments) -> Array:
    return np.sqrt(np.maximum((m.ss_human + m.ss_judge - 2 * m.cross) / m.n, 0.0) + m.bias**2)


def _icc_two_raters(form: IccForm) -> Callable[[Moments], Array]:
    """`icc` for the two raters human and judge: the sums of squares of the analysis of variance from the moments."""

    def formula(m: Moments) -> Array:
        between_rows = (m.ss_human + m.ss_judge + 2 * m.cross) / 2
        between_raters = m.n * m.bias**2 / 2
        residual = np.maximum((m.ss_human + m.ss_judge - 2 * m.cross) / 2, 0.0)
        return icc_from_squares(form, between_rows, between_raters, residual, m.n, 2)

    return formula


MOMENT_METRICS: dict[str, Callable[[Moments], Array]] = {
    "pearson": _pearson,
    **{form: _icc_two_raters(form) for form in ICC_FORMS},
    "rmse": _rmse,
    "mae": lambda m: m.mae,
    "bias_pred_minus_target": lambda m: m.bias,
    "sd_target": lambda m: _sd(m.ss_human, m.n),
    "sd_pred": lambda m: _sd(m.ss_judge, m.n),
}
"""Metric name → formula on the moments of the unrounded scores."""

QWK_ROUNDINGS: dict[str, tuple[float, bool]] = {
    "qwk_half_point": (0.5, False),
    "qwk_integer": (1.0, False),
    "qwk_tenth": (0.1, False),
    "qwk_integer_half_even": (1.0, True),
}
"""Metric name → (step, half_even) of its rounding."""


def pearson(human: Array, judge: Array) -> float:
    """Pearson's product-moment correlation r, −1 to 1."""
    return float(_pearson(moments(human, judge)))


def spearman(human: Array, judge: Array) -> float:
    """Spearman's rank correlation: Pearson's r of the mid-ranks (ties share their mean rank)."""
    return pearson(stats.rankdata(human), stats.rankdata(judge))


def kendall_tau_b(human: Array, judge: Array) -> float:
    """Kendall's τ-b, corrected for ties (Kendall 1945, "The treatment of ties in ranking problems")."""
    if len(human) < 2 or np.ptp(human) == 0 or np.ptp(judge) == 0:
        return float("nan")
    return float(stats.kendalltau(human, judge, variant="b").statistic)


def rmse(human: Array, judge: Array) -> float:
    """Root mean squared error in scale points."""
    return float(_rmse(moments(human, judge)))


def mae(human: Array, judge: Array) -> float:
    """Mean absolute error in scale points."""
    return float(moments(human, judge).mae)


def bias_pred_minus_target(human: Array, judge: Array) -> float:
    """Mean of judge − human in scale points; positive = the judge is too generous."""
    return float(moments(human, judge).bias)


def sd_target(human: Array, judge: Array) -> float:
    """Standard deviation (n − 1) of the human scores."""
    return float(MOMENT_METRICS["sd_target"](moments(human, judge)))


def sd_pred(human: Array, judge: Array) -> float:
    """Standard deviation (n − 1) of the judge's scores."""
    return float(MOMENT_METRICS["sd_pred"](moments(human, judge)))


def to_labels(scores: Array, step: float, score_range: tuple[float, float], *, half_even: bool = False) -> Array:
    """Scores clipped to `score_range`, as numbers of steps: rounded to the nearest, ties upward (or to even)."""
    steps = np.clip(scores, *score_range) / step
    return np.rint(steps) if half_even else np.floor(steps + 0.5)


def kappa_from_moments(m: Moments) -> Array:
    """Quadratic weighted kappa from the moments of the labels.

    Cohen's weighted kappa (1968) is 1 − Σ w·observed / Σ w·expected. With w = (i − j)² on evenly spaced labels the
    first sum is the mean of (human − judge)², the second what that mean is for independent raters with the same two
    marginals: var(human) + var(judge) + bias². So no confusion matrix is needed; labels nobody used change nothing.
    """
    spread = (m.ss_human + m.ss_judge) / m.n + m.bias**2
    value = ratio(2 * m.cross / m.n, spread)
    return np.where(m.n > 1, value, np.nan)


def qwk(human: Array, judge: Array, *, step: float, score_range: tuple[float, float], half_even: bool = False) -> float:
    """Quadratic weighted kappa of the scores rounded to multiples of `step` within `score_range` (full label set)."""
    labels = [to_labels(scores, step, score_range, half_even=half_even) for scores in (human, judge)]
    return float(kappa_from_moments(moments(*labels)))


def icc_from_squares(form: IccForm, rows: Array, raters: Array, residual: Array, n: Array, k: int) -> Array:
    """ICC of Shrout and Fleiss (1979) from the sums of squares between rows, between raters and residual.

    Form 1: one-way random; 2: two-way random, absolute agreement; 3: two-way mixed, consistency. ``_1``: reliability
    of a single rater; ``_k``: of the mean of all k.
    """
    bms = ratio(rows, n - 1)
    jms = raters / (k - 1)
    ems = ratio(residual, (n - 1) * (k - 1))
    wms = (raters + residual) / (n * (k - 1))
    if form == "icc1_1":
        return ratio(bms - wms, bms + (k - 1) * wms)
    if form == "icc2_1":
        return ratio(bms - ems, bms + (k - 1) * ems + k * (jms - ems) / n)
    if form == "icc3_1":
        return ratio(bms - ems, bms + (k - 1) * ems)
    if form == "icc1_k":
        return ratio(bms - wms, bms)
    if form == "icc2_k":
        return ratio(bms - ems, bms + (jms - ems) / n)
    return ratio(bms - ems, bms)


def icc(ratings: Array, form: IccForm) -> float:
    """Intraclass correlation of `ratings` (n, k): n rated things by k ≥ 2 raters. Two-way analysis of variance."""
    n, k = ratings.shape
    if n < 2 or k < 2:
        return float("nan")
    ratings = ratings - ratings[0, 0]
    grand, row_means, rater_means = ratings.mean(), ratings.mean(axis=1, keepdims=True), ratings.mean(axis=0)
    rows = k * np.sum((row_means - grand) ** 2)
    raters = n * np.sum((rater_means - grand) ** 2)
    residual = np.sum((ratings - row_means - rater_means + grand) ** 2)
    return float(icc_from_squares(form, rows, raters, residual, np.asarray(float(n)), k))


def agreement(human: Array, judge: Array, score_range: tuple[float, float]) -> dict[str, float]:
    """Every metric of this module by name, in the order of the reports."""
    of_scores = moments(human, judge)
    values = {name: float(formula(of_scores)) for name, formula in MOMENT_METRICS.items()}
    kappas = {
        name: qwk(human, judge, step=step, score_range=score_range, half_even=half_even)
        for name, (step, half_even) in QWK_ROUNDINGS.items()
    }
    ranks = {"spearman": spearman(human, judge), "kendall_tau_b": kendall_tau_b(human, judge)}
    return {"pearson": values.pop("pearson"), **ranks, **kappas, **values}
