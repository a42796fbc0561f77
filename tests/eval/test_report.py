"""Reports: recomputed from records alone, honest about what is missing or simulated, safe against hostile names."""

import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from eval import tables
from eval.heatmap import CELL, MARGIN, bin_width, heatmap
from eval.report import escape_markdown, write_report
from eval.run import evaluate
from inference.errors import UserError
from inference.rubric import Dimension

WriteConfig = Callable[..., Path]
WRITTEN = ("metrics.jsonl", "report.md", "report.html")
HOSTILE = "<script>alert(1)</script>|`x`"


def scripted(identifier: str = "fake", **settings: Any) -> dict[str, Any]:
    return {"id": identifier, "engine": "scripted", "model": "scripted", "method": "compact", **settings}


class Tags(HTMLParser):
    """Collects the names of all tags, and all attributes that would load something."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.loaded: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.loaded += [f"{name}={value}" for name, value in attrs if name in ("src", "href", "srcset", "data")]


def test_report_from_the_records_alone_has_the_same_bytes(write_config: WriteConfig, tmp_path: Path) -> None:
    config = write_config(judges=[scripted()])
    evaluate(config, quiet=True)
    run = tmp_path / "run"
    before = {name: (run / name).read_bytes() for name in WRITTEN}
    for name in WRITTEN:
        (run / name).unlink()
    for source in (config, tmp_path / "test.csv", tmp_path / "scores.csv"):
        source.unlink()
    write_report(run)
    assert {name: (run / name).read_bytes() for name in WRITTEN} == before


def test_hostile_judge_names_stay_text(write_config: WriteConfig, tmp_path: Path) -> None:
    config = write_config()
    scores = tmp_path / "scores.csv"
    scores.write_text(scores.read_text().replace("exact", HOSTILE, 1))
    evaluate(config, quiet=True)
    page, text = ((tmp_path / "run" / name).read_text() for name in ("report.html", "report.md"))
    assert "script" not in Tags(page).names
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "<script>" not in text.split("## Details")[0]
    row = next(line for line in text.splitlines() if "alert" in line and line.startswith("|"))
    assert len(re.findall(r"(?<!\\)\|", row)) == 10  # nine cells


def test_html_needs_nothing_from_outside(write_config: WriteConfig, tmp_path: Path) -> None:
    evaluate(write_config(), quiet=True)
    tags = Tags((tmp_path / "run" / "report.html").read_text())
    assert tags.loaded == []
    assert tags.names.isdisjoint({"script", "link", "img", "iframe", "object"})
    assert {"table", "svg", "details"} <= tags.names


def test_headline_ranks_judges_and_marks_the_best(write_config: WriteConfig, tmp_path: Path) -> None:
    report = evaluate(write_config(judges=[scripted(method="direct")]), quiet=True)
    table = report.headlines[0]
    assert [row[0].text for row in table.rows] == ["exact", "exact", "fake", "fake", "reversed", "reversed"]
    assert [row[1].text for row in table.rows[::2]] == ["recorded", "prompted", "recorded"]
    assert [cell.text for cell in table.rows[0][2:]] == [
        *("expected", "1.000", "1.000", "0.000", "1.000"),
        *("12", "100.0 %"),
    ]
    assert [cell.best for cell in table.rows[0]] == [False] * 3 + [True] * 4 + [False] * 2
    assert not any(cell.best for row in table.rows[2:] for cell in row)
    text = (tmp_path / "run" / "report.md").read_text()
    assert "Highest agreement on test: exact (recorded), r = 1.000" in text
    assert "minus each other judge" in text


def test_learned_and_prompted_judges_are_set_against_each_other(write_config: WriteConfig, tmp_path: Path) -> None:
    evaluate(write_config(judges=[scripted("small"), scripted("big", method="direct")]), quiet=True)
    assert (
        "Best learned minus best prompted judge (small − big): Δ r = " in (tmp_path / "run" / "report.md").read_text()
    )


def test_simulated_ratings_are_marked_at_each_table(write_config: WriteConfig, tmp_path: Path) -> None:
    benchmark = {"name": "aut", "test": str(tmp_path / "test.csv"), "simulated": True}
    report = evaluate(write_config(benchmark=benchmark), quiet=True)
    assert {row.simulated for row in report.rows} == {True}
    text = (tmp_path / "run" / "report.md").read_text()
    assert text.count(tables.SIMULATED) == 1 + text.count("\n|---")
    assert tables.SIMULATED in report.as_text()
    page = (tmp_path / "run" / "report.html").read_text()
    assert page.count(tables.SIMULATED) == 1 + page.count("<table")


def test_mass_off_the_scale_is_a_column_of_bias(write_config: WriteConfig, tmp_path: Path) -> None:
    evaluate(write_config(judges=[scripted()]), quiet=True)
    run = tmp_path / "run"
    lines = [json.loads(line) for line in (run / "judgements.jsonl").read_text().splitlines()]
    for number, line in enumerate(line for line in lines if line["judge"] == "fake"):
        line["scores"][0]["off_grid"] = 0.5 if number % 2 else 0.125
    (run / "judgements.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    scores = next(iter(tables.grouped(write_report(run).rows).values()))
    table = tables.bias("test", scores, 0.25)
    assert table.header[-1] == "mass off the scale"
    shown = {row[0].text: row[-1].text for row in table.rows}
    assert shown == {"fake": "0.312", "exact": "–", "reversed": "–", "human ratings": "–"}
    assert {len(row) for row in table.rows} == {len(table.header)}
    assert "mass off the scale" in (run / "report.md").read_text()


def test_a_judge_without_any_score_is_listed_with_dashes(write_config: WriteConfig, tmp_path: Path) -> None:
    config = write_config()
    lines = (tmp_path / "scores.csv").read_text().splitlines()
    emptied = [lines[0], *(line.rsplit(",", 1)[0] + "," for line in lines[1:])]
    (tmp_path / "scores.csv").write_text("\n".join(emptied) + "\n")
    table = evaluate(config, quiet=True).headlines[0]
    assert [cell.text for cell in table.rows[2]] == [
        *("reversed", "recorded", "expected"),
        *("–", "–", "–", "–", "0", "0.0 %"),
    ]
    assert "reversed scored 0.0 % of the responses" in (tmp_path / "run" / "report.html").read_text()


def test_heatmap_counts_by_hand() -> None:
    dimension = Dimension(name="d", description="d", range=(1, 3))
    human = np.array([1.0, 1.0, 1.0, 1.0, 3.0])
    judge = np.array([1.0, 1.2, 0.9, 3.0, 2.5])  # bins 1, 1, 1 (clipped), 3, 3 (ties upward)
    picture = heatmap("judge", human, judge, dimension, fewest=2)
    assert {cell.label: cell.opacity for cell in picture.cells} == {
        "human 1, judge 1: 3": 1.0,
        "human 1, judge 3: 1": round((1 / 3) ** 0.5, 3),
        "human 3, judge 3: 1": round((1 / 3) ** 0.5, 3),
    }
    mean = (1.0 + 1.2 + 0.9 + 3.0) / 4
    assert picture.means == ((MARGIN + CELL / 2, round(3 * CELL - CELL * (mean - 1 + 0.5), 2)),)
    assert [tick.label for tick in picture.ticks] == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("low", "high", "fractional", "width"), [(1, 5, True, 0.5), (1, 5, False, 1), (1, 16, True, 1), (0, 60, False, 4)]
)
def test_width_of_bins(low: int, high: int, fractional: bool, width: float) -> None:
    dimension = Dimension(name="d", description="d", range=(low, high), fractional=fractional)
    assert bin_width(dimension) == width
    assert heatmap("j", np.array([]), np.array([]), dimension).cells == ()


def test_numbers_as_people_read_them() -> None:
    assert (tables.number(-0.1234), tables.number(None), tables.signed(0.5)) == ("−0.123", "–", "+0.500")
    assert (tables.p_value(0.0009), tables.p_value(0.001), tables.p_value(1.0)) == ("< 0.001", "0.001", "1.000")
    assert (tables.percent(1.0), tables.percent(0.9999)) == ("100.0 %", "99.9 %")
    assert escape_markdown("a|b\n<i>*x*") == "a\\|b &lt;i&gt;\\*x\\*"


def broken(run: Path, how: str) -> None:
    judgements, samples, settings = run / "judgements.jsonl", run / "samples.jsonl", run / "config.yaml"
    lines = judgements.read_text().splitlines(keepends=True)
    if how == "no judgements":
        judgements.unlink()
    elif how == "empty judgements":
        judgements.write_text("")
    elif how == "damaged line":
        judgements.write_text(lines[0] + "{]\n" + "".join(lines[1:]))
    elif how == "unknown sample":
        samples.write_text("".join(samples.read_text().splitlines(keepends=True)[1:]))
    elif how == "another rubric":
        content = yaml.safe_load(settings.read_text())
        content["rubric"]["description"] = "changed"
        settings.write_text(yaml.safe_dump(content))
    elif how == "another kind":
        settings.write_text("judges: []\ninput: mine.csv\n")
    elif how == "two scores":
        twice = json.loads(lines[0])
        twice["scores"] *= 2
        judgements.write_text(json.dumps(twice) + "\n" + "".join(lines[1:]))
    elif how == "two methods":
        other = json.loads(lines[0]) | {"method": "direct"}
        judgements.write_text(json.dumps(other) + "\n" + "".join(lines[1:]))
    else:
        change_text(run, how)


def change_text(run: Path, how: str) -> None:
    """Make one line or setting of the run hold `how`."""
    judgements, samples, settings = run / "judgements.jsonl", run / "samples.jsonl", run / "config.yaml"
    spoilt = {
        "sample with NaN": (samples, '"use.originality":2.0', '"use.originality":NaN'),
        "sample with infinity": (samples, '"use.originality":2.0', '"use.originality":1e999'),
        "sample with a negative length": (samples, '"length":{"use":14}', '"length":{"use":-1}'),
        "sample with a huge length": (samples, '"length":{"use":14}', f'"length":{{"use":{10**18}}}'),
        "repeated sample": (samples, '"id":"s1"', '"id":"s0"'),
        "deep sample": (samples, '{"id":"s1"', "[" * 200_000),
        "judgement with NaN": (judgements, '"value": 2.0', '"value": NaN'),
        "judgement with infinity": (judgements, '"top": 2.0', '"top": 1e999'),
        "repeated judgement": (judgements, '"sample_id": "s1"', '"sample_id": "s0"'),
        "deep judgement": (judgements, '{"sample_id": "s1"', "[" * 200_000),
        "negative seed": (settings, "seed: 0", "seed: -1"),
        "no resamples": (settings, "resamples: 100", "resamples: 0"),
        "judges that are none": (settings, "judges: []", "judges: [1]"),
        "judges that are no list": (settings, "judges: []", "judges: {a: 1}"),
        "damaged settings": (settings, "seed: 0", "seed: [0"),
        "deep settings": (settings, "seed: 0", "seed: " + "[" * 5000),
        "impossible date": (settings, "seed: 0", "seed: 2024-99-99"),
    }
    file, before, after = spoilt[how]
    text = file.read_text()
    assert before in text
    file.write_text(text.replace(before, after, 1))


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("no judgements", "has no judgements.jsonl, so it holds no evaluation"),
        ("empty judgements", "judgements.jsonl has no finished line yet"),
        ("damaged line", "judgements.jsonl: line 2 is damaged"),
        ("unknown sample", "line 1: sample 's0' is not in samples.jsonl"),
        ("another rubric", r"line 1: was judged by rubric aut@\w+, but the run's settings hold aut@"),
        ("another kind", "was not made by `python -m eval run`"),
        ("two methods", "line 2: judge 'exact' has two methods"),
        ("sample with NaN", r"samples\.jsonl: line 2 is damaged"),
        ("sample with infinity", r"samples\.jsonl: line 2 is damaged"),
        ("sample with a negative length", r"samples\.jsonl: line 2 is damaged"),
        ("sample with a huge length", r"samples\.jsonl: line 2: the responses .* more than 200,000,000 characters"),
        ("repeated sample", r"samples\.jsonl: line 2 repeats sample 's0' of line 1; delete"),
        ("deep sample", r"samples\.jsonl: line 2 is damaged"),
        ("judgement with NaN", r"judgements\.jsonl: line 2 is damaged"),
        ("judgement with infinity", r"judgements\.jsonl: line 2 is damaged"),
        ("repeated judgement", r"judgements\.jsonl: line 2 \(judge 'exact', sample 's0', repeat 0\) repeats line 1"),
        ("two scores", r"judgements\.jsonl: line 1 \(.*\) has two scores of one dimension"),
        ("deep judgement", r"judgements\.jsonl: line 2 is damaged"),
        ("negative seed", r"config\.yaml: seed: .* greater than or equal to 0"),
        ("no resamples", r"config\.yaml: resamples: .* greater than or equal to 100"),
        ("judges that are none", r"config\.yaml: judges\.0: "),
        ("judges that are no list", r"config\.yaml: judges: "),
        ("damaged settings", r"config\.yaml: not valid YAML"),
        ("deep settings", r"config\.yaml: "),
        ("impossible date", r"config\.yaml: "),
    ],
)
def test_unusable_runs_are_refused_and_keep_their_report(
    how: str, message: str, write_config: WriteConfig, tmp_path: Path
) -> None:
    evaluate(write_config(), quiet=True)
    run = tmp_path / "run"
    before = {name: (run / name).read_bytes() for name in WRITTEN}
    broken(run, how)
    with pytest.raises(UserError, match=message):
        write_report(run)
    assert {name: (run / name).read_bytes() for name in WRITTEN} == before


def test_a_line_being_written_is_left_out(write_config: WriteConfig, tmp_path: Path) -> None:
    evaluate(write_config(), quiet=True)
    judgements = tmp_path / "run" / "judgements.jsonl"
    judgements.write_bytes(judgements.read_bytes()[:-10])
    rows = {(row.judge, row.n) for row in write_report(tmp_path / "run").rows}
    assert rows == {("exact", 12), ("reversed", 11)}
