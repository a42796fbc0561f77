"""RESULTS.md holds what the committed scores give: every table below a ``table:`` comment is computed again."""

import re
from pathlib import Path

import pytest

from eval.benchmarks.simulation.files import write_simulation
from eval.create.triple_files import write_triples
from eval.run import evaluate

ROOT = Path(__file__).parents[2]
TABLE = re.compile(r"<!-- table: (?P<config>\S+) (?P<split>\S+) -->\n\n?(?P<lines>(?:\|.*\n)+)")


def tables(page: str) -> list[tuple[str, str, list[str]]]:
    """(config, split, lines) of each marked table of a Markdown page."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return [(found["config"], found["split"], found["lines"].splitlines()) for found in TABLE.finditer(text)]


def of_split(report: str, split: str) -> list[str]:
    """Lines of the headline table of a split in a report."""
    section = report.split("## Differences")[0]
    found = re.search(rf"\*\*{re.escape(split)}\*\*[^\n]*\n\n(?:[^|\n].*\n\n)?((?:\|.*\n)+)", section)
    assert found, f"the report has no table of {split}"
    return found[1].splitlines()


@pytest.mark.parametrize("config", sorted({config for config, _, _ in tables("RESULTS.md")}))
def test_tables_are_recomputed_from_the_committed_scores(
    config: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("configs", "eval"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    if "simulated" in config:
        write_simulation("runs/simulated_cgpst", 0)
    else:
        data = request.getfixturevalue("data_dir")
        if "create" in config:
            files = (data / "create" / name for name in ("evaluator_replies.jsonl", "queries.jsonl", "answers.jsonl"))
            write_triples(*files, Path("runs/create_triples"), test_share=0.3, validation_share=0.15, seed=0)
    evaluate(config, out=tmp_path / "run", quiet=True)
    report = (tmp_path / "run" / "report.md").read_text(encoding="utf-8")
    for _, split, lines in (entry for entry in tables("RESULTS.md") if entry[0] == config):
        assert lines == of_split(report, split), f"RESULTS.md, {config}, {split}"


def test_the_readme_shows_figures_of_the_results() -> None:
    """Each number of the README's table stands in the RESULTS.md line of the same judge (its expected score)."""
    results: dict[str, str] = {}
    for line in (ROOT / "RESULTS.md").read_text(encoding="utf-8").splitlines():
        if "| expected |" in line:
            results.setdefault(line.split("|")[1].strip(), line)
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if re.match(r"\| (\*\*)?`", line) and re.search(r"\.\d{3}", line)]
    assert len(rows) == 7
    for row in rows:
        judge = row.split("`")[1]
        numbers = re.findall(r"(−?)(\.\d{3})\b", row)
        assert len(numbers) == 3
        for sign, digits in numbers:
            assert f"{sign}0{digits}" in results[judge], f"{judge}: {sign}{digits}"
