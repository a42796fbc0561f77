"""Response files: what is read, and every kind of damage named in one sentence."""

from pathlib import Path
from typing import Any

import pytest

from inference.errors import UserError
from inference.records import Sample
from inference.rubric import Rubric
from inference.samples import Columns, read_samples

HEADER = "id,scenario,response,originality\n"


def read(
    folder: Path, rubric: Rubric, content: str | bytes, *, name: str = "r.csv", rated: bool = False, **columns: object
) -> list[Sample]:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_samples(path, rubric, Columns.model_validate(columns), rated=rated)


def test_a_csv_is_read_in_order_with_its_text_as_it_stands(tmp_path: Path, aut_rubric: Rubric) -> None:
    content = (
        '\ufeffid,scenario,response,originality\r\nb,rope," a ""swing"",\nfor two ",2.5\r\na,rope,NA,\r\nc,tin,,5\r\n'
    )
    samples = read(tmp_path, aut_rubric, content)
    assert [sample.id for sample in samples] == ["b", "a", "c"]
    assert [sample.responses["use"] for sample in samples] == [' a "swing",\nfor two ', "NA", ""]
    assert [sample.human for sample in samples] == [
        {"human": {"use.originality": 2.5}},
        {},
        {"human": {"use.originality": 5.0}},
    ]


def test_columns_can_be_named_and_ids_made_from_the_content(tmp_path: Path, aut_rubric: Rubric) -> None:
    content = "object,answer,rating\nrope,swing,3\ntin,drum,1\n"
    names: dict[str, Any] = {"scenario": "object", "response": "answer", "scores": {"use.originality": "rating"}}
    first, second = read(tmp_path, aut_rubric, content, rated=True, **names)
    again, _ = read(tmp_path, aut_rubric, content, rated=True, **names)
    assert first.id == again.id
    assert first.id != second.id
    assert first.human["human"] == {"use.originality": 3.0}


def test_jsonl_and_several_steps(tmp_path: Path, plan_rubric: Rubric) -> None:
    content = '{"id": 7, "scenario": "flood", "ideas": "dam", "outcome": null}\n\n'
    (sample,) = read(tmp_path, plan_rubric, content, name="r.jsonl")
    assert sample == Sample(id="7", scenario="flood", responses={"ideas": "dam", "outcome": ""})


def labelled(rubric: Rubric) -> Rubric:
    """`plan_rubric` with the labels Ideas and Outcome, and a dimension of the same name in both steps."""
    ideas, outcome = rubric.steps
    novelty = ideas.dimensions[1]
    steps = (
        ideas.model_copy(update={"label": "Ideas!"}),
        outcome.model_copy(update={"label": "Outcome!", "dimensions": (*outcome.dimensions, novelty)}),
    )
    return Rubric(name=rubric.name, description=rubric.description, steps=steps)


def test_columns_of_steps_have_their_names_their_labels_or_those_given(tmp_path: Path, plan_rubric: Rubric) -> None:
    rubric = labelled(plan_rubric)
    content = '{"id": 7, "scenario": "flood", "Ideas!": "dam", "outcome": "dry", "Outcome!": "wet", "mine": "own"}\n'
    (sample,) = read(tmp_path, rubric, content, name="r.jsonl")
    assert sample.responses == {"ideas": "dam", "outcome": "dry"}
    (sample,) = read(tmp_path, rubric, content, name="r.jsonl", responses={"ideas": "mine"})
    assert sample.responses == {"ideas": "own", "outcome": "dry"}


def test_columns_of_steps_that_are_not_there_name_the_way_out(
    tmp_path: Path, plan_rubric: Rubric, aut_rubric: Rubric
) -> None:
    content = "id,scenario,one,outcome\na,b,c,d\n"
    with pytest.raises(UserError, match=r"missing column ideas; .*, as in `columns: {responses: {ideas: COLUMN}}`"):
        read(tmp_path, plan_rubric, content)
    with pytest.raises(UserError, match="missing column two"):
        read(tmp_path, plan_rubric, content, responses={"ideas": "two"})
    with pytest.raises(UserError, match=r"columns.responses: .* no step idea with a response; it has ideas, outcome"):
        read(tmp_path, plan_rubric, content, responses={"idea": "one"})
    with pytest.raises(UserError, match=r"write `responses: {ideas: COLUMN, …}`"):
        read(tmp_path, plan_rubric, content, response="one")
    (sample,) = read(tmp_path, aut_rubric, "id,scenario,one\na,b,c\n", responses={"use": "one"})
    assert sample.responses == {"use": "c"}


def test_ratings_of_a_dimension_that_two_steps_have_need_the_step(tmp_path: Path, plan_rubric: Rubric) -> None:
    content = "scenario,ideas,outcome,novelty,fluency,outcome.novelty\na,b,c,2,4,3\n"
    (sample,) = read(tmp_path, labelled(plan_rubric), content)
    assert sample.human == {"human": {"ideas.fluency": 4, "outcome.novelty": 3}}


def test_half_a_surrogate_pair_becomes_a_replacement_character(tmp_path: Path, aut_rubric: Rubric) -> None:
    content = '{"id": "a", "scenario": "rope", "response": "cut \\ud83d off \\ud83d\\ude00"}\n'
    (sample,) = read(tmp_path, aut_rubric, content, name="r.jsonl")
    assert sample.responses["use"] == "cut \ufffd off \U0001f600"


@pytest.mark.parametrize(
    ("content", "rated", "says"),
    [
        ("", False, "no rows"),
        (HEADER, False, "no rows"),
        ("id,text\na,b\n", False, "missing columns scenario, response; line 2 has id, text"),
        ("id,scenario,response\na,b,c\n", True, "missing column originality"),
        (HEADER + "a,rope,swing,6\n", False, "line 2: the originality rating 6 is off the scale 1 to 5"),
        (HEADER + "a,rope,swing,0.5\n", True, "off the scale"),
        (HEADER + "a,rope,swing,good\n", True, "'good' is not a number"),
        (HEADER + "a,rope,swing,nan\n", True, "'nan' is not a number"),
        (HEADER + "a,rope,swing,\n", True, "line 2 has no originality rating"),
        (HEADER + "a,rope,swing,1\nb,rope,net,1\na,tin,drum,2\n", False, "line 4 repeats the id 'a' of line 2"),
        ("id,scenario,response,response\na,b,c,d\n", False, "the header repeats response"),
        (HEADER + "a,rope,swing\n", False, "line 2 has another number of cells"),
        (HEADER + "a,rope,swing,1,2\n", False, "line 2 has another number of cells"),
        (HEADER + 'a,rope,"swing,1\n', False, "not a readable CSV"),
        (HEADER.encode() + "a,rope,café,2\n".encode("latin-1"), False, "not UTF-8"),
        ("id,scenario,response\na,b,c\n".encode("utf-16"), False, "not UTF-8"),
    ],
)
def test_bad_csv_files(tmp_path: Path, aut_rubric: Rubric, content: str | bytes, rated: bool, says: str) -> None:
    with pytest.raises(UserError) as caught:
        read(tmp_path, aut_rubric, content, rated=rated)
    assert says in str(caught.value)
    assert "r.csv" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('{"id": 1, "id": 2}\n', "line 1 is not JSON .repeated keys id"),
        ("[" * 200_000, "line 1 is not JSON .nested too deeply"),
        ("{\n", "line 1 is not JSON"),
        ('{"id": 1}\n[1]\n', "line 2 is not a JSON object"),
        ("\n\n", "no rows"),
    ],
)
def test_bad_jsonl_files(tmp_path: Path, aut_rubric: Rubric, content: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        read(tmp_path, aut_rubric, content, name="r.jsonl")


def test_many_faults_are_counted_not_listed(tmp_path: Path, aut_rubric: Rubric) -> None:
    with pytest.raises(UserError, match=r"line 6: .* \(and 15 more\)"):
        read(tmp_path, aut_rubric, HEADER + "".join(f"{i},rope,x,9\n" for i in range(20)))


def test_other_names_and_missing_files(tmp_path: Path, aut_rubric: Rubric) -> None:
    with pytest.raises(UserError, match=r"end in \.csv or \.jsonl"):
        read(tmp_path, aut_rubric, "", name="r.xlsx")
    with pytest.raises(UserError, match="no such file"):
        read_samples(tmp_path / "absent.csv", aut_rubric)
    with pytest.raises(UserError, match=r"\['use.wit'\] are no step.dimension"):
        read(tmp_path, aut_rubric, HEADER + "a,b,c,1\n", scores={"use.wit": "originality"})


@pytest.mark.parametrize(("name", "rows"), [("ocsai1_test.csv", 3030), ("byprompt_train.csv", 16729)])
def test_the_real_files_are_read_whole(data_dir: Path, aut_rubric: Rubric, name: str, rows: int) -> None:
    samples = read_samples(data_dir / "aut" / name, aut_rubric, Columns(scenario="object"), rated=True)
    assert len(samples) == rows


def test_an_id_column_that_was_named_has_to_be_there_and_filled(tmp_path: Path, aut_rubric: Rubric) -> None:
    with pytest.raises(UserError, match="missing column identifier"):
        read(tmp_path, aut_rubric, "scenario,response\nrope,swing\n", id="identifier")
    with pytest.raises(UserError, match="line 3 has no id"):
        read(tmp_path, aut_rubric, "identifier,scenario,response\na,rope,swing\n,tin,drum\n", id="identifier")
    content = '{"n": 1, "scenario": "rope", "response": "a"}\n{"scenario": "rope", "response": "b"}\n'
    with pytest.raises(UserError, match="line 2 has no n"):
        read(tmp_path, aut_rubric, content, name="r.jsonl", id="n")


def test_equal_rows_without_ids_get_numbered_ones(tmp_path: Path, aut_rubric: Rubric) -> None:
    ids = [s.id for s in read(tmp_path, aut_rubric, "scenario,response\n" + "rope,swing\ntin,drum\n" * 3)]
    assert ids == [ids[0], ids[1], f"{ids[0]}-2", f"{ids[1]}-2", f"{ids[0]}-3", f"{ids[1]}-3"]


@pytest.mark.parametrize(
    ("cell", "kind"),
    [('{"a": 1}', "an object"), ('["a"]', "a list"), ("true", "true or false"), ("NaN", "no finite number")],
)
@pytest.mark.parametrize("column", ["id", "scenario", "response", "originality"])
def test_json_cells_that_are_no_text_are_refused(
    tmp_path: Path, aut_rubric: Rubric, column: str, cell: str, kind: str
) -> None:
    good = {"id": '"b"', "scenario": '"rope"', "response": '"swing"', "originality": "3"}
    lines = ["{" + ", ".join(f'"{key}": {value}' for key, value in row.items()) + "}" for row in (good, good)]
    lines[1] = lines[1].replace(f'"{column}": {good[column]}', f'"{column}": {cell}')
    with pytest.raises(UserError, match=f"line 2: the {column} is {kind}; text or a number is needed"):
        read(tmp_path, aut_rubric, "\n".join(lines), name="r.jsonl")


def test_other_cells_of_json_lines_may_hold_anything(tmp_path: Path, aut_rubric: Rubric) -> None:
    content = '{"id": 1, "scenario": "rope", "response": 12.5, "notes": {"a": [true]}}\n'
    (sample,) = read(tmp_path, aut_rubric, content, name="r.jsonl")
    assert (sample.id, sample.responses["use"]) == ("1", "12.5")


def test_a_large_header_is_cut_and_on_one_line(tmp_path: Path, aut_rubric: Rubric) -> None:
    content = '"two\nlines",' + ",".join(f"c{i}" for i in range(3000)) + "\n" + "1," * 3000 + "1\n"
    with pytest.raises(UserError, match=r"'two\\nlines', c0.* and 2991 more") as caught:
        read(tmp_path, aut_rubric, content)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("cell", ["1_0", "nan", "inf", "٣"])
def test_ratings_are_plain_numbers(tmp_path: Path, aut_rubric: Rubric, cell: str) -> None:
    path = tmp_path / "responses.csv"
    path.write_text(f"scenario,response,originality\nbrick,wall,{cell}\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"line 2: the originality rating .* is not a number"):
        read_samples(path, aut_rubric)
