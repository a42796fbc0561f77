"""What several models find together: utility of their pooled paths, and what each adds to it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from eval.create.distance import path_distances
from eval.create.embedding import EmbeddedStrings
from eval.create.normal import normalised_path
from eval.create.records import AnyPath, JudgedAnswer
from eval.create.statistics import way_entities
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
    entities: dict[str, dict[str, int]]
    """Model → name on the way between start and target, `normalised` → kept paths of the model that have it."""

    @property
    def coverage(self) -> dict[str, float | None]:
        """Utility of each model alone over the pooled one; None where nothing was found."""
        return {model: value / self.utility if self.utility else None for model, value in self.single.items()}

    @property
    def tail(self) -> dict[str, dict[str, int]]:
        """The part of `entities` that no other model has."""
        models = Counter(name for names in self.entities.values() for name in names)
        return {
            model: {name: paths for name, paths in names.items() if models[name] == 1}
            for model, names in self.entities.items()
        }


@dataclass(frozen=True)
class Part:
    """What one model adds: means over the queries that it answered, and sums."""

    single: float
    """Utility alone."""
    coverage: float | None
    """Over queries with any kept path, like `share`; None where there is none."""
    share: float | None
    sole_paths: int
    """Paths that no other model found."""
    entities: int
    """Different names on the way, query by query."""
    tail_entities: int
    """Those that no other model found."""


@dataclass(frozen=True)
class UnionSummary:
    """Means over queries; sums of different paths and names."""

    queries: int
    pooled: float
    paths: int
    entities: int
    models: dict[str, Part]


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
    entities = {model: _entities(answer) for model, answer in answers.items()}
    return Union(total, single, share, tuple(tuple(found[place]) for place in order), entities)


def summarise(unions: Sequence[Union]) -> UnionSummary:
    """Over queries, each model over the queries that it answered."""
    models = dict.fromkeys(model for union in unions for model in union.single)
    return UnionSummary(
        queries=len(unions),
        pooled=_mean([union.utility for union in unions]) or 0.0,
        paths=sum(len(union.order) for union in unions),
        entities=sum(len({name for names in union.entities.values() for name in names}) for union in unions),
        models={model: _part(model, [union for union in unions if model in union.single]) for model in models},
    )


def _part(model: str, unions: Sequence[Union]) -> Part:
    useful = [union for union in unions if union.utility]
    return Part(
        single=_mean([union.single[model] for union in unions]) or 0.0,
        coverage=_mean([share for union in useful if (share := union.coverage[model]) is not None]),
        share=_mean([union.share[model] for union in useful]),
        sole_paths=sum(owners == (model,) for union in unions for owners in union.order),
        entities=sum(len(union.entities[model]) for union in unions),
        tail_entities=sum(len(union.tail[model]) for union in unions),
    )


def _entities(answer: JudgedAnswer) -> dict[str, int]:
    return dict(Counter(name for path in answer.kept_paths for name in set(way_entities(path))))


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
