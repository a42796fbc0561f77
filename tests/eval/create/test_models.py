"""What models find together, whether they differ, statistics of paths."""

from typing import Any

import numpy as np
import pytest

from eval.create.embedding import EmbeddedStrings
from eval.create.records import KEPT, JudgedAnswer
from eval.create.rows import Row
from eval.create.scoring import paper, score_rows
from eval.create.significance import compare_models
from eval.create.statistics import redundancy, revisits, way_entities, way_relations
from eval.create.strings import path_string
from eval.create.union import pool, summarise

X, Y, Z = ((("a", "r", name), (name, "s", "b")) for name in "xyz")


def answer(*paths: Any, strength: float = 4.0) -> JudgedAnswer:
    return JudgedAnswer("q", paths, (strength,) * len(paths), (KEPT,) * len(paths))


def test_pooled_paths_and_shares(one_hot: Any) -> None:
    strings = EmbeddedStrings([path_string(path) for path in (X, Y, Z)], one_hot)
    found = pool({"one": answer(X, Y), "two": answer(X, strength=3.0), "none": answer()}, strings)
    assert found.utility == 8  # x and y, each 4
    assert found.single == {"one": 8, "two": 3, "none": 0}
    assert found.share == {"one": 0.75, "two": 0.25, "none": 0.0}
    assert found.coverage == {"one": 1, "two": 3 / 8, "none": 0}
    assert found.order == (("one", "two"), ("one",))
    empty = pool({"one": answer()}, strings)
    assert (empty.utility, empty.coverage) == (0, {"one": None})
    means = summarise([found, empty])
    one, two = means.models["one"], means.models["two"]
    assert (means.queries, means.pooled, one.single, one.coverage) == (2, 4, 4, 1)
    assert sum(part.share or 0 for part in means.models.values()) == pytest.approx(1)
    assert found.entities == {"one": {"x": 1, "y": 1}, "two": {"x": 1}, "none": {}}
    assert found.tail == {"one": {"y": 1}, "two": {}, "none": {}}
    assert (means.paths, means.entities) == (2, 2)
    assert (one.sole_paths, one.entities, one.tail_entities) == (1, 2, 1)
    assert (two.sole_paths, two.entities, two.tail_entities) == (0, 1, 0)


def test_significance() -> None:
    noise = np.random.default_rng(0).normal(size=60)
    utilities = {
        "strong": {f"q{n}": 5 + noise[n] for n in range(60)},
        "same": {f"q{n}": 5 + noise[-n - 1] for n in range(50)},
        "weak": {f"q{n}": 3 + noise[n] / 2 for n in range(60)},
        "few": {"q0": 1.0},
    }
    found = {(one.a, one.b): one for one in compare_models(utilities, resamples=500)}
    assert len(found) == 6
    apart = found["strong", "weak"]
    assert apart.significant
    assert apart.low < apart.difference < apart.high
    assert apart.p_corrected == min(1, 6 * apart.p)
    assert not found["strong", "same"].significant
    assert found["strong", "same"].n == 50
    assert np.isnan(found["weak", "few"].p)
    assert not found["weak", "few"].significant


def test_statistics_of_paths() -> None:
    path = (("A", "r", "X"), ("x", "s", "Y"), ("Z", "t", "y"), ("y", "u", "b"))
    assert way_entities(path) == ["x", "y", "z", "y"]
    assert way_relations(path) == ["r", "s", "t"]
    assert revisits(path)
    assert not revisits(X)
    assert redundancy(["x", "x", "y", "z"]) == 0.25
    assert redundancy([]) is None


def test_rows_are_scored_with_any_embedder(one_hot: Any) -> None:
    rows = [
        Row(id=1, paths=[X, Y, X], strengths=[4, 3, 2], validity=[1, 1, 1], factuality=[[1, 1]] * 3),
        Row(id=2, paths=[Y], strengths=[5], validity=[1], factuality=[[1, 1]]),
    ]
    first, second = score_rows(rows, paper(), [1.0], one_hot)
    assert one_hot.given == [" [r] x", " [r] y"]  # each once; a path alone is compared with nothing
    assert (first["utility"], first["order"]) == ({"1": 7.0}, [0, 1, 2])
    assert second["utility"] == {"1": 5.0}
    kept = first["statistics"]["kept"]
    assert (kept["paths"], kept["strength"], kept["triples"]) == (3, 3.0, 2.0)
    assert kept["entity_redundancy"] == pytest.approx(1 / 3)
    assert kept["distance"] == pytest.approx(2 / 3)
    assert second["statistics"]["kept"]["distance"] is None
    assert first["statistics"]["all"]["revisiting"] == 0
