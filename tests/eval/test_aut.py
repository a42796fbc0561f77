"""Loading the Alternate Uses Task and its split without near duplicates."""

import os
from pathlib import Path

import pytest

from eval.benchmarks.aut import AutConfig, load
from inference.errors import UserError
from inference.rubric import load_rubric

RUBRIC = load_rubric(Path(__file__).parents[2] / "configs/rubrics/aut.yaml")
DATA = os.environ.get("CREAJUDGE_DATA")
TEST = "id,object,response,originality\nu1,brick,a wall,1.2\nu2,brick,NA,3\nu3,fork,a  Harp ,4.5\n"
OVERLAP = (
    "id,file,matches_in,kind,n_matches,first_match_id\n"
    "u1,mine_test,mine_train,norm,1,t1\n"
    "u2,mine_test,mine_val,norm,1,t2\n"  # another file: not a leak from training
    "u2,other_test,mine_train,norm,1,t2\n"
    "u3,mine_test,mine_train,same_text_other_object,1,t3\n"  # another object: not the same answer
)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "test.csv").write_text(TEST)
    (tmp_path / "overlap.csv").write_text(OVERLAP)
    return {"test": str(tmp_path / "test.csv"), "overlap": str(tmp_path / "overlap.csv")}


def test_samples_ratings_and_clean_split(files: dict[str, str]) -> None:
    loaded = load(AutConfig(**files, overlap_file="mine_test", overlap_matches_in="mine_train"), RUBRIC)
    assert (loaded.name, loaded.simulated) == ("aut", False)
    assert [(one.id, one.scenario, one.responses["use"]) for one in loaded.samples] == [
        ("u1", "brick", "a wall"),
        ("u2", "brick", "NA"),
        ("u3", "fork", "a  Harp "),
    ]
    assert [one.human for one in loaded.samples] == [{"human": {"use.originality": x}} for x in (1.2, 3.0, 4.5)]
    assert loaded.splits == {"test": {"u1", "u2", "u3"}, "test_clean": {"u2", "u3"}}


def test_without_overlap_there_is_one_split(files: dict[str, str]) -> None:
    loaded = load(AutConfig(test=files["test"], simulated=True), RUBRIC)
    assert set(loaded.splits) == {"test"}
    assert loaded.simulated


def test_a_wrong_file_name_cannot_pass_for_clean(files: dict[str, str]) -> None:
    with pytest.raises(UserError, match=r"no matches of mine_test in ocsai1_train; it has mine_test in mine_train"):
        load(AutConfig(**files, overlap_file="mine_test"), RUBRIC)


def test_faulty_files(files: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        load(AutConfig(test=files["test"], overlap=str(tmp_path / "none.csv")), RUBRIC)
    with pytest.raises(UserError, match="missing columns file, kind, matches_in"):
        load(AutConfig(test=files["test"], overlap=files["test"]), RUBRIC)
    (tmp_path / "test.csv").write_text(TEST.replace("4.5", ""))
    with pytest.raises(UserError, match="line 4 has no originality rating"):
        load(AutConfig(test=files["test"]), RUBRIC)


@pytest.mark.skipif(not DATA, reason="CREAJUDGE_DATA names no folder with the AUT data")
def test_real_sizes() -> None:
    folder = Path(str(DATA)) / "aut"
    loaded = load(AutConfig(test=str(folder / "ocsai1_test.csv"), overlap=str(folder / "overlap.csv")), RUBRIC)
    assert {name: len(ids) for name, ids in loaded.splits.items()} == {"test": 3030, "test_clean": 2882}
    assert len({one.scenario for one in loaded.samples}) == 21
