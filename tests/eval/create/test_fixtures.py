"""All fixture cases in both modes, through functions."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from eval.create.distance import cosine_distances, path_distances, transform
from eval.create.embedding import Embedder
from eval.create.factuality import read_labels
from eval.create.official import parsing as official_parsing
from eval.create.official import utility as official
from eval.create.official.errors import QuirkError
from eval.create.official.replies import is_factual, label_scores, path_strength, size_scores
from eval.create.official.validity import check_path as official_check
from eval.create.official.validity import stored_validity
from eval.create.parsing import parse_answer, parse_samples
from eval.create.specificity import read_sizes
from eval.create.strings import path_string
from eval.create.utility import greedy, optimum, utility
from eval.create.validity import check_path

Cases = Callable[[str], list[dict[str, Any]]]
GIVEN = 1e-9


def as_lists(value: Any) -> Any:
    return json.loads(json.dumps(value))


def test_parse(cases: Cases) -> None:
    for case in cases("parse"):
        raw = case["input"]["raw"]
        assert official_parsing.parse_answer(raw) == case["official"]["paths"], case["id"]
        parsed = parse_answer(raw)
        assert as_lists(parsed.paths) == case["paper"]["paths"], case["id"]
        assert list(parsed.flags) == case["paper"]["flags"], case["id"]


def test_samples(cases: Cases) -> None:
    for case in cases("samples"):
        texts = case["input"]["path_prediction"]
        assert official_parsing.parse_samples(texts) == case["official"]["parsed_paths"]
        parsed = parse_samples(texts)
        assert as_lists(parsed.paths) == case["paper"]["paths"]
        assert list(parsed.samples) == case["paper"]["sample"]


def test_validity(cases: Cases) -> None:
    for case in cases("validity"):
        given, want = case["input"], case["paper"]
        ends = (given["entity_a"], given["entity_b"])
        found = check_path(given["path"], *ends, given["rel_b"])
        assert (found.strict, found.shared) == (want["valid"], want["valid_shared"]), case["id"]
        assert list(found.reasons) == want["reasons"], case["id"]
        assert found.final_relation == want.get("final_relation_matches"), case["id"]
        released, stored = official_check(given["path"], *ends), case["official"]["stored_as_validity"]
        assert (released.flag, released.reason) == (case["official"]["flag"], case["official"]["reason_code"])
        if stored == "text":
            with pytest.raises(QuirkError) as stop:
                stored_validity(given["path"], *ends)
            assert stop.value.quirk == "Q20"
        else:
            assert stored_validity(given["path"], *ends) == stored


def test_class_size(cases: Cases) -> None:
    for case in cases("class_size"):
        reply, n = case["input"]["response"], case["input"]["n_triples"]
        scores, least = size_scores(reply), case["official"]["min_without_last"]
        assert scores == case["official"]["scores"], case["id"]
        if isinstance(least, dict):
            with pytest.raises(QuirkError) as stop:
                path_strength(scores)
            assert stop.value.quirk == "Q24"
            assert path_strength(scores, "website") == scores[0]
        else:
            assert path_strength(scores) == least
        found = read_sizes(reply, n)
        got = {"sizes": list(found.sizes), "scores": list(found.scores), "path_score": found.path_score}
        assert {**got, "status": found.status} == case["paper"], case["id"]


def test_factuality(cases: Cases) -> None:
    for case in cases("factuality"):
        reply, n = case["input"]["response"], case["input"]["n_triples"]
        scores = label_scores(reply)
        assert scores == case["official"]["scores"], case["id"]
        assert is_factual(scores, 1.0) == case["official"]["kept_at_threshold_1"], case["id"]
        found = read_labels(reply, n)
        assert {"labels": list(found.labels), "q": found.q, "status": found.status} == case["paper"], case["id"]


def test_transform(cases: Cases) -> None:
    for case in cases("transform"):
        x = np.array(case["input"]["x"])
        assert official.transform(x) == pytest.approx(case["official"]["d"], abs=GIVEN)
        assert transform(x) == pytest.approx(case["paper"]["d"], abs=GIVEN)


def test_greedy(cases: Cases) -> None:
    for case in cases("greedy"):
        strengths, distances = case["input"]["strengths"], np.array(case["input"]["distances"])
        found, want, released = greedy(strengths, distances), case["paper"], case["official"]
        assert list(found.order) == want["order"] == released["order"]
        assert found.gains == pytest.approx(want["gains"], abs=GIVEN)
        assert found.gains == pytest.approx(released["scores"], abs=GIVEN)
        assert found.nearest[1:] == pytest.approx(released["min_distances"][1:], abs=GIVEN)
        for name in ("0.7", "0.9", "1"):
            assert utility(found.gains, float(name)) == pytest.approx(want[name], abs=GIVEN)
            assert official.utility(found.gains, float(name)) == pytest.approx(released[name], abs=GIVEN)
        assert optimum(strengths, distances, 0.9) == pytest.approx(want["optimum_0.9"], abs=GIVEN)


def test_distance(cases: Cases, embed: Embedder) -> None:
    for case in cases("distance"):
        strings = [path_string(path) for path in case["input"]["paths"]]
        assert strings == case["official"]["strings"] == case["paper"]["strings"]
        vectors = embed(strings)
        for got, want, tolerance in (
            (cosine_distances(vectors), case["paper"]["cosine_distance"], 1e-3),
            (path_distances(vectors), case["paper"]["d"], 5e-3),
            (official.cosine_distances(vectors), case["official"]["cosine_distance"], 1e-3),
            (official.path_distances(vectors), case["official"]["d_with_unit_diagonal"], 5e-3),
        ):
            assert got == pytest.approx(np.array(want), abs=tolerance)
