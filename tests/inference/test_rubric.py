"""Rubrics as data: what a file may say, and the schema and digest that follow from it."""

from pathlib import Path

import pytest

from inference.errors import UserError
from inference.prompts.describe import CHOICE, EVIDENCE, MEMORY, NOTES, SCORES
from inference.rubric import TAKEN_KEYS, Rubric, load_rubric
from inference.schemas import scores_schema, table_schema

GOOD = """
name: jokes
description: Jokes are rated.
steps:
  - name: joke
    task: Tell a joke.
    dimensions:
      - {name: wit, description: How funny., range: [1, 5]}
"""


def load(folder: Path, text: str) -> Rubric:
    path = folder / "rubric.yaml"
    path.write_text(text, encoding="utf-8")
    return load_rubric(path)


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("[1, 5]", "[5, 1]", "steps.0.dimensions.0.range: the range [5, 1] is inverted"),
        ("[1, 5]", "[3, 3]", "inverted or empty"),
        ("[1, 5]", "[-1, 5]", "leaves 0..99"),
        ("[1, 5]", "[0, 100]", "leaves 0..99"),
        ("[1, 5]", "[1, 5.5]", "steps.0.dimensions.0.range.1"),
        ("[1, 5]", "[1, 5], levels: {7: too much}", "[7] lie outside the range"),
        ("wit,", "Wit,", "steps.0.dimensions.0.name"),
        ("description: Jokes are rated.", "", "description: Field required"),
        *(("wit,", f"{key},", f"dimensions.0.name: step joke: {key} is a key of every") for key in TAKEN_KEYS),
        ("wit,", "wit, key: notes,", "dimensions.0.key: step joke: notes is a key of every answer; give the dimension"),
        ("name: joke\n", "name: id\n", "steps.0.name: id is a column of every file of responses; give the step"),
        ("name: joke\n", "name: scenario\n", "scenario is a column of every file of responses"),
        ("name: joke\n", "name: joke\n    label: id\n", "steps.0.label: id is a column of every file"),
        ("task: Tell a joke.", "taks: Tell a joke.", "steps.0.taks: unknown key"),
        ("name: jokes", "name: [jokes", "not valid YAML"),
    ],
)
def test_a_faulty_rubric_is_refused_with_its_place(tmp_path: Path, old: str, new: str, place: str) -> None:
    assert old in GOOD
    with pytest.raises(UserError) as caught:
        load(tmp_path, GOOD.replace(old, new, 1))
    assert str(tmp_path / "rubric.yaml") in str(caught.value)
    assert place in str(caught.value)
    assert "\n" not in str(caught.value)


def test_repeated_names_are_refused(tmp_path: Path) -> None:
    line = "      - {name: wit, description: How funny., range: [1, 5]}\n"
    with pytest.raises(UserError, match="same name"):
        load(tmp_path, GOOD + line.lstrip("\n"))


def test_grid_and_contains(plan_rubric: Rubric, aut_rubric: Rubric) -> None:
    fluency, novelty, _ = (dimension for _, dimension in plan_rubric.scored)
    assert fluency.grid == tuple(str(score) for score in range(1, 17))
    assert [novelty.contains(value) for value in (0, 3, 4, -1, 1.5)] == [True, True, False, False, False]
    originality = aut_rubric.scored[0][1]
    assert [originality.contains(value) for value in (1.0, 2.7, 5, 0.9)] == [True, True, True, False]


def test_the_schema_asks_for_every_dimension_and_nothing_else(plan_rubric: Rubric) -> None:
    schema = scores_schema(plan_rubric.answered)
    assert schema["required"] == ["ideas", "outcome"]
    ideas = schema["properties"]["ideas"]
    assert (ideas["required"], ideas["additionalProperties"]) == (["fluency", "novelty"], False)
    assert ideas["properties"]["novelty"]["enum"] == [0, 1, 2, 3]


def test_the_digest_follows_the_content_not_the_file(tmp_path: Path) -> None:
    rubric = load(tmp_path, GOOD)
    assert load(tmp_path, "# a comment\n" + GOOD).digest == rubric.digest
    assert load(tmp_path, GOOD.replace("How funny.", "How very funny.")).digest != rubric.digest


ITEMS = """
name: ideas
description: Ideas are rated.
steps:
  - name: ideas
    task: List ideas.
    items: {kind: idea, count: 3, valid: counts}
    dimensions:
      - {name: counts, description: Whether it counts., per_item: true, range: [0, 1]}
      - name: kind
        key: k
        description: Its kind.
        per_item: true
        choices: [art, law]
      - {name: kinds, description: Kinds., distinct: kind}
      - {name: overall, description: Sum., sum_of: [counts, kinds]}
variants:
  strict:
    ideas.counts: {description: Whether it really counts.}
"""


@pytest.mark.parametrize(
    ("old", "new", "line", "fault"),
    [
        ("range: [0, 1]}", "range: [0, 2]}", 7, "items.valid names 'counts', no dimension per item with range"),
        ("valid: counts", "valid: kind", 7, "items.valid names 'kind'"),
        (
            "    items: {kind: idea, count: 3, valid: counts}\n",
            "",
            8,
            "counts is per item, but the step has no `items`",
        ),
        ("per_item: true, range", "range", 9, "what is asked has to be `per_item: true`"),
        ("distinct: kind}", "distinct: sort}", 15, "kinds counts 'sort', no dimension with choices"),
        ("distinct: kind}", "distinct: kind, range: [0, 1]}", 15, "needs one of range, choices, sum_of and distinct"),
        ("[counts, kinds]", "[counts, sorts]", 16, "overall sums ideas.sorts, no scored dimension before it"),
        ("[counts, kinds]", "[counts, kind]", 16, "overall sums ideas.kind, no scored dimension"),
        ("[counts, kinds]", "[overall]", 16, "overall sums ideas.overall, no scored dimension before it"),
        ("key: k", "key: counts", 11, "two dimensions have the same key"),
        ("choices: [art, law]", "choices: [art, art]", 14, "two different choices or more, repeated: ['art']"),
        ("count: 3", "count: 0", 7, "steps.0.items.count"),
        ("    task: List ideas.\n", "", 5, "needs a task"),
        ("{name: kinds,", "{name: kind,", 15, "two dimensions have the same name"),
        (
            "[art, law]",
            "[yes, no]",
            14,
            "steps.0.dimensions.1.choices.0: Input should be a valid string: an unquoted yes",
        ),
        ("[art, law]", "[art, 5]", 14, "an unquoted number is no text in YAML; put it in quotes"),
        ("[art, law]", "[art, 2030-01-01]", 14, "an unquoted date is no text in YAML; put it in quotes"),
        ("description: Its kind.", "description:", 12, "nothing stands there"),
        ("valid: counts}", "valid: counts, invalid: {No: bad}}", 7, "for each key: Input should be a valid string: an"),
        ("[0, 1]}", "[0, 1], levels: {0: no, 1: yes}}", 9, "put it in quotes"),
        ("[0, 1]}", "[0, 1], levels: {no: bad}}", 9, "a level is a score, or a band of them: an unquoted yes, no"),
    ],
)
def test_faults_of_items_and_derived_dimensions_have_their_line(
    tmp_path: Path, old: str, new: str, line: int, fault: str
) -> None:
    assert old in ITEMS
    with pytest.raises(UserError) as caught:
        load(tmp_path, ITEMS.replace(old, new, 1))
    assert f"line {line}: " in str(caught.value), str(caught.value)
    assert fault in str(caught.value)


def test_faults_have_the_line_of_their_own_key(tmp_path: Path) -> None:
    """In block style, where a step or dimension stretches over several lines."""
    text = GOOD.replace(
        "      - {name: wit, description: How funny., range: [1, 5]}",
        "      - name: wit\n        description: How funny.\n        range: [1, 5]\n        levels:\n"
        "          1: dull\n          5: yes\n",
    )
    for old, new, line, fault in (
        ("x", "x", 13, "levels.5: Input should be a valid string: an unquoted yes, no, on, off, true or false"),
        ("5: yes", "7: fine", 13, "levels [7] lie outside the range"),
        ("5: yes", "five: fine", 13, "neither a whole number nor a band"),
        ("5: yes", "1-2: fine", 11, "levels overlap"),
    ):
        with pytest.raises(UserError, match=r"^\S+: line (\d+): ") as caught:
            load(tmp_path, text.replace(old, new))
        assert f": line {line}: steps.0.dimensions.0.levels" in str(caught.value)
        assert fault in str(caught.value)
    step = GOOD[GOOD.index("  - name: joke") :]
    with pytest.raises(UserError, match=r"line 9: steps\.1\.name: two steps have the same name"):
        load(tmp_path, GOOD + step)


@pytest.mark.parametrize(
    ("levels", "fault"),
    [
        ("{1-2: low, 2: mid}", "overlap"),
        ("{3-1: low}", "high-low"),
        ("{low: bad}", "neither a whole number nor a band"),
    ],
)
def test_faulty_bands_of_levels(tmp_path: Path, levels: str, fault: str) -> None:
    with pytest.raises(UserError, match=fault):
        load(tmp_path, GOOD.replace("[1, 5]", f"[1, 5], levels: {levels}"))


def test_variants(tmp_path: Path) -> None:
    plain = load(tmp_path, ITEMS)
    path = tmp_path / "rubric.yaml"
    strict = load_rubric(f"{path}#strict")
    assert strict.steps[0].dimensions[0].description == "Whether it really counts."
    assert strict.digest != plain.digest
    with pytest.raises(UserError, match="no variant lax; it has strict"):
        load_rubric(f"{path}#lax")
    for old, new, fault in (
        ("ideas.counts: {desc", "ideas.count: {desc", "has no 'ideas.count'"),
        ("    ideas.counts: {description: Whether it really counts.}", "    ideas.counts: 3", "write `variants"),
    ):
        path.write_text(ITEMS.replace(old, new), encoding="utf-8")
        with pytest.raises(UserError, match=fault):
            load_rubric(f"{path}#strict")


def test_schema_of_items(tmp_path: Path) -> None:
    schema = scores_schema(load(tmp_path, ITEMS).answered)["properties"]["ideas"]
    assert (schema["type"], schema["minItems"], schema["maxItems"]) == ("array", 3, 3)
    assert schema["items"]["properties"] == {
        "counts": {"type": "integer", "enum": [0, 1]},
        "k": {"type": "string", "enum": ["art", "law"]},
    }


def test_a_rubric_comes_back_from_its_dump(tmp_path: Path) -> None:
    for rubric in (load(tmp_path, ITEMS), load_rubric("cgpst")):
        again = Rubric.model_validate(rubric.model_dump(mode="json", exclude_defaults=True))
        assert again.digest == rubric.digest
        assert again.scored == rubric.scored


def test_a_rubric_is_found_by_its_name_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert load_rubric("cgpst").name == "cgpst"
    with pytest.raises(UserError, match="no such file"):
        load_rubric("nowhere")


def test_a_dimension_may_be_called_evidence_under_another_key(tmp_path: Path) -> None:
    rubric = load(tmp_path, GOOD.replace("name: wit,", "name: evidence, key: ev,"))
    assert list(table_schema(rubric)["properties"]["joke"]["properties"]) == ["evidence", "ev"]
    assert set(TAKEN_KEYS) == {NOTES, SCORES, CHOICE, EVIDENCE, MEMORY}
