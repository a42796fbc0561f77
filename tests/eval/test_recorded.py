"""Reading and writing files of recorded scores."""

from pathlib import Path

import pytest

from eval.metrics import score_tables
from eval.recorded import UNSCORED, read_recorded
from inference.errors import UserError
from inference.records import Judgement, Sample, Score
from inference.rubric import Dimension, Rubric, Step
from inference.score_file import write_scores

NOVEL = Dimension(name="novel", description="d", range=(1, 5), fractional=True)
RUBRIC = Rubric(name="ideas", description="d", steps=(Step(name="use", task="t", dimensions=(NOVEL,)),))
SAMPLES = [Sample(id=f"s{number}", scenario="brick", responses={"use": "a wall"}) for number in range(4)]


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "scores.csv"
    path.write_text(text, encoding="utf-8")
    return path


def pairs(judgements: list[Judgement], judge: str) -> list[tuple[float | None, float | None]]:
    return [(one.scores[0].top, one.scores[0].value) for one in judgements if one.judge == judge]


def test_all_three_forms_of_columns(tmp_path: Path) -> None:
    text = "id,a_top,a_weighted,b,c_value,c_top\ns1,2,2.25,3,4.5,4\ns0,1,1.5,2,4.25,5\ns2,3,3,3,3,3\ns3,5,4.9,4,1,1\n"
    found = read_recorded(written(tmp_path, text), SAMPLES, RUBRIC)
    assert found.notes == []
    assert [one.sample_id for one in found.judgements] == ["s0", "s1", "s2", "s3"] * 3  # the samples' order, by judge
    assert pairs(found.judgements, "a") == [(1, 1.5), (2, 2.25), (3, 3), (5, 4.9)]
    assert pairs(found.judgements, "b") == [(2, 2), (3, 3), (3, 3), (4, 4)]
    assert pairs(found.judgements, "c") == [(5, 4.25), (4, 4.5), (3, 3), (1, 1)]
    assert {(one.method, one.rubric) for one in found.judgements} == {("recorded", f"ideas@{RUBRIC.digest}")}


def test_scores_of_a_judging_run_can_be_read(tmp_path: Path) -> None:
    text = "id,a_value,a_top,a_unscored\ns0,1.5,1,\ns1,,,cut off\ns2,2,2,\ns3,3,3,\n"
    found = read_recorded(written(tmp_path, text), SAMPLES, RUBRIC)
    assert pairs(found.judgements, "a") == [(1, 1.5), (None, None), (2, 2), (3, 3)]


def test_missing_cells_and_lines_are_unscored_and_reported(tmp_path: Path) -> None:
    path = written(tmp_path, "id,a_top,a_value\ns0,,\ns1,2,\ns2,3,3\nzz,1,1\n")
    found = read_recorded(path, SAMPLES, RUBRIC)
    assert pairs(found.judgements, "a") == [(None, None), (None, None), (3, 3), (None, None)]
    assert [one.scores[0].unscored for one in found.judgements] == [UNSCORED, UNSCORED, None, UNSCORED]
    assert found.notes == [
        f"{path}: 1 ids that are not among the samples: zz",
        f"{path}: 1 samples without a line: s3",
        f"{path}: 2 lines without a score of a: s0, s1",
    ]


def test_a_judge_on_another_scale_is_refused_unless_left_out(tmp_path: Path) -> None:
    path = written(tmp_path, "id,a,distance\ns0,1,0.8\ns1,2,0.9\ns2,3,0.7\ns3,4,1.1\n")
    with pytest.raises(UserError, match=r"3 of 4 scores of distance are off the scale 1 to 5 .*`judges:`"):
        read_recorded(path, SAMPLES, RUBRIC)
    assert pairs(read_recorded(path, SAMPLES, RUBRIC, ["a"]).judgements, "a") == [(1, 1), (2, 2), (3, 3), (4, 4)]
    with pytest.raises(UserError, match="distance are off"):
        read_recorded(path, SAMPLES, RUBRIC, ["a", "distance"])


def test_single_scores_off_the_scale_are_kept_and_reported(tmp_path: Path) -> None:
    path = written(tmp_path, "id,a\n" + "".join(f"n{number},2\n" for number in range(120)) + "s0,0.5\n")
    found = read_recorded(path, SAMPLES[:1], RUBRIC)
    assert pairs(found.judgements, "a") == [(0.5, 0.5)]
    assert f"{path}: 1 scores of a off the scale 1 to 5, kept as published: s0" in found.notes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name,a\ns0,1\n", "needs a column id"),
        ("id\ns0\n", "columns with judges' scores"),
        ("", "needs a column id"),
        ("id,a,a\ns0,1,1\n", "two columns have the same name"),
        ("id,a\nx,1\n", "none of its ids is among the samples"),
        ("id,a\ns0,1\ns0,2\n", "line 3 repeats the id 's0' of line 2"),
        ("id,a\ns0,1,2\n", "line 2 has another number of cells"),
        ("id,a\ns0,high\n", "line 2, column a: 'high' is not a number"),
        ("id,a\ns0,nan\n", "line 2, column a: 'nan' is not a number"),
        ("id,a_top\ns0,1\n", "column a_top needs a_top and one of a_value, a_weighted"),
        ("id,a_value\ns0,1\n", "column a_value needs a_top and"),
        ("id,a_top,a_value,a_weighted\ns0,1,1,1\n", "column a_top needs a_top and one of"),
        ("id,a,\ns0,1,\n", r"column 3 \(''\) names no judge"),
        ("id, ,a\ns0,1,1\n", r"column 2 \(' '\) names no judge"),
        ("id,a,_top,_value\ns0,1,1,1\n", r"column 3 \('_top'\) names no judge"),
        ("id,a,a_top,a_value\ns0,1,1,1\n", "the judge a has both"),
    ],
)
def test_faulty_files(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        read_recorded(written(tmp_path, text), SAMPLES, RUBRIC)


def test_unknown_judges_missing_files_and_wide_rubrics(tmp_path: Path) -> None:
    path = written(tmp_path, "id,a\ns0,1\n")
    with pytest.raises(UserError, match="has no judge b; it has a"):
        read_recorded(path, SAMPLES, RUBRIC, ["b"])
    with pytest.raises(UserError, match="no such file"):
        read_recorded(tmp_path / "none.csv", SAMPLES, RUBRIC)
    (tmp_path / "latin.csv").write_bytes("id,é\n".encode("latin-1"))
    with pytest.raises(UserError, match="cannot be read as a UTF-8 CSV"):
        read_recorded(tmp_path / "latin.csv", SAMPLES, RUBRIC)
    other = NOVEL.model_copy(update={"name": "useful"})
    wide = Rubric(name="wide", description="d", steps=(Step(name="use", task="t", dimensions=(NOVEL, other)),))
    with pytest.raises(UserError, match="rubric wide has 2 dimensions"):
        read_recorded(path, SAMPLES, wide)


def judged(number: int, judge: str, value: float | None, top: float | None = None, *, repeat: int = 0) -> Judgement:
    score = Score(step="use", dimension="novel", value=value, top=top, unscored=None if value else "cut off")
    return Judgement(sample_id=f"s{number}", judge=judge, method="direct", rubric="r", repeat=repeat, scores=(score,))


def test_written_scores_read_back_the_same(tmp_path: Path) -> None:
    judgements = [
        judged(0, "a", 2.123456789, 2.0),
        judged(1, "a", None),
        judged(2, "a", 3.0, 3.0),
        judged(2, "a", 4.0, 5.0, repeat=1),
        judged(0, "b-2", 1.5, 1.0),
    ]
    path = tmp_path / "new" / "scores.csv"
    write_scores(path, SAMPLES, RUBRIC, judgements)
    assert path.read_text() == (
        "id,a_value,a_top,a_unscored,b-2_value,b-2_top,b-2_unscored\n"
        "s0,2.123457,2.000000,,1.500000,1.000000,\n"
        "s1,,,cut off,,,not judged\n"
        "s2,3.500000,4.000000,,,,not judged\n"
        "s3,,,not judged,,,not judged\n"
    )
    found = read_recorded(path, SAMPLES, RUBRIC)
    for (judge, _), table in score_tables(judgements).items():
        again = score_tables(found.judgements)[judge, "recorded"]["use.novel"]
        assert {key: pytest.approx(pair, abs=5e-7) for key, pair in table["use.novel"].items()} == again


def test_two_methods_need_two_names(tmp_path: Path) -> None:
    judgements = [judged(0, "a", 1.0, 1.0), judged(0, "a", 1.0, 1.0).model_copy(update={"method": "compact"})]
    with pytest.raises(UserError, match="two methods share the judge name"):
        write_scores(tmp_path / "scores.csv", SAMPLES, RUBRIC, judgements)
