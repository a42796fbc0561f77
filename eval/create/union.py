"""What several models find together: utility of their pooled paths, and what each adds to it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from eval.create.distance import path_distances
from eval.create.embedding import EmbeddedStrings
from eval.create.normal import normalised_path
from eval.create.records import AnyPath, JudgedAnswer
from eval.create.strings import path_string
from eval.create.utility import discounts, greedy, utility


@dataclass(frozen=True)
class Union:
    """The kept paths of all models on one query, in one greedy order."""

    utility: float
    single: dict[str, float]
    """Utility of each model alone."""
    share: dict[str, float]
    """Each model's part of the pooled utility, summing to 1; a path that several found is divided among them."""
    order: tuple[tuple[str, ...], ...]
    """Models that found each path, in the pooled order."""

    @property
    def coverage(self) -> dict[str, float | None]:
        """Utility of each model alone over the pooled one; None where nothing was found."""
        return {model: value / self.utility if self.utility else None for model, value in self.single.items()}


@dataclass(frozen=True)
class UnionSummary:
    """Means over queries; those without any kept path count in `pooled` and `single` alone."""

    queries: int
    pooled: float
    single: dict[str, float]
    coverage: dict[str, float | None]
    share: dict[str, float | None]


def pool(answers: Mapping[str, JudgedAnswer], strings: EmbeddedStrings, patience: float = 1.0) -> Union:
    """Pool one query's answers, model → answer; `strings` has the string of every kept path.

    Paths that are the same but for case, width and whitespace are one, with the highest strength it was given.
    """
    owners: dict[tuple[tuple[str, ...], ...], list[str]] = {}
    items: dict[tuple[tuple[str, ...], ...], tuple[AnyPath, float]] = {}
    for model, answer in answers.items():
        for path, strength in zip(answer.kept_paths, answer.kept_strengths, strict=True):
            key = normalised_path(path)
            if model not in owners.setdefault(key, []):
                owners[key].append(model)
            known = items.get(key)
            items[key] = (path, strength if known is None else max(strength, known[1]))
    order, gains = _greedy_gains(list(items.values()), strings)
    found = [owners[key] for key in items]
    discounted = np.asarray(gains) * discounts(len(gains), patience)
    total = float(discounted.sum())
    share = dict.fromkeys(answers, 0.0)
    for place, gain in zip(order, discounted, strict=True):
        for model in found[place]:
            share[model] += float(gain) / total / len(found[place]) if total else 0.0
    single = {model: _alone(answer, strings, patience) for model, answer in answers.items()}
    return Union(total, single, share, tuple(tuple(found[place]) for place in order))


def summarise(unions: Sequence[Union]) -> UnionSummary:
    """Means over queries, each model over the queries that it answered."""
    models = list(dict.fromkeys(model for union in unions for model in union.single))
    useful = [union for union in unions if union.utility]
    return UnionSummary(
        queries=len(unions),
        pooled=_mean([union.utility for union in unions]) or 0.0,
        single={m: _mean([union.single[m] for union in unions if m in union.single]) or 0.0 for m in models},
        coverage={m: _mean([union.single[m] / union.utility for union in useful if m in union.single]) for m in models},
        share={m: _mean([union.share[m] for union in useful if m in union.share]) for m in models},
    )


def _alone(answer: JudgedAnswer, strings: EmbeddedStrings, patience: float) -> float:
    return utility(
        _greedy_gains(list(zip(answer.kept_paths, answer.kept_strengths, strict=True)), strings)[1], patience
    )


def _greedy_gains(
    items: Sequence[tuple[AnyPath, float]], strings: EmbeddedStrings
) -> tuple[tuple[int, ...], tuple[float, ...]]:
    distances = path_distances(strings.of([path_string(path) for path, _ in items]))
    found = greedy([strength for _, strength in items], distances)
    return found.order, found.gains


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None
