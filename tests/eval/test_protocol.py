"""The protocol of several dimensions: by hand, against naive recomputation, and where something is undefined."""

import json
import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pingouin
import pytest
import yaml
from scipy import stats
from sklearn.metrics import cohen_kappa_score

from eval.benchmarks.base import Benchmark
from eval.compare import compare_runs
from eval.compare_tables import compared
from eval.metrics import score_tables
from eval.protocol import ALL, HUMAN, HUMAN_HUMAN, MEAN, MEAN_OF_JUDGES, METRICS, Frame, Protocol, averages, protocol
from eval.report import Report, write_report
from eval.resampling import paired_difference
from eval.run_files import load_run, write_samples
from eval.significance import best_two, differences, paired, t_test
from eval.tables import SIMULATED_BOTH
from inference.records import Judgement, Sample, Score
from inference.rubric import Dimension, Rubric, Step, load_rubric

RUBRIC = Rubric(
    name="plan",
    description="d",
    steps=(
        Step(
            name="ideas",
            label="Ideas",
            task="t",
            dimensions=(
                Dimension(name="fluency", label="Fluency", description="d", range=(0, 4)),
                Dimension(name="novelty", label="Novelty", description="d", range=(0, 4)),
                Dimension(name="overall", description="d", sum_of=("fluency", "novelty"), reported=False),
            ),
        ),
        Step(
            name="plan",
            label="Plan",
            task="t",
            dimensions=(Dimension(name="clarity", label="Clarity", description="d", range=(1, 5)),),
        ),
    ),
)
KEYS = ("ideas.fluency", "ideas.novelty", "plan.clarity")


def sample(number: int, *ratings: Sequence[float | None], scenario: str = "") -> Sample:
    human = {
        f"rater{rater}": {key: score for key, score in zip(KEYS, scores, strict=True) if score is not None}
        for rater, scores in enumerate(ratings, start=1)
    }
    responses = {"ideas": "x", "plan": "x"}
    return Sample(id=f"s{number}", scenario="a long text", scenario_id=scenario, responses=responses, human=human)


def judgements(judge: str, method: str, *scores: Sequence[float | None], shift: float = 0.0) -> list[Judgement]:
    """One per sample; top = the score, value = the score + `shift`."""
    return [
        Judgement(
            sample_id=f"s{number}",
            judge=judge,
            method=method,
            rubric=f"plan@{RUBRIC.digest}",
            scores=tuple(
                Score(step=key.split(".")[0], dimension=key.split(".")[1], unscored="cut off")
                if score is None
                else Score(step=key.split(".")[0], dimension=key.split(".")[1], value=score + shift, top=score)
                for key, score in zip(KEYS, of_sample, strict=True)
            ),
        )
        for number, of_sample in enumerate(scores)
    ]


def of(samples: Sequence[Sample], judged: Sequence[Judgement], resamples: int = 100) -> Protocol:
    splits = {"test": {one.id for one in samples}}
    return protocol("run", "plan", samples, judged, RUBRIC, splits, 0, True, resamples)


Find = Callable[..., float | None]


def finder(found: Protocol) -> Find:
    def find(judge: str, step: str, dimension: str, metric: str, score: str = "top", method: str = "") -> float | None:
        (value,) = (
            row.value
            for row in found.rows
            if (row.judge, row.step, row.dimension, row.metric, row.score) == (judge, step, dimension, metric, score)
            and method in ("", row.method)
        )
        return value

    return find


# Four samples, scores on (fluency, novelty, clarity).
RATER_1 = [(0, 0, 1), (1, 2, 2), (2, 2, 4), (3, 4, 5)]
RATER_2 = [(0, 1, 1), (1, 1, 3), (2, 3, 3), (3, 3, 5)]
JUDGE = [(3, 0, 1), (2, 2, 2), (1, 2, 4), (0, 4, 5)]
FOUR = [sample(number, *ratings) for number, ratings in enumerate(zip(RATER_1, RATER_2, strict=True))]


def test_four_samples_by_hand() -> None:
    """Fluency is reversed (r = −1); novelty and clarity are those of rater 1."""
    find = finder(of(FOUR, judgements("j", "direct", *JUDGE)))
    # Both raters gave 0 1 2 3, the judge 3 2 1 0: mean squared difference 20/4, expected of independents 2 · 5/4.
    assert find("j", "ideas", "fluency", "pearson") == pytest.approx(-1)
    assert find("j", "ideas", "fluency", "qwk") == pytest.approx(1 - 5 / 2.5)
    # Novelty against rater 2: deviations (−2 0 0 2) and (−1 −1 1 1), cross 4, squares 8 and 4; equal means.
    novelty_r = (1 + 4 / math.sqrt(8 * 4)) / 2
    assert find("j", "ideas", "novelty", "pearson") == pytest.approx(novelty_r)
    novelty_qwk = (1 + (1 - (4 / 4) / ((8 + 4) / 4))) / 2
    assert find("j", "ideas", "novelty", "qwk") == pytest.approx(novelty_qwk)
    # Clarity against rater 2: (1 2 4 5) with (1 3 3 5), squares 10 and 8, cross 8.
    clarity_r = (1 + 8 / math.sqrt(10 * 8)) / 2
    clarity_qwk = (1 + (1 - (2 / 4) / (18 / 4))) / 2
    assert find("j", "plan", "clarity", "qwk") == find("j", "plan", MEAN, "qwk") == pytest.approx(clarity_qwk)
    assert find("j", "ideas", MEAN, "pearson") == pytest.approx((-1 + novelty_r) / 2)
    assert find("j", ALL, MEAN, "pearson") == pytest.approx((-1 + novelty_r + clarity_r) / 3)
    assert find("j", ALL, MEAN, "qwk") == pytest.approx((-1 + novelty_qwk + clarity_qwk) / 3)
    # The raters: 1 on fluency, and the values against rater 2 that the judge has elsewhere.
    human = (1 + 4 / math.sqrt(8 * 4) + 8 / math.sqrt(10 * 8)) / 3
    assert find(HUMAN_HUMAN, ALL, MEAN, "pearson", "value") == pytest.approx(human)


def test_order_and_what_the_rows_say() -> None:
    found = of(FOUR, judgements("j", "direct", *JUDGE))
    first = found.rows[0]
    assert (first.judge, first.score, first.rater, first.step, first.dimension) == ("j", "value", MEAN, ALL, MEAN)
    assert list(dict.fromkeys((row.step, row.dimension) for row in found.rows)) == [
        *((ALL, MEAN), ("ideas", MEAN), ("plan", MEAN)),
        *(("ideas", "fluency"), ("ideas", "novelty"), ("plan", "clarity")),
    ]
    assert list(dict.fromkeys(row.metric for row in found.rows)) == list(METRICS)
    assert [(row.judge, row.method, row.score) for row in found.rows[::18]] == [
        *(("j", "direct", "value"), ("j", "direct", "top"), (HUMAN_HUMAN, HUMAN, "value")),
    ]
    assert {(row.n, row.coverage, row.simulated) for row in found.rows} == {(4, 1.0, True)}
    assert found.notes == {"test": []}


def random_plan(count: int, scenarios: int, seed: int = 0) -> tuple[list[Sample], list[list[Judgement]]]:
    """Samples with two raters, and three judges, of whom the second is the best; some cells are missing."""
    rng = np.random.default_rng(seed)

    def noisy(truth: np.ndarray[Any, Any], noise: float, missing: float) -> list[list[float | None]]:
        drawn = np.clip(np.rint(truth + rng.normal(0, noise, truth.shape)), (0, 0, 1), (4, 4, 5))
        return [[None if rng.random() < missing else float(x) for x in row] for row in drawn]

    truth = rng.uniform((0, 0, 1), (4, 4, 5), (count, 3))
    raters = [noisy(truth, 0.5, missing) for missing in (0.0, 0.05)]
    samples = [sample(i, raters[0][i], raters[1][i], scenario=f"FS{i % scenarios}") for i in range(count)]
    judges = [("a", 1.0, 0.1), ("b", 0.6, 0.0), ("c", 1.5, 0.05)]
    return samples, [
        judgements(name, "direct" if name != "c" else "cot", *noisy(truth, noise, missing), shift=0.25)
        for name, noise, missing in judges
    ]


def naive(a: Sequence[float], b: Sequence[float], labels: range) -> tuple[float, float, float]:
    """(QWK, r, ICC(2,1)) by other libraries."""
    rounded = [[math.floor(x + 0.5) for x in column] for column in (a, b)]
    kappa = cohen_kappa_score(*rounded, labels=list(labels), weights="quadratic")
    table = pd.DataFrame({"t": list(range(len(a))) * 2, "r": [0] * len(a) + [1] * len(a), "s": [*a, *b]})
    icc = pingouin.intraclass_corr(table, targets="t", raters="r", ratings="s").set_index("Type")["ICC"]
    return float(kappa), float(stats.pearsonr(a, b).statistic), float(icc.filter(regex=r"^ICC2$|\(A,1\)").iloc[0])


def naive_means(samples: Sequence[Sample], columns: Sequence[tuple[Any, Any]]) -> np.ndarray[Any, Any]:
    """(3,): metrics averaged over pairs of columns (sample, key → score or None), then over dimensions."""
    found = []
    for key, (_, dimension) in zip(KEYS, RUBRIC.reported, strict=True):
        of_raters = []
        for first, second in columns:
            pairs = [(first(one, key), second(one, key)) for one in samples]
            a, b = zip(*[pair for pair in pairs if None not in pair], strict=True)
            of_raters.append(naive(a, b, range(dimension.range[0], dimension.range[1] + 1)))
        found.append(np.mean(of_raters, axis=0))
    return np.asarray(np.mean(found, axis=0))


def rating(rater: str) -> Callable[[Sample, str], float | None]:
    return lambda one, key: one.human[rater].get(key)


def verdict(judged: Sequence[Judgement], kind: str) -> Callable[[Sample, str], float | None]:
    scores = {(one.sample_id, score.key): getattr(score, kind) for one in judged for score in one.scores}
    return lambda one, key: scores[one.id, key]


@pytest.mark.parametrize("kind", ["value", "top"])
def test_naive_recomputation_of_random_data(kind: str) -> None:
    samples, judges = random_plan(60, 6)
    find = finder(of(samples, [one for judged in judges for one in judged]))
    expected = {}
    for judged in judges:
        columns = [(rating(rater), verdict(judged, kind)) for rater in ("rater1", "rater2")]
        expected[judged[0].judge] = naive_means(samples, columns)
        found = [find(judged[0].judge, ALL, MEAN, metric, kind) for metric in METRICS]
        assert found == pytest.approx(expected[judged[0].judge], abs=1e-9)
    mean = [find(MEAN_OF_JUDGES, ALL, MEAN, metric, kind, "direct") for metric in METRICS]
    assert mean == pytest.approx((expected["a"] + expected["b"]) / 2)
    human = [find(HUMAN_HUMAN, ALL, MEAN, metric, "value") for metric in METRICS]
    assert human == pytest.approx(naive_means(samples, [(rating("rater1"), rating("rater2"))]), abs=1e-9)


def test_only_methods_with_several_judges_are_averaged() -> None:
    samples, judges = random_plan(30, 6)
    recorded = [
        one.model_copy(update={"method": "recorded", "judge": f"r{number}"})
        for number in range(2)
        for one in judges[number]
    ]
    found = of(samples, [*judges[0], *judges[1], *judges[2], *recorded])
    assert {row.method for row in found.rows if row.judge == MEAN_OF_JUDGES} == {"direct"}


def test_n_and_coverage_are_those_of_the_dimension_with_the_fewest() -> None:
    judged = judgements("j", "direct", *JUDGE[:3], (None, 4, 5))
    found = of([*FOUR, sample(4)], judged)
    rows = {(row.step, row.dimension): (row.n, row.coverage) for row in found.rows if row.judge == "j"}
    assert rows["ideas", "fluency"] == (3, 3 / 5)
    assert rows["ideas", "novelty"] == (4, 4 / 5)
    assert rows["ideas", MEAN] == pytest.approx((3, 0.7))
    assert rows[ALL, MEAN] == pytest.approx((3, (0.6 + 0.8 + 0.8) / 3))


def test_undefined_dimensions_leave_averages_missing_and_are_named() -> None:
    constant = [(2, 0, 1), (2, 2, 2), (2, 2, 4), (2, 4, 5)]
    found = of(FOUR, judgements("j", "direct", *constant))
    find = finder(found)
    assert find("j", "ideas", "fluency", "pearson") is None
    assert find("j", "ideas", "fluency", "qwk") == pytest.approx(0)
    for step in ("ideas", ALL):
        assert find("j", step, MEAN, "pearson") is None
        assert find("j", step, MEAN, "qwk") is not None
    assert find("j", "plan", MEAN, "pearson") is not None
    (note,) = found.notes["test"]
    assert note.startswith("j, expected and top scores: r undefined for Ideas Fluency (constant scores")
    missing = [row for row in found.rows if row.value is None]
    assert {(row.low, row.high) for row in missing} == {(None, None)}


def test_a_rater_who_is_constant_is_named() -> None:
    samples = [
        sample(number, one, (2, *other[1:])) for number, (one, other) in enumerate(zip(RATER_1, RATER_2, strict=True))
    ]
    found = of(samples, judgements("j", "direct", *JUDGE))
    assert finder(found)("j", "ideas", "fluency", "pearson") is None
    assert any("r undefined for Ideas Fluency (rater2) (constant" in note for note in found.notes["test"])
    assert any(note.startswith("human–human: r undefined for Ideas Fluency (") for note in found.notes["test"])


def test_one_rater_has_no_human_line() -> None:
    samples = [sample(number, scores) for number, scores in enumerate(RATER_1)]
    found = of(samples, judgements("j", "direct", *JUDGE))
    assert {row.judge for row in found.rows} == {"j"}
    assert finder(found)("j", "ideas", "novelty", "pearson") == pytest.approx(1)


def test_one_sample_only_is_missing_everywhere() -> None:
    found = of(FOUR[:1], judgements("j", "direct", JUDGE[0]))
    assert {(row.value, row.low, row.n) for row in found.rows} == {(None, None, 1)}
    assert len(found.notes["test"]) == 2
    assert all("QWK, r, ICC(2,1) undefined for all 3 dimensions" in note for note in found.notes["test"])


def test_nobody_rated_anything() -> None:
    assert of([sample(0), sample(1)], judgements("j", "direct", *JUDGE[:2])) == Protocol([], {})


def test_intervals_are_of_whole_scenarios_drawn_alike_for_all_dimensions() -> None:
    samples, judges = random_plan(60, 6)
    rows = {
        (row.judge, row.step, row.dimension, row.metric): row
        for row in of(samples, judges[1], resamples=400).rows
        if row.score == "value"
    }
    one, every = rows["b", "plan", "clarity", "pearson"], rows["b", ALL, MEAN, "pearson"]
    assert one.low is not None
    assert one.value is not None
    assert one.high is not None
    assert one.low < one.value < one.high
    # By hand: the same draws of scenarios, the mean of all dimensions in each.
    draws = np.random.default_rng(0).multinomial(6, np.full(6, 1 / 6), size=400)
    columns = [(rating(rater), verdict(judges[1], "value")) for rater in ("rater1", "rater2")]
    means = []
    for draw in draws:
        drawn = [one for number in range(6) for one in samples[number::6] for _ in range(draw[number])]
        r = [
            stats.pearsonr(*zip(*[p for p in [(x(s, key), y(s, key)) for s in drawn] if None not in p], strict=True))[0]
            for x, y in columns
            for key in KEYS
        ]
        means.append(np.mean(r))
    assert (every.low, every.high) == pytest.approx(np.percentile(means, [2.5, 97.5]), abs=1e-9)


def test_a_judge_of_few_scenarios_has_no_interval() -> None:
    samples, judges = random_plan(60, 6)
    kept = {one.id for one in samples if one.scenario_id in ("FS0", "FS1")}
    found = of(samples, [one for one in judges[1] if one.sample_id in kept])
    rows = [row for row in found.rows if row.judge == "b"]
    assert all(row.value is not None for row in rows)
    assert {(row.low, row.high) for row in rows} == {(None, None)}


def test_averages_are_missing_where_a_part_is() -> None:
    means = averages(np.array([1.0, np.nan, 3.0]), RUBRIC.reported)
    assert {key: str(value) for key, value in means.items()} == {
        (ALL, MEAN): "nan",
        ("ideas", MEAN): "nan",
        ("plan", MEAN): "3.0",
    }


def test_printed_averages_of_the_paper(data_dir: Path) -> None:
    rubric = load_rubric("cgpst")
    published = json.loads((data_dir / "cgpst" / "rubric_facts.json").read_text())["published"]
    checked = 0
    for table in ("qwk_table2_and_8", "pcc_table12", "icc_table13"):
        for method, of_method in published[table].items():
            printed = of_method["per_dimension"]
            values = [printed[f"{step.label}/{dimension.label}"] for step, dimension in rubric.reported]
            mean = float(averages(np.array(values, dtype=float), rubric.reported)[ALL, MEAN])
            if None in values:
                assert (method, math.isnan(mean)) == ("SFT_Evidence", True)
                continue
            assert mean == pytest.approx(of_method["average"], abs=6e-5), (table, method)
            checked += 1
    assert checked == 24


# ---- the best judge against the second best -------------------------------------------------------------------------


def test_best_two_on_their_common_samples() -> None:
    samples, judges = random_plan(60, 6)
    judged = [one for of_judge in judges for one in of_judge]
    splits = {"test": {one.id for one in samples}}
    found = best_two(samples, judged, RUBRIC, splits, 0, of(samples, judged).rows, 400)
    assert [(one.score, one.judges, one.methods, one.dimensions) for one in found] == [
        ("value", ("b", "a"), ("direct", "direct"), 3),
        ("top", ("b", "a"), ("direct", "direct"), 3),
    ]
    top = found[1].paired
    b, a = (verdict(judges[number], "top") for number in (1, 0))
    per_dimension = []
    for key, (_, dimension) in zip(KEYS, RUBRIC.reported, strict=True):
        labels = range(dimension.range[0], dimension.range[1] + 1)
        values = []
        for rater in ("rater1", "rater2"):
            rows = [(rating(rater)(s, key), b(s, key), a(s, key)) for s in samples]
            human, best, second = zip(*[row for row in rows if None not in row], strict=True)
            values.append([naive(human, scores, labels)[0] for scores in (best, second)])
        per_dimension.append(np.mean(values, axis=0))
    best, second = np.array(per_dimension).T
    assert (top.a[0], top.b[0]) == pytest.approx((best.mean(), second.mean()))
    expected = stats.ttest_rel(best, second)
    assert (top.t, top.p_t) == pytest.approx((expected.statistic, expected.pvalue))
    assert top.low[0] <= found[1].difference <= top.high[0]
    assert 0 < top.p[0] <= 1
    assert top.coverage == pytest.approx(
        np.mean([sum(None not in (a(s, key), b(s, key)) for s in samples) / 60 for key in KEYS])
    )


def test_the_bootstrap_is_that_of_single_dimensions_where_there_is_one() -> None:
    samples, judges = random_plan(40, 8)
    only = (RUBRIC.reported[2],)
    samples = [one.model_copy(update={"human": {"rater1": one.human["rater1"]}}) for one in samples]
    tables: list[Any] = [
        {
            "plan.clarity": {
                one.sample_id: (one.scores[2].value, one.scores[2].top) for one in judged if one.scores[2].top
            }
        }
        for judged in (judges[0], judges[1])
    ]
    found = paired(Frame(samples, only, 3, 200), tables[0], tables[1], "top")
    used = [one for one in samples if all(one.id in table["plan.clarity"] for table in tables)]
    human, a, b = (
        np.array(column)
        for column in (
            [one.human["rater1"]["plan.clarity"] for one in used],
            *([table["plan.clarity"][one.id][1] for one in used] for table in tables),
        )
    )
    clusters = [one.scenario_id for one in used]
    expected = paired_difference(human, a, b, clusters, "qwk_integer", 3, score_range=(1, 5), resamples=200)
    assert found.a[0] - found.b[0] == pytest.approx(expected.difference)
    assert (found.low[0], found.high[0], found.p[0]) == pytest.approx((expected.low, expected.high, expected.p))
    assert math.isnan(found.t)


def test_differences_of_single_dimensions_and_steps() -> None:
    """Each is what a frame of its dimensions alone gives."""
    samples, judges = random_plan(60, 6)
    tables = [next(iter(score_tables(judged).values())) for judged in judges[:2]]
    found = differences(Frame(samples, RUBRIC.reported, 0, 200), *tables, "value")
    assert list(found) == [(ALL, MEAN), ("ideas", MEAN), ("plan", MEAN), *(tuple(key.split(".")) for key in KEYS)]
    for cell, pairs in (
        (("ideas", "novelty"), RUBRIC.reported[1:2]),
        (("plan", "clarity"), RUBRIC.reported[2:]),
        (("plan", MEAN), RUBRIC.reported[2:]),
        (("ideas", MEAN), RUBRIC.reported[:2]),
        ((ALL, MEAN), RUBRIC.reported),
    ):
        alone = paired(Frame(samples, pairs, 0, 200), *tables, "value")
        for name in ("a", "b", "low", "high", "p"):
            assert getattr(found[cell], name) == pytest.approx(getattr(alone, name)), (cell, name)
        assert found[cell].n == alone.n


def test_one_judge_or_undefined_averages_have_no_test() -> None:
    splits = {"test": {one.id for one in FOUR}}
    one = judgements("j", "direct", *JUDGE)
    unscored = judgements("k", "direct", *[(None, None, None)] * 4)
    assert best_two(FOUR, one, RUBRIC, splits, 0, of(FOUR, one).rows, 100) == []
    both = [*one, *unscored]
    assert best_two(FOUR, both, RUBRIC, splits, 0, of(FOUR, both).rows, 100) == []


@pytest.mark.parametrize("b", [[0.1, 0.2, 0.3], [0.2, 0.3, 0.4], [0.1, np.nan, 0.2]])
def test_t_is_missing_without_variation(b: list[float]) -> None:
    assert all(map(math.isnan, t_test(np.array([0.1, 0.2, 0.3]), np.array(b))))


# ---- reports ------------------------------------------------------------------------------------------------------


def written_run(
    path: Path,
    samples: Sequence[Sample],
    judged: Sequence[Judgement],
    rubric: Rubric = RUBRIC,
    resamples: int = 100,
) -> Report:
    path.mkdir()
    settings = {
        "kind": "evaluation",
        "run": path.name,
        "rubric": rubric.model_dump(mode="json", exclude_defaults=True),
        "judges": [],
        "seed": 0,
        "resamples": resamples,
    }
    (path / "config.yaml").write_text(yaml.safe_dump(settings, sort_keys=False))
    splits = {"test": frozenset(one.id for one in samples)}
    write_samples(path / "samples.jsonl", Benchmark("cgpst", tuple(samples), splits, simulated=True))
    (path / "judgements.jsonl").write_text("".join(one.model_dump_json() + "\n" for one in judged))
    return write_report(path)


def test_the_report_opens_with_the_averages(tmp_path: Path) -> None:
    samples, judges = random_plan(40, 8)
    report = written_run(tmp_path / "run", samples, [one for judged in judges for one in judged])
    (section,) = report.sections
    table = section.overall
    assert table.header == ("metric", "judge", "method", "score", "all", "Ideas", "Plan", "n", "coverage")
    lines = [(row[0].text, row[1].text, row[3].text) for row in table.rows]
    kinds = ("expected", "top")
    in_order = ("b", "a", "c", MEAN_OF_JUDGES)
    # A quarter of a point more is rounded away in QWK, and nothing to r.
    for metric in ("QWK", "r"):
        same = [(metric, judge, "expected = top") for judge in in_order]
        assert [line for line in lines if line[0] == metric] == [*same, (metric, HUMAN_HUMAN, "")]
    assert lines[10:] == [
        *(("ICC(2,1)", judge, kind) for judge in in_order for kind in kinds),
        ("ICC(2,1)", HUMAN_HUMAN, ""),
    ]
    assert table.rows[0][2].text == "prompted, direct"
    first = next(row for row in report.rows if (row.judge, row.step, row.metric) == ("b", ALL, "qwk"))
    assert table.rows[0][4].text == f"{first.value:.3f}"
    assert table.rows[0][4].interval
    assert {row[1].text for row in table.rows if row[4].best} == {"b"}
    assert section.tests[0].startswith("Expected and top scores: best b, QWK 0.")
    assert "paired t-test over 3 dimensions" in section.tests[0]
    assert len(section.tests) == 1  # a quarter of a point is rounded away
    assert [part.title for part in section.dimensions] == [
        *(f"test: {metric}, expected = top scores" for metric in ("QWK", "r")),
        *(f"test: ICC(2,1), {kind} scores" for kind in kinds),
    ]
    assert "paired bootstrap over whole scenarios p " in section.tests[0]
    assert report.as_text().endswith("\n\n* best judge of its column; by dimension, of its line")
    assert [row[0].text for row in section.dimensions[0].rows] == ["Ideas Fluency", "Ideas Novelty", "Plan Clarity"]
    differences = [row for row in report.rows if row.metric.startswith("qwk_difference")]
    assert {(row.judge, row.method) for row in differences} == {("b − a", "direct − direct")}
    assert len(differences) == 8


def test_a_judge_alone_is_not_the_best_and_equal_ones_all_are(tmp_path: Path) -> None:
    samples, judges = random_plan(40, 8)
    alone = written_run(tmp_path / "alone", samples, judges[0])
    twins = [*judges[0], *(one.model_copy(update={"judge": "twin"}) for one in judges[0])]
    equal = written_run(tmp_path / "equal", samples, twins)
    for report, stars in ((alone, False), (equal, True)):
        (section,) = report.sections
        best = {
            cell.best
            for table in (section.overall, *section.dimensions)
            for row in table.rows
            for cell in row
            if cell.number and cell.text not in ("40", "100.0 %")
        }
        assert ("*" in report.as_text()) == stars
        assert (True in best) == stars
    dimensions = equal.sections[0].dimensions[0]
    assert [[cell.best for cell in row] for row in dimensions.rows] == [[False, True, True, False, False]] * 3


def test_few_scenarios_are_resampled_by_response_and_the_test_says_so(tmp_path: Path) -> None:
    samples, judges = random_plan(40, 3)
    report = written_run(tmp_path / "run", samples, [*judges[0], *judges[1]])
    assert "paired bootstrap over single responses p " in report.sections[0].tests[0]
    text, page = ((tmp_path / "run" / name).read_text() for name in ("report.md", "report.html"))
    assert "over single responses, as there are only 3 different values of scenario" in text
    for form in (text, page):
        opening = form[form.index("Averages over dimensions") : form.index("metric", form.index("resamples, seed"))]
        assert opening.count("QWK: quadratic weighted kappa") == opening.count("ICC(2,1): two-way") == 1


def test_every_form_of_the_report_marks_simulated_data(tmp_path: Path) -> None:
    samples, judges = random_plan(40, 8)
    report = written_run(tmp_path / "run", samples, judges[0])
    text, page = ((tmp_path / "run" / name).read_text() for name in ("report.md", "report.html"))
    assert text.count(SIMULATED_BOTH) == 1 + text.count("\n|---")
    assert page.count(SIMULATED_BOTH) == 1 + page.count("<table")
    assert SIMULATED_BOTH in report.as_text()
    assert "human–human" in report.as_text()
    assert "`metrics.jsonl`" in text
    assert "## Differences" not in text
    assert page.index("Averages over dimensions") < page.index("Single dimensions and raters") < page.index("Bias")
    assert "rounded to whole points" in text
    assert "whole scenarios (8 of them)" in text


def test_two_runs_are_compared_on_the_averages_first(tmp_path: Path) -> None:
    samples, judges = random_plan(40, 8)
    for name, judged in (("one", judges[0]), ("two", judges[1])):
        written_run(tmp_path / name, samples, judged)
    found = compare_runs(load_run(tmp_path / "one"), load_run(tmp_path / "two"), ("a", "b"))
    first = found.rows[0]
    assert (first.step, first.dimension, first.rater, first.metric) == (ALL, MEAN, MEAN, "qwk")
    assert first.difference is not None
    assert first.difference < 0
    overall, by_dimension = compared(found)
    assert overall.title == "test: a (one) − b (two); mean over dimensions and raters"
    assert [row[0].text for row in overall.rows] == ["QWK", "r", "ICC(2,1)", "ICC(2,1)"]
    assert [row[1].text for row in overall.rows] == ["expected = top", "expected = top", "expected", "top"]
    assert by_dimension.title == "test: a (one) − b (two); QWK, expected = top scores"
    names = ["all", "Ideas", "Plan", "Ideas Fluency", "Ideas Novelty", "Plan Clarity"]
    assert [row[0].text for row in by_dimension.rows] == names
    assert by_dimension.rows[0][1:] == overall.rows[0][2:]
    # All four tables by dimension; then four dimensions, the sum among them, for two raters.
    assert len(compared(found, everything=True)) == 1 + 4 + 4 * 2
    assert {row.metric for row in found.rows if row.rater == "rater1"} == {"pearson", "qwk_integer", "rmse", "mae"}


def test_the_real_sample_has_one_answer_and_nothing_is_defined(data_dir: Path, tmp_path: Path) -> None:
    entry = json.loads((data_dir / "expected.json").read_text())["cgpst_sample"]
    rubric = load_rubric("cgpst")
    names = {f"{step.label}/{d.label}": f"{step.name}.{d.name}" for step, d in rubric.scored}
    human = {
        f"rater{rater + 1}": {names[key]: float(pair[rater]) for key, pair in entry["dimensions_23"].items()}
        for rater in range(2)
    }
    for ratings in human.values():
        parts = ("condition_phrase", "stem_kvp", "purpose", "fs_parameters")
        ratings["step2.integrity"] = sum(ratings[f"step2.{part}"] for part in parts)
    one = Sample(id=entry["answer"], scenario="x", scenario_id="FS10", responses={}, human=human)
    scores = tuple(
        Score(step=s.name, dimension=d.name, value=human["rater1"].get(f"{s.name}.{d.name}", 1.0), top=1.0)
        for s, d in rubric.scored
    )
    judged = [Judgement(sample_id=one.id, judge="j", method="direct", rubric=f"cgpst@{rubric.digest}", scores=scores)]
    report = written_run(tmp_path / "run", [one], judged, rubric)
    found = [row for row in report.rows if row.rater == MEAN]
    assert {row.value for row in found} == {None}
    assert {row.n for row in found} == {1}
    assert len(report.sections[0].notes) == 2
    assert all("undefined for all 20 dimensions" in note for note in report.sections[0].notes)


def test_two_hundred_answers_and_four_judges_take_seconds(tmp_path: Path) -> None:
    rubric, rng = load_rubric("cgpst"), np.random.default_rng(0)

    def scores(whole: bool) -> tuple[Score, ...]:
        drawn = [(step, dimension, rng.uniform(*dimension.range)) for step, dimension in rubric.scored]
        return tuple(
            Score(step=step.name, dimension=dimension.name, value=float(round(x)) if whole else x, top=float(round(x)))
            for step, dimension, x in drawn
        )

    def rated(number: int) -> Sample:
        human = {f"rater{rater}": {one.key: one.value or 0.0 for one in scores(whole=True)} for rater in (1, 2)}
        return Sample(id=f"s{number}", scenario="x", scenario_id=f"FS{number % 10}", responses={}, human=human)

    samples = [rated(number) for number in range(200)]
    judged = [
        Judgement(
            sample_id=one.id,
            judge=f"j{judge}",
            method="direct",
            rubric=f"cgpst@{rubric.digest}",
            scores=scores(whole=False),
        )
        for judge in range(4)
        for one in samples
    ]
    start = time.process_time()
    written_run(tmp_path / "run", samples, judged, rubric, resamples=2000)
    assert time.process_time() - start < 10
