"""Rubrics as data: what a file may say, and the schema and digest that follow from it."""

from pathlib import Path

import pytest

from inference.errors import UserError
from inference.rubric import Rubric, load_rubric

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
    schema = plan_rubric.json_schema()
    assert schema["required"] == ["ideas", "outcome"]
    ideas = schema["properties"]["ideas"]
    assert (ideas["required"], ideas["additionalProperties"]) == (["fluency", "novelty"], False)
    assert ideas["properties"]["novelty"]["enum"] == [0, 1, 2, 3]


def test_the_digest_follows_the_content_not_the_file(tmp_path: Path) -> None:
    rubric = load(tmp_path, GOOD)
    assert load(tmp_path, "# a comment\n" + GOOD).digest == rubric.digest
    assert load(tmp_path, GOOD.replace("How funny.", "How very funny.")).digest != rubric.digest
