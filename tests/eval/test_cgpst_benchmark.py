"""The benchmark ``cgpst`` in an evaluation: splits, refusals, and a whole run with a scripted judge."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from cgpst_files import RUBRIC, SCENARIOS, entry, plain, save, scenario_file

from eval.benchmarks.cgpst.benchmark import CgpstConfig, load
from eval.benchmarks.cgpst.ratings import write_ratings
from eval.benchmarks.cgpst.scenarios import Scenario, scenario_subject, write_scenarios
from eval.run import EvalConfig, evaluate
from inference.config import load_config
from inference.errors import UserError

IDS = ("A01_FS1", "A02_FS1", "A01_FS2", "A02_FS2", "A01_FS3", "A02_FS3")
SPLITS = {
    "scenario": {"train": IDS[:4], "test": IDS[4:]},
    "sample": {"train": IDS[::2], "test": IDS[1::2]},
}
Make = Callable[..., CgpstConfig]


@pytest.fixture
def config(tmp_path: Path) -> Make:
    """Writes six answers to three scenarios and their splits; settings are changed as given."""
    write_ratings(tmp_path / "ratings.json", [entry(name, name[4:]) for name in IDS])
    scenario_file(tmp_path)
    save(tmp_path / "splits.json", SPLITS)

    def make(**settings: Any) -> CgpstConfig:
        files = {"ratings": str(tmp_path / "ratings.json"), "scenarios": str(tmp_path / "scenarios.json")}
        return CgpstConfig(name="cgpst", **{**files, "splits": str(tmp_path / "splits.json"), **settings})

    return make


@pytest.mark.parametrize(
    ("settings", "name", "ids"),
    [
        ({}, "test", IDS[4:]),
        ({"part": "train"}, "train", IDS[:4]),
        ({"part": "all"}, "all", IDS),
        ({"split": "sample"}, "test", IDS[1::2]),
        ({"split": "sample", "part": "train"}, "train", IDS[::2]),
        ({"splits": None}, "test", IDS),
        ({"splits": None, "part": "all"}, "all", IDS),
    ],
)
def test_parts(settings: dict[str, Any], name: str, ids: tuple[str, ...], config: Make) -> None:
    found = load(config(simulated=True, **settings), RUBRIC)
    assert [sample.id for sample in found.samples] == list(ids)
    assert found.splits == {name: frozenset(ids)}
    assert (found.name, found.simulated) == ("cgpst", True)
    assert {sample.scenario_id for sample in found.samples} == {one[4:] for one in ids}


@pytest.mark.parametrize("setting", [None, True, False])
@pytest.mark.parametrize(
    ("marked", "raters", "simulated"),
    [
        ({}, ("H01", "H02"), {None: False, True: True, False: False}),
        ({}, ("S1", "S2"), {None: True, True: True, False: False}),
        ({"simulated": True}, ("H01", "H02"), {None: True, True: True, False: True}),
        ({"simulated": "yes"}, ("H01", "S1"), {None: False, True: True, False: False}),
    ],
)
def test_simulated_data_is_known_as_such(
    marked: dict[str, Any],
    raters: tuple[str, str],
    simulated: dict[bool | None, bool],
    setting: bool | None,
    config: Make,
    tmp_path: Path,
) -> None:
    write_scenarios(
        tmp_path / "scenarios.json", {name: replace(one, further=marked) for name, one in SCENARIOS.items()}
    )
    write_ratings(tmp_path / "ratings.json", [replace(entry(name, name[4:]), raters=raters) for name in IDS])
    assert load(config(simulated=setting), RUBRIC).simulated is simulated[setting]


def test_scenarios_without_answers_mark_nothing(config: Make, tmp_path: Path) -> None:
    other = Scenario("Theme", "Text", {"simulated": True})
    write_scenarios(tmp_path / "scenarios.json", {**SCENARIOS, "FS9": other})
    assert not load(config(), RUBRIC).simulated


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({}, "has no split scenario"),
        ({"scenario": {"train": []}}, 'scenario: needs {"train"'),
        ({"scenario": {"train": [1], "test": []}}, r"scenario\.train: needs a list of answer ids"),
        ({"scenario": {"train": IDS[:2], "test": IDS[:1]}}, "train and test share A01_FS1"),
        ({"scenario": {"train": [], "test": ["A09_FS1"]}}, "names answers that .* does not have: A09_FS1"),
        ({"scenario": {"train": IDS[:1], "test": IDS[1:]}}, "scenario: FS1 is on both sides"),
        ({"scenario": {"train": IDS, "test": []}}, "no answers for `part: test`"),
    ],
)
def test_faulty_splits(content: dict[str, Any], message: str, config: Make, tmp_path: Path) -> None:
    made = config()
    save(tmp_path / "splits.json", content)
    with pytest.raises(UserError, match=message):
        load(made, RUBRIC)


def test_training_part_needs_splits(config: Make) -> None:
    with pytest.raises(UserError, match="`part: train` needs `splits`"):
        load(config(splits=None, part="train"), RUBRIC)


def eval_config(tmp_path: Path, benchmark: dict[str, Any]) -> Path:
    content = {
        "run": "small",
        "out": str(tmp_path / "run"),
        "rubric": "cgpst",
        "benchmark": benchmark,
        "judges": [{"id": "fake", "engine": "scripted", "model": "scripted", "method": "compact"}],
        "resamples": 100,
    }
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


def test_a_whole_run(config: Make, tmp_path: Path) -> None:
    report = evaluate(eval_config(tmp_path, config(simulated=True).model_dump()), quiet=True)
    assert {(row.benchmark, row.split, row.simulated) for row in report.rows} == {("cgpst", "test", True)}
    assert {row.rater for row in report.rows if row.step == "step1"} >= {"rater1", "rater2"}
    settings = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())
    assert set(settings["inputs_sha256"]) == {"ratings", "scenarios", "splits"}
    assert settings["benchmark"]["ratings"].endswith("ratings.json")


def test_changed_ratings_are_another_run(config: Make, tmp_path: Path) -> None:
    path = eval_config(tmp_path, config().model_dump())
    evaluate(path, quiet=True)
    content = plain(tmp_path, *[entry(name, name[4:]) for name in IDS])
    content[5][1][0] = "H09"
    save(tmp_path / "ratings.json", content)
    with pytest.raises(UserError, match=r"changed: inputs_sha256\.ratings"):
        evaluate(path, quiet=True)


@pytest.mark.parametrize(
    ("benchmark", "message"),
    [
        ({"name": "poems"}, "line 1: benchmark: name: 'poems' is no benchmark; those are aut, cgpst"),
        ({"name": ["cgpst"]}, "is no benchmark"),
        ({"name": "cgpst", "scenarios": "s", "rating": "r"}, r"line \d: benchmark\.ratings: Field required"),
        ({"name": "cgpst", "scenarios": "s", "ratings": "r", "part": "dev"}, r"line 3: benchmark\.part: "),
        ({"tests": "x"}, r"benchmark\.tests: unknown key"),
    ],
)
def test_faults_of_the_config_have_their_line(benchmark: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=message):
        load_config(eval_config(tmp_path, benchmark), EvalConfig)


def test_aut_stays_the_default(tmp_path: Path) -> None:
    found = load_config(eval_config(tmp_path, {"test": "x.csv"}), EvalConfig)
    assert found.benchmark.name == "aut"


def test_a_scenario_in_one_line_is_its_theme_and_its_gist() -> None:
    told = Scenario("Cabs", "A long text.", {"gist": "They strand people."})
    assert scenario_subject(told) == "Cabs. They strand people."
    assert scenario_subject(Scenario("Cabs", "A long text.", {"gist": " "})) == "Cabs"
    assert scenario_subject(Scenario("Cabs", "A long text.")) == "Cabs"
