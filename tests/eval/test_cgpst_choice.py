"""A seeded choice of samples of ``cgpst``: even over the scenarios, the same whatever their order and ratings."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from cgpst_files import RUBRIC, entry, save, scenario_file

from eval.benchmarks.cgpst.benchmark import CgpstConfig, choose_evenly, load
from eval.benchmarks.cgpst.ratings import write_ratings
from eval.report import write_report
from eval.run import evaluate
from inference.errors import UserError
from inference.records import Sample

IDS = tuple(f"A{number:02}_FS{scenario}" for number in range(1, 4) for scenario in (1, 2, 3))
Make = Callable[..., CgpstConfig]


def sample(scenario: int, number: int, score: float = 1.0) -> Sample:
    name = f"FS{scenario}"
    human = {"r1": {"step2.focus": score}}
    return Sample(id=f"A{number}_{name}", scenario=name, scenario_id=name, responses={}, human=human)


SIXTY = [sample(scenario, number) for number in range(1, 21) for scenario in (3, 1, 2)]


def ids(samples: list[Sample]) -> list[str]:
    return [one.id for one in samples]


def test_half_of_three_scenarios_is_half_of_each() -> None:
    chosen = choose_evenly(SIXTY, 30, 0)
    assert Counter(one.scenario_id for one in chosen) == {"FS1": 10, "FS2": 10, "FS3": 10}
    assert chosen == [one for one in SIXTY if one in chosen]
    assert choose_evenly(SIXTY, 60, 0) == SIXTY


@pytest.mark.parametrize(("count", "shares"), [(1, (0, 0, 1)), (4, (1, 1, 2)), (31, (10, 10, 11)), (32, (10, 11, 11))])
def test_what_is_left_over_is_one_more_of_some(count: int, shares: tuple[int, ...]) -> None:
    for seed in range(5):
        found = Counter({"FS1": 0, "FS2": 0, "FS3": 0})
        found.update(one.scenario_id for one in choose_evenly(SIXTY, count, seed))
        assert tuple(sorted(found.values())) == shares
    first = {choose_evenly(SIXTY, 1, seed)[0].scenario_id for seed in range(20)}
    assert first == {"FS1", "FS2", "FS3"}


def test_a_small_scenario_gives_all_it_has() -> None:
    uneven = [sample(1, number) for number in range(2)] + [sample(2, number) for number in range(9)]
    found = Counter(one.scenario_id for one in choose_evenly(uneven, 8, 0))
    assert found == {"FS1": 2, "FS2": 6}


def test_ids_and_seed_alone_decide() -> None:
    chosen = ids(choose_evenly(SIXTY, 30, 7))
    rated = [sample(int(one.scenario_id[2]), int(one.id[1:].split("_")[0]), float(n)) for n, one in enumerate(SIXTY)]
    assert ids(choose_evenly(rated, 30, 7)) == chosen
    assert set(ids(choose_evenly(SIXTY[::-1], 30, 7))) == set(chosen)
    assert ids(choose_evenly(SIXTY, 30, 8)) != chosen
    assert set(ids(choose_evenly(SIXTY, 12, 7))) < set(chosen)


# -- in a config


@pytest.fixture
def config(tmp_path: Path) -> Make:
    """Nine answers to three scenarios; those to FS1 are for training."""
    write_ratings(tmp_path / "ratings.json", [entry(name, name[4:]) for name in IDS])
    scenario_file(tmp_path)
    sides = {side: [name for name in IDS if (name[4:] == "FS1") == (side == "train")] for side in ("train", "test")}
    save(tmp_path / "splits.json", {"scenario": sides})

    def make(**settings: Any) -> CgpstConfig:
        files = {"ratings": str(tmp_path / "ratings.json"), "scenarios": str(tmp_path / "scenarios.json")}
        return CgpstConfig(name="cgpst", **{**files, "splits": str(tmp_path / "splits.json"), **settings})

    return make


def test_the_choice_is_among_the_part(config: Make) -> None:
    found = load(config(choose=4, choose_seed=2), RUBRIC)
    assert Counter(one.scenario_id for one in found.samples) == {"FS2": 2, "FS3": 2}
    assert found.splits == {"test": frozenset(one.id for one in found.samples)}
    assert found.chosen == "4 of 6 samples, chosen with seed 2"
    assert load(config(), RUBRIC).chosen == ""


def test_scores_do_not_change_it(config: Make, tmp_path: Path) -> None:
    before = ids(list(load(config(choose=4), RUBRIC).samples))
    unlike = [replace(entry(name, name[4:]), raters=("H03", "H04")) for name in IDS]
    write_ratings(tmp_path / "ratings.json", unlike[::-1])
    assert sorted(ids(list(load(config(choose=4), RUBRIC).samples))) == sorted(before)


def test_more_than_there_are_is_refused(config: Make) -> None:
    assert len(load(config(choose=6), RUBRIC).samples) == 6
    with pytest.raises(UserError, match=r"`choose: 7` is more than the 6 answers of `part: test`; give 6 at most"):
        load(config(choose=7), RUBRIC)


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"choose": 0}, "greater than or equal to 1"), ({"choose": True}, "truth value"), ({"choose_seed": 3}, "choose")],
)
def test_settings_that_choose_nothing(settings: dict[str, Any], words: str, config: Make) -> None:
    with pytest.raises(ValueError, match=words):
        config(**settings)


def test_without_a_choice_the_settings_of_a_run_are_what_they_were(config: Make) -> None:
    assert not {"choose", "choose_seed"} & set(config().model_dump(mode="json"))
    chosen = config(choose=4, choose_seed=2)
    assert CgpstConfig.model_validate(chosen.model_dump(mode="json")) == chosen


def test_the_report_says_how_the_samples_were_chosen(config: Make, tmp_path: Path) -> None:
    content: dict[str, Any] = {
        "run": "chosen",
        "out": str(tmp_path / "run"),
        "rubric": "cgpst",
        "benchmark": config(choose=4).model_dump(),
        "judges": [{"id": "fake", "engine": "scripted", "model": "scripted", "method": "compact"}],
        "resamples": 100,
    }
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(content))
    evaluate(path, quiet=True)
    said = "4 responses (4 of 6 samples, chosen with seed 0), rubric"
    reports = [tmp_path / "run" / name for name in ("report.md", "report.html")]
    assert all(said in report.read_text() for report in reports)
    for report in reports:
        report.unlink()
    write_report(tmp_path / "run")  # from the records alone
    assert all(said in report.read_text() for report in reports)
    content["benchmark"]["choose_seed"] = 1
    path.write_text(yaml.safe_dump(content))
    with pytest.raises(UserError, match=r"changed: benchmark\.choose_seed, chosen"):
        evaluate(path, quiet=True)
