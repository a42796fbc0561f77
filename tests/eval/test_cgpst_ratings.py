"""Rating files lose nothing, and scores are what the raters gave; the published answer has reference values."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cgpst_files import GRID, RUBRIC, SCENARIOS, answers, contents, entry, plain, save
from hypothesis import given
from hypothesis import strategies as st

from eval.agreement import agreement, icc, mae, pearson, qwk, spearman
from eval.benchmarks.cgpst.grid import faulty_criteria, faulty_totals, grid_errors, read_grid, rule_score
from eval.benchmarks.cgpst.ratings import read_ratings, write_ratings
from eval.benchmarks.cgpst.samples import Rating, from_ratings, to_samples
from eval.benchmarks.cgpst.scenarios import read_scenarios
from inference.aggregation import aggregate
from inference.errors import UserError
from inference.records import Sample
from inference.rubric import Rubric, load_rubric

TOLERANCE = 1e-4


@pytest.fixture(scope="module")
def expected(data_dir: Path) -> dict[str, Any]:
    return json.loads((data_dir / "expected.json").read_text())["cgpst_sample"]


@pytest.fixture(scope="module")
def published(data_dir: Path) -> Sample:
    folder = data_dir / "cgpst"
    scenarios = read_scenarios(folder / "future_scenarios_en.json")
    (sample,) = to_samples(read_ratings(folder / "data_A.json"), RUBRIC, scenarios)
    return sample


def labelled(rubric: Rubric) -> dict[str, tuple[str, tuple[int, int]]]:
    """ "Step-1/Fluency" → (step.dimension, range) of all that is scored."""
    return {f"{s.label}/{d.title}": (f"{s.name}.{d.name}", d.range) for s, d in rubric.scored}


def pairs(sample: Sample, names: list[str], rubric: Rubric, *, normalised: bool) -> np.ndarray:
    """Scores (n, 2) of the two raters, over their maxima where `normalised`."""
    known = labelled(rubric)
    rows = [[sample.human[rater][known[name][0]] for rater in ("rater1", "rater2")] for name in names]
    maxima = np.array([[known[name][1][1] if normalised else 1] for name in names], dtype=float)
    return np.array(rows) / maxima


def test_the_published_file_keeps_its_bytes(data_dir: Path, tmp_path: Path) -> None:
    original = data_dir / "cgpst" / "data_A.json"
    entries = read_ratings(original)
    write_ratings(tmp_path / "out.json", entries)
    assert (tmp_path / "out.json").read_bytes() == original.read_bytes()
    assert read_ratings(tmp_path / "out.json") == entries


def test_published_scores(published: Sample, expected: dict[str, Any]) -> None:
    known = labelled(RUBRIC)
    for name, scores in expected["dimensions_23"].items():
        assert [published.human[rater][known[name][0]] for rater in ("rater1", "rater2")] == scores
    assert [published.human[rater]["total.total"] for rater in published.human] == expected["totals"]
    assert published.scenario_id == "FS10"
    assert published.scenario.startswith("As Jobie")
    assert len(published.human["rater1"]) == len(RUBRIC.scored)


@pytest.mark.parametrize(
    ("key", "rubric"),
    [
        ("agreement_23_paper_maxima", "cgpst"),
        ("agreement_23_released_code_maxima_purpose_2", "cgpst#purpose_0_2"),
        ("agreement_20_reported", "cgpst"),
    ],
)
def test_published_agreement(key: str, rubric: str, published: Sample, expected: dict[str, Any]) -> None:
    reference, chosen = expected[key], load_rubric(rubric)
    names = list(expected["dimensions_23"])
    if reference["n"] == 20:
        names = [f"{step.label}/{dimension.title}" for step, dimension in chosen.reported]
    assert len(names) == reference["n"]
    raw = pairs(published, names, chosen, normalised=False)
    normalised = pairs(published, names, chosen, normalised=True)
    found: dict[str, Any] = {
        "n": len(names),
        "pearson_raw": pearson(*raw.T),
        "spearman_raw": spearman(*raw.T),
        "pearson_normalised": pearson(*normalised.T),
        "spearman_normalised": spearman(*normalised.T),
        "qwk_raw_labels_0_16": qwk(*raw.T, step=1.0, score_range=(0, 16)),
        "exact_agreement": int((raw[:, 0] == raw[:, 1]).sum()),
        "within_one": int((abs(raw[:, 0] - raw[:, 1]) <= 1).sum()),
        "mae_raw": mae(*raw.T),
        "mae_normalised": mae(*normalised.T),
    }
    plain_numbers = {name: value for name, value in reference.items() if not isinstance(value, dict | list)}
    assert {name: found[name] for name in plain_numbers} == pytest.approx(plain_numbers, abs=TOLERANCE)
    for name, ratings in (("icc_raw", raw), ("icc_normalised", normalised)):
        forms = reference.get(name, {})
        assert {form: icc(ratings, form) for form in forms} == pytest.approx(forms, abs=TOLERANCE)
    assert reference["icc_normalised"]


def test_published_items(published: Sample, expected: dict[str, Any]) -> None:
    found = {
        rater: {(f"{s.step}.{s.dimension}", s.item): s.choice or s.value for s in scores}
        for rater, scores in published.human_items.items()
    }
    keys = {f"{step.label}/{d.title}": (step, d) for step, d in RUBRIC.asked if d.per_item}
    for name, reference in expected["item_level"].items():
        step, dimension = keys[name]
        assert step.items
        columns = [
            [found[rater].get((f"{step.name}.{dimension.name}", i)) for i in range(1, step.items.count + 1)]
            for rater in ("rater1", "rater2")
        ]
        assert columns == [reference["rater1"], reference["rater2"]]
        assert sum(a == b for a, b in zip(*columns, strict=True)) == reference["exact"]


def test_published_grid(published: Sample, expected: dict[str, Any]) -> None:
    reference, grid = expected["step5_grid"], read_grid(published.responses["step5"])
    assert grid is not None
    assert len(grid.rows) == reference["rows"]
    assert faulty_criteria(grid) == reference["columns_not_a_permutation"]
    assert (faulty_totals(grid) == []) is reference["row_totals_right"]
    assert len(grid_errors(grid)) == reference["errors"]
    assert rule_score(reference["errors"]) == reference["rule_score"]


def test_one_answer_has_no_agreement_per_dimension(published: Sample) -> None:
    for step, dimension in RUBRIC.reported:
        columns = [np.array([published.human[r][f"{step.name}.{dimension.name}"]]) for r in ("rater1", "rater2")]
        found = agreement(columns[0], columns[1], dimension.range)
        assert all(np.isnan(found[name]) for name in ("pearson", "spearman", "qwk_integer", "icc2_1", "icc3_1"))


def test_made_entries_read_back_as_the_scores_they_were_made_of(tmp_path: Path) -> None:
    write_ratings(tmp_path / "out.json", [entry()])
    assert read_ratings(tmp_path / "out.json") == [entry()]
    (sample,) = to_samples(read_ratings(tmp_path / "out.json"), RUBRIC, SCENARIOS)
    for rater, shift in (("rater1", 0), ("rater2", 1)):
        whole = {score.key: score.value for score in aggregate(RUBRIC, answers(shift))}
        assert sample.human[rater] == whole
        wanted = {(s.key, s.item): (s.value, s.choice) for s in answers(shift) if s.item}
        assert {(s.key, s.item): (s.value, s.choice) for s in sample.human_items[rater]} == wanted
    assert sample.responses == {step: "\n".join(parts) for step, parts in contents().items()}


def test_made_entries_have_the_official_keys(tmp_path: Path) -> None:
    (answer,) = plain(tmp_path)
    assert answer[:3] == ["A01_FS1", ["H01", "H02"], "FS1"]
    scores = answer[3]
    assert list(scores) == [*(f"Step-{number}" for number in range(1, 7)), "Total Score"]
    assert list(scores["Step-1"][0]) == ["Content", "Category", "Originality", "Elaboration"]
    assert list(scores["Step-1"][-1]["Score Summary"]) == [
        *("Fluency", "Flexibility", "Elaboration", "Originality", "Overall")
    ]
    reason = "Duplicate — another solution of this response that counts says the same"
    assert scores["Step-3"][3] == {"Content": contents()["step3"][3], "Invalid": reason}
    assert list(scores["Step-2"][0])[1:5] == ["Condition Phrase", "Stem & KVP", "Purpose", "FS Parameters"]
    assert "Humaness" in scores["Step-6"][0]
    assert scores["Total Score"] == sum(
        (step[-1].get("Score Summary") or step[-1])["Overall"] for step in list(scores.values())[:6]
    )


def test_an_item_that_does_not_count_needs_a_reason() -> None:
    with pytest.raises(KeyError):
        from_ratings("A01_FS1", "FS1", contents(), [Rating("H01", answers())], RUBRIC)


def test_what_is_missing_stays_missing(tmp_path: Path) -> None:
    content = plain(tmp_path)
    del content[0][3]["Step-1"][-1]["Score Summary"]["Flexibility"]
    content[0][4] = None
    (sample,) = to_samples(read_ratings(save(tmp_path / "r.json", content)), RUBRIC, SCENARIOS)
    assert set(sample.human) == {"rater1"}
    gone = {"step1.flexibility", "step1.overall", "total.total"}
    assert {f"{s.name}.{d.name}" for s, d in RUBRIC.scored} - set(sample.human["rater1"]) == gone


def test_filled_up_items_count_as_blank(tmp_path: Path) -> None:
    content = plain(tmp_path)
    items = content[0][3]["Step-1"]
    items[7] = items[6] | {"Content": ""}
    (sample,) = to_samples(read_ratings(save(tmp_path / "r.json", content)), RUBRIC, SCENARIOS)
    last = [(s.dimension, s.value) for s in sample.human_items["rater1"] if (s.step, s.item) == ("step1", 8)]
    assert last == [("fluency", 0)]
    assert not sample.responses["step1"].endswith("\n")


def test_unknown_categories_and_humaneness_are_read(tmp_path: Path) -> None:
    content = plain(tmp_path)
    content[0][3]["Step-1"][0]["Category"] = "Gardens"
    plan = content[0][3]["Step-6"][0]
    plan["Humaneness"] = plan.pop("Humaness")
    (sample,) = to_samples(read_ratings(save(tmp_path / "r.json", content)), RUBRIC, SCENARIOS)
    assert "Gardens" in {score.choice for score in sample.human_items["rater1"]}
    assert "step6.humaneness" in sample.human["rater1"]


def _purpose(value: object) -> Callable[[list[Any]], None]:
    return lambda answer: answer[4]["Step-2"][0].__setitem__("Purpose", value)


@pytest.mark.parametrize(
    ("rubric", "change", "message"),
    [
        (
            "cgpst#purpose_0_2",
            _purpose(3),
            r"A01_FS1, rater 2 \(H02\), Step-2: Purpose 3 .* range 0 to 2 of the variant purpose_0_2",
        ),
        ("cgpst", _purpose(4), "Purpose 4 is outside the range 0 to 3 of the rubric; correct"),
        ("cgpst", _purpose(1.5), "Purpose is '1.5', which is no whole number"),
        ("cgpst", _purpose(True), "Purpose is 'True', which is no whole number"),
        (
            "cgpst",
            lambda answer: answer[3]["Step-5"][0].__setitem__("Correctly Used", 0),
            "range 1 to 5 of the rubric; use the variant cgpst#correctly_used_0_5",
        ),
        (
            "cgpst",
            lambda answer: answer[3]["Step-3"][1].__setitem__("Originality", 3),
            r"rater 1 \(H01\), Step-3 item 2: Originality 3 is outside the range 0 to 2",
        ),
        ("cgpst", lambda answer: answer.__setitem__(2, "FS9"), "the scenario FS9 is not in the scenario file"),
    ],
)
def test_scores_that_no_sample_can_hold(
    rubric: str, change: Callable[[list[Any]], None], message: str, tmp_path: Path
) -> None:
    content = plain(tmp_path)
    change(content[0])
    entries = read_ratings(save(tmp_path / "r.json", content))
    with pytest.raises(UserError, match=message):
        to_samples(entries, load_rubric(rubric), SCENARIOS)


def test_repeated_ids_and_other_rubrics_are_refused(aut_rubric: Rubric) -> None:
    with pytest.raises(UserError, match="A01_FS1: the id occurs twice"):
        to_samples([entry(), entry()], RUBRIC, SCENARIOS)
    with pytest.raises(UserError, match="the rubric aut has the steps"):
        to_samples([entry()], aut_rubric, SCENARIOS)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{}", "a rating file is a JSON list of answers"),
        ("[", "not valid JSON"),
        ("[" * 100_000, "not valid JSON .nested too deeply"),
        ('[{"id": 1}]', r"answer 1: needs \[id"),
        ('[[1, [], "FS1"]]', "answer 1: the id '1' is no text"),
        ('[["A01_FS1", "H01", "FS1"]]', r"answer 1 \(A01_FS1\): the second element"),
        ('[["A01_FS1", ["H01"], "FS1", []]]', "rater 1: the scores have to be an object"),
        ('[["A01_FS1", ["H01"], "FS1", {"Step-1": {}}]]', "Step-1: needs a list of rows"),
        ('[["A01_FS1", ["H01"], "FS1", {"Step-1": [1]}]]', "Step-1, row 1: a row has to be an object"),
        ('[["A", ["H"], "F", {"Step-1": [{"Score Summary": {}, "x": 1}]}]]', "Score Summary has to stand in a row"),
        ('[["A", ["H"], "F", {"Step-1": [{"x": [1]}]}]]', "row 1, x: needs a text or a number"),
        ('[["A", ["H"], "F", {"Step-1": [], "Step-1": []}]]', "repeated keys Step-1"),
    ],
)
def test_what_is_no_rating_file(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text(content)
    with pytest.raises(UserError, match=message):
        read_ratings(path)


CELLS = st.none() | st.booleans() | st.integers(-99, 99) | st.floats(allow_nan=False, allow_infinity=False) | st.text()
KEYS = st.text().filter(lambda key: key != "Score Summary")
ROWS = st.lists(st.dictionaries(KEYS, CELLS) | st.fixed_dictionaries({"Score Summary": st.dictionaries(KEYS, CELLS)}))
PARTS = st.none() | st.dictionaries(KEYS, ROWS | CELLS)
ANSWERS = st.tuples(st.text(), st.lists(st.text()), st.text(), PARTS, PARTS).map(list)


@given(st.lists(ANSWERS, max_size=3))
def test_nothing_of_a_rating_file_is_lost(tmp_path_factory: pytest.TempPathFactory, content: list[Any]) -> None:
    path = tmp_path_factory.mktemp("ratings") / "r.json"
    path.write_bytes(json.dumps(content, ensure_ascii=False, indent=4).encode())
    write_ratings(path.with_name("out.json"), read_ratings(path), "\n")
    assert path.with_name("out.json").read_bytes() == path.read_bytes()


def test_half_a_surrogate_pair_is_kept_in_files_and_replaced_in_samples(tmp_path: Path) -> None:
    content = plain(tmp_path)
    content[0][3]["Step-6"][0]["Content"] = "half \ud800 a pair"
    entries = read_ratings(save(tmp_path / "r.json", content))
    write_ratings(tmp_path / "out.json", entries)
    assert read_ratings(tmp_path / "out.json") == entries
    (sample,) = to_samples(entries, RUBRIC, SCENARIOS)
    assert sample.responses["step6"] == "half � a pair"


@pytest.mark.parametrize(
    ("text", "errors"),
    [
        (GRID, 0),
        ("| ID | A | B | Sum |\n|---|---|---|---|\n| **1** | 1 | 2 | 3 |\n| 2 | 2 | 1 | 3 |\n| Total | 3 | 3 | 6 |", 0),
        ("1 | 1 | 2 | 3\n2 | 2 | 1 | 4", 1),
        ("Solution 1 | 1 | 1 | 2\nSolution 2 | 2 | 1 | 3", 1),
        ("ID | A | B\n1 | 1 | 2\n2 | 2 | 1", 2),
        ("ID | A | B | Total\n1 | 1 | 2\n2 | 2 | 1.5 | 3", 3),
    ],
)
def test_grids(text: str, errors: int) -> None:
    grid = read_grid(f"Some words.\n{text}\n\nThe best is 1.")
    assert grid is not None
    assert len(grid_errors(grid)) == errors
    assert rule_score(errors) == 5 - errors


@pytest.mark.parametrize("text", ["", "no grid here", "a | b | c\nd | e | f"])
def test_texts_without_a_grid(text: str) -> None:
    assert read_grid(text) is None


@given(st.text(alphabet="|0123456789 -\n:*aT.", max_size=80))
def test_any_text_is_read(text: str) -> None:
    grid = read_grid(text)
    assert grid is None or (1 <= rule_score(len(grid_errors(grid))) <= 5)
