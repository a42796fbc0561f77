"""Variants of a rubric, the paths that name them, and settings that look right and are not."""

import itertools
import os
import sys
from pathlib import Path

import pytest

from inference.cli import main
from inference.errors import UserError
from inference.rubric import HIGHEST, Rubric, load_rubric, split_variants, variants_of

GOOD = """
name: jokes
description: Jokes are rated.
steps:
  - name: joke
    task: Tell a joke.
    dimensions:
      - {name: wit, description: How funny., range: [1, 5]}
variants:
  wide:
    joke.wit: {range: [0, 9]}
"""


def saved(folder: Path, text: str, name: str = "rubric.yaml") -> Path:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def refused(path: object) -> str:
    with pytest.raises(UserError) as caught:
        load_rubric(str(path))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 900
    return str(caught.value)


@pytest.mark.parametrize("name", ["1", "~", "true", "2030-01-01", '""', '"x,y"', '"x#y"', "Wide", '"a b"', '"é"', "1a"])
def test_names_of_variants_are_names(name: str, tmp_path: Path) -> None:
    path = saved(tmp_path, GOOD.replace("  wide:", f"  {name}:"))
    assert "is no name of a variant; those have small letters, digits" in refused(path)
    with pytest.raises(UserError, match="is no name of a variant"):
        variants_of(path)


@pytest.mark.parametrize("variants", ["", "3", "[wide]", "{wide: 3}", "{wide: {joke.wit: [1]}}"])
def test_other_variants_are_refused(variants: str, tmp_path: Path) -> None:
    path = saved(tmp_path, GOOD.partition("variants:")[0] + f"variants: {variants}\n")
    assert "variants: write `variants:" in refused(path)


@pytest.mark.parametrize("key", ["1", "~", "joke.with", "[1, 2]"])
def test_keys_of_a_variant_are_dimensions(key: str, tmp_path: Path) -> None:
    path = saved(tmp_path, GOOD.replace("joke.wit:", f"{key}:"))
    said = refused(f"{path}#wide")
    assert "variants.wide: the rubric has no" in said or "not valid YAML" in said


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    dimensions:\n      - {name: wit, description: How funny., range: [1, 5]}\n", "    dimensions: 5\n"),
        ("      - {name: wit, description: How funny., range: [1, 5]}\n", "      - 5\n"),
        (GOOD[GOOD.index("steps:") : GOOD.index("variants:")], "steps: 5\n"),
    ],
)
def test_a_broken_rubric_with_a_variant_is_the_rubrics_own_fault(old: str, new: str, tmp_path: Path) -> None:
    assert old in GOOD
    path = saved(tmp_path, GOOD.replace(old, new))
    said = refused(f"{path}#wide")
    assert said == refused(path)
    assert "line " in said


@pytest.mark.parametrize(
    "change", ["{range: [5, 1]}", "{range: 3}", "{wide: 1}", "{1: 2}", "{~: 2}", "{levels: {12: x}}"]
)
def test_a_variant_that_breaks_the_rubric_is_named_with_its_line(change: str, tmp_path: Path) -> None:
    path = saved(tmp_path, GOOD.replace("{range: [0, 9]}", change))
    assert load_rubric(path).name == "jokes"
    assert refused(f"{path}#wide").startswith(f"{path}: line 10: variant wide: steps.0.dimensions.0")


def test_variants_apply_one_after_the_other(tmp_path: Path) -> None:
    path = saved(tmp_path, GOOD + "  narrow:\n    joke.wit: {range: [1, 2]}\n")
    ranges = [load_rubric(f"{path}{tail}").scored[0][1].range for tail in ("", "#wide", "#wide,narrow", "#narrow,wide")]
    assert ranges == [(1, 5), (0, 9), (1, 2), (0, 9)]


def test_a_path_that_exists_is_taken_as_it_is(tmp_path: Path) -> None:
    inside = saved(tmp_path, GOOD, "no#1/rubric.yaml")
    assert load_rubric(inside).scored[0][1].range == (1, 5)
    assert load_rubric(f"{inside}#wide").scored[0][1].range == (0, 9)
    named = saved(tmp_path, GOOD, "jokes#wide")
    assert load_rubric(named).scored[0][1].range == (1, 5)
    assert load_rubric(f"{named}#wide").scored[0][1].range == (0, 9)
    assert split_variants("cgpst#a,b") == ("cgpst", ("a", "b"))
    assert split_variants("x#1/cgpst") == ("x#1/cgpst", ())


def test_commands_take_such_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = saved(tmp_path, GOOD, "no#1/rubric.yaml")
    for command in ("check", "show"):
        monkeypatch.setattr(sys, "argv", ["inference", "rubric", command, str(path)])
        with pytest.raises(SystemExit) as stop:
            main()
        assert not stop.value.code
        assert "wide" in capsys.readouterr().out


def test_names_too_long_and_folders_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("n" * 300, "n" * 300 + "#wide", "n" * 300 + "/x.yaml"):
        assert "cannot be read" in refused(name)
    assert "is a folder" in refused(tmp_path)
    monkeypatch.chdir(tmp_path)
    os.mkdir("cgpst")
    assert "cgpst: is a folder" in refused("cgpst")


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("[1, 5]", "[false, true]", "range.0: Input should be a valid integer"),
        ("[1, 5]", "[1, 5.0]", "range.1: Input should be a valid integer"),
        ("[1, 5]", '["1", 5]', "range.0: Input should be a valid integer"),
        ("[1, 5]", "[1, 5], levels: {٣: fine}", "neither a whole number nor a band"),
        (
            "task: Tell",
            "items: {kind: joke, count: true}\n    task: Tell",
            "items.count: Input should be a valid integer",
        ),
        ("range: [1, 5]", 'per_item: true, choices: [a, " "]', "a choice is blank; give each a name"),
    ],
)
def test_what_is_no_whole_number_or_name(old: str, new: str, fault: str, tmp_path: Path) -> None:
    assert old in GOOD
    assert fault in refused(saved(tmp_path, GOOD.replace(old, new, 1)))


def test_chained_sums_have_a_bound(tmp_path: Path) -> None:
    def doubled(times: int) -> str:
        names = ["wit", *(f"d{number}" for number in range(times))]
        pairs = itertools.pairwise(names)
        lines = [f"      - {{name: {b}, description: d, sum_of: [{a}, {a}]}}\n" for a, b in pairs]
        return GOOD.partition("variants:")[0] + "".join(lines)

    rubric: Rubric = load_rubric(saved(tmp_path, doubled(17)))
    assert rubric.scored[-1][1].range[1] == 5 * 2**17 <= HIGHEST
    assert "line 26: steps.0.dimensions.18.sum_of: step joke: d17 reaches more than 1,000,000" in refused(
        saved(tmp_path, doubled(5000))
    )
