"""Agreement of evaluators with people: values derived by hand, published examples, gaps, and the command."""

import csv
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eval.cli import main
from eval.create.validation import (
    MEAN,
    Ratings,
    ValidationRow,
    alpha_interval,
    class_counts,
    class_metrics,
    krippendorff_alpha,
    validate,
)
from eval.create.validation_table import read_ratings, validation_tables
from inference.errors import UserError

NAN = float("nan")
# Four observers, twelve units: the worked example of Krippendorff 2011, section C and its continuation D and E.
PUBLISHED = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
        [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
    ],
    dtype=float,
).T


def test_alpha_of_the_published_example() -> None:
    assert krippendorff_alpha(PUBLISHED, "ordinal") == pytest.approx(0.815, abs=5e-4)
    assert krippendorff_alpha(PUBLISHED, "interval") == pytest.approx(0.849, abs=5e-4)


def test_alpha_by_hand() -> None:
    # Units (1, 1), (1, 2), (3, 3). Interval: observed (1² + 1²) = 2 over both orders; ratings 1, 1, 1, 2, 3, 3, for
    # which Σ over ordered pairs (x − y)² = 2 (6 · 25 − 11²) = 58. α = 1 − 5 · 2 / 58.
    ratings = np.array([[1, 1], [1, 2], [3, 3]], dtype=float)
    assert krippendorff_alpha(ratings, "interval") == pytest.approx(1 - 10 / 58)
    # Ordinal: ranks of 1, 2, 3 are 1.5, 3.5, 5 (counted from 0: 3/2, 3 + 1/2, 4 + 2/2); observed 2 · 2² = 8, expected
    # 2 · (3·1·2² + 3·2·3.5² + 1·2·1.5²) = 2 · (12 + 73.5 + 4.5) = 180. α = 1 − 5 · 8 / 180.
    assert krippendorff_alpha(ratings, "ordinal") == pytest.approx(1 - 40 / 180)


def test_alpha_where_it_is_undefined_or_perfect() -> None:
    assert np.isnan(krippendorff_alpha(np.array([[1.0, 1.0], [1.0, 1.0]]), "interval"))
    assert np.isnan(krippendorff_alpha(np.array([[1.0, NAN], [NAN, 2.0]]), "ordinal"))
    assert np.isnan(krippendorff_alpha(np.zeros((0, 2)), "ordinal"))
    same = np.array([[1.0, 1.0], [2.0, 2.0]])
    assert krippendorff_alpha(same, "ordinal") == krippendorff_alpha(same, "interval") == 1.0
    with pytest.raises(UserError, match="101 different ratings"):
        krippendorff_alpha(np.arange(101.0)[:, None].repeat(2, axis=1), "interval")


def test_the_interval_of_alpha_resamples_whole_queries() -> None:
    chance = np.random.default_rng(0)
    first = chance.integers(1, 6, 60).astype(float)
    ratings = np.column_stack([first, np.clip(first + chance.integers(-1, 2, 60), 1, 5)])
    queries = [str(number % 6) for number in range(60)]
    low, high = alpha_interval(ratings, queries, "ordinal", resamples=400)
    assert low < krippendorff_alpha(ratings, "ordinal") < high
    # Every row written out twice: the same queries are drawn, and α hardly knows the difference.
    twice = alpha_interval(
        np.repeat(ratings, 2, axis=0), [q for q in queries for _ in range(2)], "ordinal", resamples=400
    )
    assert twice == pytest.approx((low, high), abs=0.01)
    assert alpha_interval(ratings[:4], queries[:4], "ordinal") == pytest.approx((NAN, NAN), nan_ok=True)


def test_classes_by_hand() -> None:
    human = np.array([1, 1, 1, 0, 0, 1.0])
    judge = np.array([0.9, 0.5, 0.2, 0.1, 0.7, 0.8])
    counts = class_counts(human, judge).sum(axis=0)
    assert list(counts) == [3, 1, 1, 1]
    found = {name: float(value) for name, value in class_metrics(counts).items()}
    assert found == {
        "balanced_accuracy": pytest.approx((3 / 4 + 1 / 2) / 2),
        "precision_factual": pytest.approx(3 / 4),
        "recall_factual": pytest.approx(3 / 4),
        "f1_factual": pytest.approx(3 / 4),
        "precision_hallucinated": pytest.approx(1 / 2),
        "recall_hallucinated": pytest.approx(1 / 2),
        "f1_hallucinated": pytest.approx(1 / 2),
    }
    alone = class_metrics(np.array([2.0, 1.0, 0.0, 0.0]))
    assert np.isnan(alone["balanced_accuracy"])
    assert np.isnan(alone["recall_hallucinated"])
    assert float(alone["recall_factual"]) == pytest.approx(2 / 3)


def test_published_factuality_figures() -> None:
    """274 correct and 72 incorrect triples, recalls .77 and .94: .859 within what rounding leaves open."""
    found = class_metrics(np.array([211.0, 63.0, 4.0, 68.0]))
    assert float(found["balanced_accuracy"]) == pytest.approx(0.859, abs=2e-3)
    assert float(found["precision_hallucinated"]) == pytest.approx(0.52, abs=5e-3)
    assert float(found["f1_factual"]) == pytest.approx(0.87, abs=1e-2)


def of(rows: list[ValidationRow], **wanted: str) -> list[ValidationRow]:
    return [row for row in rows if all(getattr(row, key) == value for key, value in wanted.items())]


def ratings(raters: int = 2) -> Ratings:
    """Forty rows of eight queries: a good judge and a bad one, with gaps."""
    chance = np.random.default_rng(1)
    first = chance.integers(1, 6, 40).astype(float)
    second = np.clip(first + chance.integers(-1, 2, 40), 1, 5)
    second[3] = NAN
    good = first + chance.normal(0, 0.5, 40)
    good[5] = NAN
    people = dict(zip(("ann", "bob"), (first, second), strict=True))
    return Ratings(
        clusters=[f"q{number % 8}" for number in range(40)],
        raters={name: people[name] for name in list(people)[:raters]},
        judges={"good": good, "bad": chance.normal(3, 1, 40)},
    )


def test_every_judge_meets_every_rater_and_the_mean() -> None:
    found = validate("specificity", ratings(), resamples=300)
    assert [row.rater for row in of(found, judge="good")] == [MEAN, "ann", "bob"]
    assert [row.n for row in of(found, judge="good")] == [39, 39, 38]
    assert [row.metric for row in of(found, rater="raters")] == ["alpha_interval", "alpha_ordinal"]
    assert of(found, rater="raters")[0].n == 39
    (apart,) = of(found, judge="good − bad")
    assert apart.low is not None
    assert apart.low > 0
    assert apart.p is not None
    assert apart.p < 0.05
    (good,) = of(found, judge="good", rater="ann")
    data = ratings()
    known = np.isfinite(data.judges["good"])
    expected = np.corrcoef(data.raters["ann"][known], data.judges["good"][known])[0, 1]
    assert good.value == pytest.approx(expected)
    assert good.clusters == 8


def test_one_rater_is_the_reference_and_has_no_alpha() -> None:
    found = validate("utility", ratings(1), resamples=100)
    assert {row.rater for row in found} == {"ann"}
    assert not of(found, rater="raters")


def test_factuality_intervals_and_differences() -> None:
    chance = np.random.default_rng(2)
    truth = chance.integers(0, 2, 120).astype(float)
    right = np.where(chance.random(120) < 0.9, truth, 1 - truth)
    data = Ratings([f"q{n % 6}" for n in range(120)], {"teacher": truth}, {"right": right, "all": np.ones(120)})
    found = validate("factuality", data, resamples=300)
    (balanced,) = of(found, judge="right", metric="balanced_accuracy")
    assert balanced.value == pytest.approx(0.9, abs=0.06)
    assert balanced.low is not None
    assert balanced.low < (balanced.value or 0) < (balanced.high or 0)
    (constant,) = of(found, judge="all", metric="balanced_accuracy")
    assert constant.value == 0.5
    (none_called,) = of(found, judge="all", metric="precision_hallucinated")
    assert (none_called.value, none_called.low) == (None, None)
    (apart,) = of(found, judge="right − all")
    assert apart.value == pytest.approx((balanced.value or 0) - 0.5)
    assert apart.low is not None
    assert apart.low > 0


def test_hardly_any_rows_are_no_fault() -> None:
    nothing = Ratings(["q"], {"a": np.array([1.0]), "b": np.array([NAN])}, {"x": np.array([NAN]), "y": np.array([2.0])})
    for what in ("specificity", "factuality", "utility"):
        rows = validate(what, nothing, resamples=100)  # type: ignore[arg-type]
        assert all(row.low is None for row in rows)


# -- files


def write(path: Path, *rows: tuple[object, ...]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)
    return path


def test_scores_of_a_run_are_joined_by_id(tmp_path: Path) -> None:
    rated = write(tmp_path / "r.csv", ("id", "query", "ann", "own"), ("1", "a", "3", "2"), ("2", "b", "", "1"))
    scores = write(tmp_path / "s.csv", ("id", "x_value", "x_top"), ("2", "4.5", "5"), ("9", "1", "1"))
    found = read_ratings(rated, ["ann"], [], [scores], "query")
    assert found.clusters == ["a", "b"]
    assert list(found.judges) == ["x"]
    np.testing.assert_array_equal(found.judges["x"], [NAN, 4.5])
    np.testing.assert_array_equal(found.raters["ann"], [3, NAN])
    assert list(read_ratings(rated, ["ann"], ["own", "x_top"], [scores], "query").judges) == ["own", "x_top"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"raters": []}, "name one column or more"),
        ({"raters": ["ann", "ann"]}, "each once"),
        ({"raters": ["eve"]}, "missing column eve"),
        ({"judges": ["eve"]}, "no column eve"),
        ({"scores": []}, "no column is named"),
        ({"cluster": "topic"}, "missing column topic"),
        ({"scores": ["twice"]}, "repeats the id '1'"),
        ({"scores": ["nan"]}, "the x_value of '1' is 'nan', which is no number"),
        ({"scores": ["good", "also"]}, "both have a column x_value"),
        ({"scores": ["empty"]}, "no rows"),
    ],
)
def test_faulty_files_are_named(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    rated = write(tmp_path / "r.csv", ("id", "query", "ann"), ("1", "a", "3"))
    header = ("id", "x_value")
    files = {
        "good": write(tmp_path / "good.csv", header, ("1", "2")),
        "also": write(tmp_path / "also.csv", header, ("1", "2")),
        "twice": write(tmp_path / "twice.csv", header, ("1", "2"), ("1", "3")),
        "nan": write(tmp_path / "nan.csv", header, ("1", "nan")),
        "empty": write(tmp_path / "empty.csv", header),
    }
    given = {"raters": ["ann"], "judges": [], "scores": ["good"], "cluster": "query", **options}
    scores = [files[name] for name in given["scores"]]
    with pytest.raises(UserError, match=message):
        read_ratings(rated, given["raters"], given["judges"], scores, given["cluster"])


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [(n, f"q{n % 6}", n % 2, (n // 2) % 2, n % 2 if n % 5 else 0.4) for n in range(60)]
    rated = write(tmp_path / "r.csv", ("id", "query", "ann", "bob", "judge"), *rows)
    command = ["eval", "create", "validate", "factuality", "--ratings", str(rated), "--raters", "ann, bob"]
    command += ["--judges", "judge"]
    monkeypatch.setattr(sys, "argv", [*command, "--json"])
    with pytest.raises(SystemExit):
        main()
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {row["metric"] for row in found} >= {"balanced_accuracy", "alpha_ordinal", "f1_hallucinated"}
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit):
        main()
    assert "balanced_accuracy" in capsys.readouterr().out


@pytest.mark.parametrize("queries", [3, 6])
def test_the_table_says_what_is_resampled(queries: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The column of the queries is found by its name; fewer than five of them give no interval by query."""
    lines = [f"{row},q{row % queries},{row % 5 + 1},{(row * 7) % 5 + 1}" for row in range(24)]
    (tmp_path / "rated.csv").write_text("\n".join(["id,connection,ann,judge", *lines]) + "\n")
    monkeypatch.setenv("COLUMNS", "80")
    found = read_ratings(tmp_path / "rated.csv", ["ann"], ["judge"], [], "")
    assert len(set(found.clusters)) == queries
    shown = "\n".join(str(part) for part in validation_tables(validate("specificity", found, seed=0), 80)[:1])
    assert ("intervals by row, for fewer than 5 queries" in shown) == (queries < 5)
    assert ("intervals by query" in shown) == (queries >= 5)


def test_without_a_column_of_queries(tmp_path: Path) -> None:
    (tmp_path / "rated.csv").write_text("id,ann,judge\n1,2,3\n")
    with pytest.raises(UserError, match="has no column query, query_id, connection; name the column of the queries by"):
        read_ratings(tmp_path / "rated.csv", ["ann"], ["judge"], [], "")
