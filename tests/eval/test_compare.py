"""Comparing judges of two runs: differences by hand, common samples, and what cannot be compared."""

from collections.abc import Callable
from pathlib import Path

import pytest

from eval.compare import Comparison, DifferenceRow, compare_runs
from eval.run import evaluate
from eval.run_files import load_run
from inference.errors import UserError

WriteConfig = Callable[..., Path]


def compared(first: Path, second: Path, judges: tuple[str, str] | None = None) -> Comparison:
    return compare_runs(load_run(first), load_run(second), judges)


def by_metric(found: Comparison, score: str = "value") -> dict[str, DifferenceRow]:
    return {row.metric: row for row in found.rows if row.score == score}


@pytest.fixture
def first(write_config: WriteConfig, tmp_path: Path) -> Path:
    evaluate(write_config(), quiet=True)
    return tmp_path / "run"


def second_run(
    write_config: WriteConfig, tmp_path: Path, change: Callable[[Path], None], limit: int | None = None
) -> Path:
    """A second run, `change` applied to the directory of its files before."""
    config = write_config("second.yaml", run="second")
    change(tmp_path)
    evaluate(config, out=tmp_path / "second", limit=limit, quiet=True)
    return tmp_path / "second"


def test_two_judges_of_one_run_by_hand(first: Path) -> None:
    rows = by_metric(compared(first, first, ("exact", "reversed")))
    assert list(rows) == ["pearson", "qwk_half_point", "rmse", "mae"]
    assert (rows["pearson"].a, rows["pearson"].b) == (pytest.approx(1), pytest.approx(-1))
    assert rows["pearson"].difference == pytest.approx(2)
    assert rows["mae"].difference == pytest.approx(-26 / 12)  # |judge − human| = |6 − 2·human| sums to 26
    assert rows["rmse"].difference == pytest.approx(-((80 / 12) ** 0.5))  # and its squares to 80
    assert rows["mae"].low is not None
    assert rows["mae"].high is not None
    assert rows["mae"].low <= -26 / 12 <= rows["mae"].high < 0
    assert rows["mae"].p == pytest.approx(2 / 101)  # no resample of 100 on the other side
    assert {row.n for row in rows.values()} == {12}


def test_swapping_the_runs_changes_the_signs(first: Path) -> None:
    forth, back = (by_metric(compared(first, first, pair)) for pair in (("exact", "reversed"), ("reversed", "exact")))
    for metric, row in forth.items():
        assert row.difference is not None
        assert back[metric].difference == pytest.approx(-row.difference)
        assert back[metric].p == row.p


def test_judges_of_the_same_name_on_common_samples(first: Path, write_config: WriteConfig, tmp_path: Path) -> None:
    def off_by_one(folder: Path) -> None:
        # exact = rating + 0.5 for s0 … s3 of the second run, which has the first eight samples only
        lines = (folder / "scores.csv").read_text().splitlines()
        parts = [line.split(",") for line in lines]
        for cells in parts[1:5]:
            cells[1] = str(float(cells[1]) + 0.5)
        (folder / "scores.csv").write_text("\n".join(",".join(cells) for cells in parts) + "\n")

    second = second_run(write_config, tmp_path, off_by_one, limit=8)
    found = compared(first, second)
    assert [(row.judge_a, row.judge_b) for row in found.rows[::8]] == [("exact", "exact"), ("reversed", "reversed")]
    rows = {row.metric: row for row in found.rows if row.judge_a == "exact" and row.score == "top"}
    assert {row.n for row in rows.values()} == {8}
    assert rows["mae"].difference == pytest.approx(-4 * 0.5 / 8)
    unchanged = [row for row in found.rows if row.judge_a == "reversed"]
    assert {(row.difference, row.p) for row in unchanged} == {(0.0, 1.0)}
    assert found.notes == ["8 samples are in both runs (12 in the first, 8 in the second)"]


def test_ratings_that_differ_are_reported(first: Path, write_config: WriteConfig, tmp_path: Path) -> None:
    def rerate(folder: Path) -> None:
        text = (folder / "test.csv").read_text()
        (folder / "test.csv").write_text(text.replace("xxx,4.0", "xxx,3.0"))

    second = second_run(write_config, tmp_path, rerate)
    found = compared(first, second)
    assert found.notes[1] == "the human ratings of 1 common samples differ between the runs; the first run's are used"
    assert {row.difference for row in found.rows} == {0.0}


def test_runs_without_common_samples_are_refused(first: Path, write_config: WriteConfig, tmp_path: Path) -> None:
    def rename(folder: Path) -> None:
        for name in ("test.csv", "scores.csv"):
            (folder / name).write_text((folder / name).read_text().replace("\ns", "\nother"))

    second = second_run(write_config, tmp_path, rename)
    with pytest.raises(UserError, match="no sample id is in both"):
        compared(first, second)


def test_judges_that_are_not_there_are_refused(first: Path, write_config: WriteConfig, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"run: has no judge 'best'; it has exact, reversed"):
        compared(first, first, ("exact", "best"))

    def rename(folder: Path) -> None:
        (folder / "scores.csv").write_text((folder / "scores.csv").read_text().replace("exact,reversed", "a,b"))

    second = second_run(write_config, tmp_path, rename)
    with pytest.raises(UserError, match=r"no judge in common .*exact, reversed.*a, b.*--judges A B"):
        compared(first, second)
    assert by_metric(compared(first, second, ("exact", "a")))["mae"].difference == 0


def test_judges_that_scored_different_samples_are_refused(write_config: WriteConfig, tmp_path: Path) -> None:
    def emptied(folder: Path, kept: range) -> None:
        lines = (folder / "scores.csv").read_text().splitlines()
        shown = [line if i in kept else f"s{i},," for i, line in enumerate(lines[1:])]
        (folder / "scores.csv").write_text("\n".join([lines[0], *shown]) + "\n")

    second = second_run(write_config, tmp_path, lambda folder: emptied(folder, range(6)))
    config = write_config("third.yaml")
    emptied(tmp_path, range(6, 12))
    evaluate(config, out=tmp_path / "third", quiet=True)
    with pytest.raises(UserError, match="no sample was scored by both judges"):
        compared(second, tmp_path / "third")
