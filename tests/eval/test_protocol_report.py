"""The protocol in reports and comparisons of runs, and how long it takes."""

import json
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import yaml
from plan_ratings import (
    RUBRIC,
    random_plan,
)

from eval.benchmarks.base import Benchmark
from eval.compare import compare_runs
from eval.compare_tables import compared
from eval.protocol import ALL, HUMAN_HUMAN, MEAN, MEAN_OF_JUDGES
from eval.report import Report, write_report
from eval.run_files import load_run, write_samples
from eval.tables import SIMULATED_BOTH
from inference.records import Judgement, Sample, Score
from inference.rubric import Rubric, load_rubric


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
