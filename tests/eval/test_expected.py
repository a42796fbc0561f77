"""The published judges' metrics equal the reference values of ``expected.json``."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eval.agreement import agreement, pearson, spearman
from eval.benchmarks.aut import AutConfig, load
from eval.benchmarks.base import Benchmark
from eval.metrics import KINDS, human_scores, metric_rows, rated, score_tables
from eval.recorded import read_recorded
from eval.rows import MetricRow
from inference.errors import UserError
from inference.records import Judgement
from inference.rubric import load_rubric

DATA = os.environ.get("CREAJUDGE_DATA")
pytestmark = pytest.mark.skipif(not DATA, reason="CREAJUDGE_DATA names no folder with the AUT data")
AUT = Path(DATA or ".") / "aut"
RUBRIC = load_rubric(Path(__file__).parents[2] / "configs/rubrics/aut.yaml")
KEY = "use.originality"
TOLERANCE = 1e-4
JUDGES = ["gpt-4o", "gpt-4o-mini", "ocsai-chatgpt", "ocsai-babbage2", "ocsai-davinci2"]
# Not metrics of ours: the interval by formula, and what needs confidences. The notebook's rounding has its own test.
OTHER = {"n_missing", "pearson_ci95_fisher", "published_notebook_rounding_1dp", "drop_least_confident_20pct"}
NESTED = {
    "within_object": {"mean_pearson": "within_object_mean_pearson", "min_pearson": "within_object_min_pearson"},
    "length_bias": {"pearson_length_pred": "length_pearson", "spearman_length_pred": "length_spearman"},
}
Loaded = tuple[Benchmark, list[Judgement]]
Find = Callable[..., dict[str, MetricRow]]


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    return json.loads((AUT.parent / "expected.json").read_text())["aut"]


@pytest.fixture(scope="module")
def ocsai1() -> Loaded:
    benchmark = load(AutConfig(test=str(AUT / "ocsai1_test.csv"), overlap=str(AUT / "overlap.csv")), RUBRIC)
    return benchmark, read_recorded(AUT / "peers_ocsai1_test.csv", benchmark.samples, RUBRIC).judgements


def finder(loaded: Loaded, resamples: int = 10) -> Find:
    benchmark, judgements = loaded
    rows = metric_rows("r", "aut", benchmark.samples, judgements, RUBRIC, benchmark.splits, 0, False, resamples)
    return lambda **wanted: {
        row.metric: row for row in rows if all(getattr(row, key) == value for key, value in wanted.items())
    }


@pytest.fixture(scope="module")
def find(ocsai1: Loaded) -> Find:
    return finder(ocsai1)


def check(reference: dict[str, Any], found: dict[str, MetricRow]) -> int:
    """Compare every plain number of `reference`; returns how many there were."""
    names = [name for name, value in reference.items() if name not in OTHER | {"n"} and not isinstance(value, dict)]
    assert {name: found[name].value for name in names} == pytest.approx(
        {name: reference[name] for name in names}, abs=TOLERANCE
    )
    assert {row.n for row in found.values()} == {reference["n"]}
    return len(names)


@pytest.mark.parametrize("kind", ["top", "weighted"])
@pytest.mark.parametrize("judge", JUDGES)
def test_published_judges(judge: str, kind: str, expected: dict[str, Any], find: Find) -> None:
    reference = expected["ocsai1_test"]["judges"][judge][kind]
    score = "value" if kind == "weighted" else "top"
    found = find(split="test", judge=judge, score=score)
    assert check(reference, found) == 16
    assert check(reference["clean_subset"], find(split="test_clean", judge=judge, score=score)) == 5
    for part, names in NESTED.items():
        for name, metric in names.items():
            assert found[metric].value == pytest.approx(reference[part][name], abs=TOLERANCE), metric
    assert {row.coverage for row in found.values()} == {1 - reference["n_missing"] / reference["n"]}
    assert set(reference) - set(found) - OTHER - set(NESTED) == {"n", "clean_subset"}  # nothing was passed over


def test_no_judge_is_forgotten(expected: dict[str, Any]) -> None:
    assert sorted(expected["ocsai1_test"]["judges"]) == sorted(JUDGES)


@pytest.mark.parametrize("kind", ["top", "weighted"])
@pytest.mark.parametrize("judge", JUDGES)
def test_notebook_rounding(judge: str, kind: str, expected: dict[str, Any], ocsai1: Loaded) -> None:
    benchmark, judgements = ocsai1
    table = score_tables(judgements)[judge, "recorded"]
    human = human_scores(benchmark.samples, "human", KEY)
    column = KINDS.index("value" if kind == "weighted" else "top")
    rounded = np.round([table[KEY][sample.id][column] for sample in benchmark.samples], 1)
    found = agreement(human, rounded, (1, 5))
    printed = expected["ocsai1_test"]["judges"][judge][kind]["published_notebook_rounding_1dp"]
    assert found["pearson"] == pytest.approx(printed["pearson"], abs=6e-4)
    assert found["rmse"] == pytest.approx(printed["rmse"], abs=TOLERANCE)


def test_ensemble(expected: dict[str, Any], ocsai1: Loaded) -> None:
    benchmark, judgements = ocsai1
    tables = score_tables(judgements)
    pair = [tables[judge, "recorded"] for judge in ("ocsai-chatgpt", "ocsai-davinci2")]
    rows = rated(benchmark.samples, "human", KEY, *pair)
    judge = np.mean([[table[KEY][sample.id][0] for sample in rows] for table in pair], axis=0)
    found = agreement(human_scores(rows, "human", KEY), judge, (1, 5))
    reference = expected["ocsai1_test"]["ensemble_chatgpt_davinci2_weighted"]
    names = [name for name in reference if name in found]
    assert len(names) == 16
    assert {name: found[name] for name in names} == pytest.approx({n: reference[n] for n in names}, abs=TOLERANCE)


def test_target_and_length(expected: dict[str, Any], ocsai1: Loaded) -> None:
    samples = ocsai1[0].samples
    human = human_scores(samples, "human", KEY)
    length = np.array([len(sample.responses["use"]) for sample in samples], dtype=float)
    reference = expected["ocsai1_test"]
    assert human.mean() == pytest.approx(reference["target_mean"], abs=TOLERANCE)
    assert pearson(length, human) == pytest.approx(reference["length_vs_target"]["pearson"], abs=TOLERANCE)
    assert spearman(length, human) == pytest.approx(reference["length_vs_target"]["spearman"], abs=TOLERANCE)
    constant = reference["floors"]["predict_train_mean"]
    assert agreement(human, np.full(len(human), constant["value"]), (1, 5))["rmse"] == pytest.approx(
        constant["rmse"], abs=TOLERANCE
    )


@pytest.fixture(scope="module")
def byprompt() -> Benchmark:
    return load(AutConfig(test=str(AUT / "byprompt_test.csv")), RUBRIC)


def test_unseen_objects(expected: dict[str, Any], byprompt: Benchmark) -> None:
    judges = ["ft-ada", "ft-babbage"]
    find = finder(
        (byprompt, read_recorded(AUT / "peers_byprompt_test.csv", byprompt.samples, RUBRIC, judges).judgements)
    )
    for judge in judges:
        reference = expected["byprompt_test"]["judges"][judge]
        for score in KINDS:
            found = find(split="test", judge=judge, score=score)
            assert check(reference, found) == 16
            for name, metric in NESTED["within_object"].items():
                assert found[metric].value == pytest.approx(reference["within_object"][name], abs=TOLERANCE)


def test_semantic_distance_is_on_another_scale(byprompt: Benchmark) -> None:
    with pytest.raises(UserError, match="scores of ocs are off the scale 1 to 5"):
        read_recorded(AUT / "peers_byprompt_test.csv", byprompt.samples, RUBRIC)


def test_the_whole_table_with_intervals_is_quick(ocsai1: Loaded) -> None:
    start = time.process_time()
    find = finder(ocsai1, resamples=2000)
    assert time.process_time() - start < 15
    r = find(split="test", judge="ocsai-chatgpt", score="value")["pearson"]
    assert r.low is not None
    assert r.high is not None
    assert r.low < 0.82 < r.high
