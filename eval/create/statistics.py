"""How long, how repetitive and how spread out the paths of an answer are."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from eval.create.distance import Array
from eval.create.normal import normalised_path
from eval.create.records import AnyPath, JudgedAnswer


def redundancy(names: Sequence[str]) -> float | None:
    """1 − distinct / all: 0 where every name occurs once; None where there is none."""
    return 1 - len(set(names)) / len(names) if names else None


def way_entities(path: AnyPath) -> list[str]:
    """Names between start and target, `normalised`, each link between two triples once."""
    triples = normalised_path(path)
    names: list[str] = []
    for before, after in pairwise(triples):
        names += [before[-1]] if before[-1] == after[0] else [before[-1], after[0]]
    return names


def way_relations(path: AnyPath) -> list[str]:
    """Relations but for the final one, which the query gives, `normalised`; of a path of one triple that one."""
    triples = normalised_path(path)
    return [triple[1] for triple in (triples[:-1] if len(triples) > 1 else triples) if len(triple) == 3]


def revisits(path: AnyPath) -> bool:
    """Whether a path comes back to a name it has left."""
    triples = normalised_path(path)
    nodes = [*triples[0][:1], *way_entities(path), *triples[-1][-1:]] if triples else []
    return len(set(nodes)) < len(nodes)


def mean_distance(distances: Array) -> float | None:
    """Mean over pairs of paths (n, n); None for fewer than two."""
    pairs = distances[np.triu_indices(len(distances), k=1)]
    return float(pairs.mean()) if len(pairs) else None


def answer_statistics(answer: JudgedAnswer, distances: Array) -> dict[str, dict[str, Any]]:
    """Statistics of the kept paths, whose `distances` are given, and of all paths of an answer."""
    kept = _statistics(answer.kept_paths, answer.kept_strengths)
    return {"kept": {**kept, "distance": mean_distance(distances)}, "all": _statistics(answer.paths, answer.strengths)}


def _statistics(paths: Sequence[AnyPath], strengths: Iterable[float | None]) -> dict[str, Any]:
    """Means over paths: strength (where known), triples; shares: redundancy of names, paths that revisit one."""
    known = [strength for strength in strengths if strength is not None]
    lengths = [len(path) for path in paths]
    return {
        "paths": len(paths),
        "strength": _mean(known),
        "triples": _mean(lengths),
        "triples_sd": float(np.std(lengths, ddof=1)) if len(lengths) > 1 else None,
        "entity_redundancy": redundancy([name for path in paths for name in way_entities(path)]),
        "relation_redundancy": redundancy([name for path in paths for name in way_relations(path)]),
        "revisiting": _mean([revisits(path) for path in paths]),
    }


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None
