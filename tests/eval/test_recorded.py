"""Reading and writing files of recorded scores."""

import random
from collections.abc import Mapping
from pathlib import Path

import pytest

from eval.metrics import score_tables
from eval.recorded import UNSCORED, read_recorded
from inference.aggregation import aggregate
from inference.errors import UserError
from inference.records import Judgement, Sample, Score
from inference.rubric import Dimension, Rubric, Step, load_rubric
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
        ("id,a,a\ns0,1,1\n", "the header repeats a;"),
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


def test_unknown_judges_and_missing_files(tmp_path: Path) -> None:
    path = written(tmp_path, "id,a\ns0,1\n")
    with pytest.raises(UserError, match="has no judge b; it has a"):
        read_recorded(path, SAMPLES, RUBRIC, ["b"])
    with pytest.raises(UserError, match="no such file"):
        read_recorded(tmp_path / "none.csv", SAMPLES, RUBRIC)
    (tmp_path / "latin.csv").write_bytes("id,é\n".encode("latin-1"))
    with pytest.raises(UserError, match="not UTF-8"):
        read_recorded(tmp_path / "latin.csv", SAMPLES, RUBRIC)


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


PLAN = Rubric(
    name="plan",
    description="d",
    steps=(
        Step(
            name="ideas",
            task="t",
            dimensions=(
                Dimension(name="fluency", description="d", range=(0, 8)),
                Dimension(name="novelty", description="d", range=(0, 3)),
                Dimension(name="overall", description="d", sum_of=("fluency", "novelty"), reported=False),
            ),
        ),
        Step(name="plan_ideas", task="t", dimensions=(Dimension(name="novelty", description="d", range=(1, 5)),)),
    ),
)


def all_scores(judgement: Judgement) -> dict[str, tuple[float | None, float | None]]:
    return {score.key: (score.top, score.value) for score in judgement.scores}


def test_several_dimensions_and_their_sums(tmp_path: Path) -> None:
    text = (
        "id,a_ideas.fluency_top,a_ideas.fluency_value,a_ideas.novelty,a_plan_ideas.novelty_weighted,"
        "a_plan_ideas.novelty_top,b_1_ideas.novelty\n"
        "s0,3,3.25,2,4.5,5,1\ns1,,,1,2,2,\ns2,8,7.5,3,1,1,3\ns3,4,4,,3,3,0\n"
    )
    path = written(tmp_path, text)
    found = read_recorded(path, SAMPLES, PLAN)
    a, b = (
        {one.sample_id: all_scores(one) for one in found.judgements if one.judge == judge} for judge in ("a", "b_1")
    )
    assert a["s0"] == {
        "ideas.fluency": (3, 3.25),
        "ideas.novelty": (2, 2),
        "ideas.overall": (5, 5.25),
        "plan_ideas.novelty": (5, 4.5),
    }
    assert (a["s1"]["ideas.fluency"], a["s1"]["ideas.overall"], a["s1"]["ideas.novelty"]) == (
        (None, None),
        (None, None),
        (1, 1),
    )
    assert a["s3"]["ideas.overall"] == (None, None)
    assert b["s2"]["ideas.novelty"] == (3, 3)
    assert b["s2"]["ideas.overall"] == b["s2"]["plan_ideas.novelty"] == (None, None)
    assert found.notes == [
        f"{path}: 2 lines without all scores of a: s1, s3",
        f"{path}: b_1 has no scores for ideas.fluency, plan_ideas.novelty; so averages that need ideas.fluency, "
        "plan_ideas.novelty are missing",
        f"{path}: 1 lines without all other scores of b_1: s1",
    ]


def test_dimensions_that_no_average_needs_are_named_as_such(tmp_path: Path) -> None:
    """Once per judge, whether their columns are empty or not there."""
    fluency, novelty = (dimension.model_copy(update={"reported": False}) for dimension in PLAN.steps[0].dimensions[:2])
    overall = PLAN.steps[0].dimensions[2].model_copy(update={"reported": True})
    ideas = PLAN.steps[0].model_copy(update={"dimensions": (fluency, novelty, overall)})
    rubric = Rubric(name="plan", description="d", steps=(ideas, PLAN.steps[1]))
    text = (
        "id,a_ideas.overall,a_ideas.fluency,a_plan_ideas.novelty,b_ideas.overall,b_plan_ideas.novelty\n"
        "s0,7,,1,7,1\ns1,7,,1,7,\n"
    )
    path = written(tmp_path, text)
    effect = "ideas.fluency, ideas.novelty; averages need only the reported dimensions, and those are there"
    assert read_recorded(path, SAMPLES[:2], rubric).notes == [
        f"{path}: a has no scores for {effect}",
        f"{path}: b has no scores for {effect}",
        f"{path}: 1 lines without all other scores of b: s1",
    ]


def test_a_sum_in_the_file_is_taken_as_it_is(tmp_path: Path) -> None:
    text = "id,a_ideas.fluency,a_ideas.novelty,a_ideas.overall,a_plan_ideas.novelty\ns0,3,2,7,1\ns1,3,2,,1\n"
    found = read_recorded(written(tmp_path, text), SAMPLES[:2], PLAN)
    assert [all_scores(one)["ideas.overall"] for one in found.judgements] == [(7, 7), (None, None)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,a\ns0,1\n", r"column a names no judge and dimension of rubric plan; write it like judge_ideas.fluency_v"),
        ("id,a_ideas.depth_top,a_ideas.depth_value\ns0,1,1\n", "column a_ideas.depth_top names no judge and dim"),
        ("id,_ideas.fluency\ns0,1\n", "column _ideas.fluency names no judge"),
        ("id,a_ideas.fluency_top\ns0,1\n", "needs a_ideas.fluency_top and one of a_ideas.fluency_value"),
        ("id,a_ideas.novelty\ns0,9\n", "1 of 1 scores of a on ideas.novelty are off the scale 0 to 3"),
        ("id,a_ideas.novelty,a_ideas.novelty_top,a_ideas.novelty_value\ns0,1,1,1\n", "a_ideas.novelty has both"),
    ],
)
def test_faulty_files_of_several_dimensions(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        read_recorded(written(tmp_path, text), SAMPLES, PLAN)


def planned(number: int, scores: Mapping[str, float | None], repeat: int = 0) -> Judgement:
    answers = [
        Score(
            step=key.split(".")[0],
            dimension=key.split(".")[1],
            value=value,
            top=None if value is None else float(round(value)),
            unscored="cut off" if value is None else None,
        )
        for key, value in scores.items()
    ]
    return Judgement(
        sample_id=f"s{number}",
        judge="j",
        method="direct",
        rubric="r",
        repeat=repeat,
        scores=aggregate(PLAN, answers),
    )


def test_files_of_several_dimensions_hold_all_scores_and_without_sums_no_more_than_needed(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    complete = {"ideas.fluency": 2.123456789, "ideas.novelty": 3.0, "plan_ideas.novelty": 2.5}
    judged = [planned(0, complete), planned(1, {**complete, "ideas.novelty": None})]
    write_scores(path, SAMPLES[:2], PLAN, judged)
    assert path.read_text() == (
        "id,j_ideas.fluency_value,j_ideas.fluency_top,j_ideas.novelty_value,j_ideas.novelty_top,"
        "j_ideas.novelty_unscored,j_ideas.overall_value,j_ideas.overall_top,j_ideas.overall_unscored,"
        "j_plan_ideas.novelty_value,j_plan_ideas.novelty_top\n"
        "s0,2.12345679,2,3,3,,5.12345679,5,,2.5,2\n"
        "s1,2.12345679,2,,,cut off,,,ideas.novelty: cut off,2.5,2\n"
    )
    write_scores(path, SAMPLES[:2], PLAN, judged, sums=False)
    assert path.read_text() == (
        "id,j_ideas.fluency_value,j_ideas.fluency_top,j_ideas.novelty_value,j_ideas.novelty_top,"
        "j_ideas.novelty_unscored,j_plan_ideas.novelty_value,j_plan_ideas.novelty_top\n"
        "s0,2.12345679,2,3,3,,2.5,2\n"
        "s1,2.12345679,2,,,cut off,2.5,2\n"
    )


def test_a_sum_that_its_parts_do_not_add_up_to_is_written(tmp_path: Path) -> None:
    odd = planned(0, {"ideas.fluency": 2.0, "ideas.novelty": 1.0, "ideas.overall": 9.0, "plan_ideas.novelty": 1.0})
    path = tmp_path / "scores.csv"
    write_scores(path, SAMPLES[:1], PLAN, [odd], sums=False)
    assert "j_ideas.overall_value" in path.read_text()
    assert all_scores(read_recorded(path, SAMPLES[:1], PLAN).judgements[0]) == all_scores(odd)


@pytest.mark.parametrize("sums", [True, False])
def test_many_dimensions_read_back_the_same(tmp_path: Path, sums: bool) -> None:
    rubric, chance = load_rubric("cgpst"), random.Random(0)
    samples = [Sample(id=f"s{number}", scenario="x", responses={}) for number in range(12)]

    def answer(step: Step, dimension: Dimension) -> Score:
        if chance.random() < 0.02:
            return Score(step=step.name, dimension=dimension.name, unscored="cut off")
        value = chance.uniform(*dimension.range)
        return Score(step=step.name, dimension=dimension.name, value=value, top=float(round(value)))

    judgements = [
        Judgement(
            sample_id=sample.id,
            judge="j",
            method="direct",
            rubric="r",
            repeat=repeat,
            scores=aggregate(rubric, [answer(*pair) for pair in rubric.unsummed]),
        )
        for sample in samples
        for repeat in range(2)
    ]
    path = tmp_path / "scores.csv"
    write_scores(path, samples, rubric, judgements, sums=sums)
    header = path.read_text().splitlines()[0].split(",")
    if sums:
        assert {f"j_{step.name}.{dimension.name}_value" for step, dimension in rubric.scored} < set(header)
    before, after = (
        next(iter(score_tables(of).values())) for of in (judgements, read_recorded(path, samples, rubric).judgements)
    )
    assert before.keys() == after.keys()
    for key, scores in before.items():
        assert {name: pytest.approx(pair, abs=5e-7) for name, pair in scores.items()} == after[key], key


@pytest.mark.parametrize(
    "cell", ["1_0", "nan", "inf", "-Infinity", "1e999", "٣", "0x1", "1,5", "1 2", "--1", "1e", "."]
)
def test_what_is_no_plain_number_is_refused(cell: str, tmp_path: Path) -> None:
    path = written(tmp_path, f'id,a\ns0,1\ns1,"{cell}"\n')
    with pytest.raises(UserError, match=r"line 3, column a: .* is not a number; leave missing scores empty"):
        read_recorded(path, SAMPLES, RUBRIC)


def test_numbers_with_sign_point_and_exponent_are_read(tmp_path: Path) -> None:
    path = written(tmp_path, "id,a\ns0,+2\ns1, 3.\ns2,.2e1\ns3,50E-1\n")
    assert [value for value, _ in pairs(read_recorded(path, SAMPLES, RUBRIC).judgements, "a")] == [2, 3, 2, 5]


@pytest.mark.parametrize("cell", ["1e308", "-1e308", "405.1", "-399.1", "1" * 300])
def test_scores_far_off_the_scale_are_refused_with_their_line(cell: str, tmp_path: Path) -> None:
    rows = "".join(f"n{number},2\n" for number in range(300))
    path = written(tmp_path, f"id,a\n{rows}s0,{cell}\n")
    with pytest.raises(
        UserError, match=r"line 302, column a: .* farther from the scale 1 to 5 than 100 times"
    ) as caught:
        read_recorded(path, SAMPLES[:1], RUBRIC)
    assert len(str(caught.value)) < 300 + len(str(path))


def test_a_score_at_the_bound_is_kept(tmp_path: Path) -> None:
    path = written(tmp_path, "id,a\n" + "".join(f"n{number},2\n" for number in range(300)) + "s0,405\ns1,-399\n")
    assert pairs(read_recorded(path, SAMPLES[:2], RUBRIC).judgements, "a") == [(405, 405), (-399, -399)]


@pytest.mark.parametrize("name", ["mean of judges", "human–human"])
def test_names_of_lines_of_reports_are_no_judges(name: str, tmp_path: Path) -> None:
    path = written(tmp_path, f"id,{name}_top,{name}_value\ns0,1,1\n")
    with pytest.raises(UserError, match=f"no judge can be named '{name}'"):
        read_recorded(path, SAMPLES, RUBRIC)
