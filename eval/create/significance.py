"""Which models' utilities differ: paired bootstrap over the queries that both answered, corrected for all pairs."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from eval.resampling import MIN_CLUSTERS, NO_INTERVAL, cluster_weights, percentile_interval, two_sided_p

RESAMPLES = 10_000
LEVEL = 0.05


@dataclass(frozen=True)
class Comparison:
    """Mean utility of a − mean utility of b on their common queries."""

    a: str
    b: str
    difference: float
    low: float
    """95 % percentile interval, not corrected; NaN, like p, with fewer than `MIN_CLUSTERS` common queries."""
    high: float
    p: float
    """Two-sided bootstrap p of "no difference"."""
    p_corrected: float
    """p × number of pairs, at most 1 (Bonferroni)."""
    n: int

    @property
    def significant(self) -> bool:
        return self.p_corrected < LEVEL


def compare_models(
    utilities: Mapping[str, Mapping[str, float]], *, resamples: int = RESAMPLES, seed: int = 0
) -> list[Comparison]:
    """All pairs of models.

    Args:
        utilities: Model → query → utility at one patience.
        resamples: Bootstrap resamples of queries, the same for both models of a pair.
    """
    pairs = list(combinations(utilities, 2))
    return [_comparison(a, b, utilities, len(pairs), resamples, seed) for a, b in pairs]


def _comparison(
    a: str, b: str, utilities: Mapping[str, Mapping[str, float]], pairs: int, resamples: int, seed: int
) -> Comparison:
    common = [query for query in utilities[a] if query in utilities[b]]
    apart = np.array([utilities[a][query] - utilities[b][query] for query in common], dtype=np.float64)
    difference = float(apart.mean()) if common else float("nan")
    if len(common) < MIN_CLUSTERS:
        return Comparison(a, b, difference, *NO_INTERVAL, float("nan"), float("nan"), len(common))
    means = cluster_weights(len(common), resamples, seed) @ apart / len(common)
    p = two_sided_p(means)
    return Comparison(a, b, difference, *percentile_interval(means), p, min(1.0, p * pairs), len(common))
