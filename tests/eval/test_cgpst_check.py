"""``data check``: each kind of fault is found where it is, and a sound file has none."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cgpst_files import GRID, RUBRIC, answers, entry, plain, save, scenario_file
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eval.benchmarks.cgpst.check import check_file, inspect_file
from eval.benchmarks.cgpst.findings import Finding
from eval.benchmarks.cgpst.ratings import write_ratings
from eval.benchmarks.cgpst.score_json import write_scores
from eval.cli import main
from inference.aggregation import aggregate
from inference.errors import UserError
from inference.records import Judgement

Change = Callable[[Any], Any]
VARIANT_NOTE = "is outside the variant purpose_0_2"


def faults(found: list[Finding]) -> list[tuple[str, str, str]]:
    return [(f.kind, f.place, f.message) for f in found if VARIANT_NOTE not in f.message and "grid" not in f.place]


def step(answer: list[Any], number: int, rater: int = 1) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = answer[2 + rater][f"Step-{number}"]
    return rows


def _pad(answer: list[Any]) -> None:
    """Step-1 as the released writer leaves it for seven challenges; the eighth was rated blank."""
    for rater in (1, 2):
        rows = step(answer, 1, rater)
        eighth, summary = rows[7], rows[8]["Score Summary"]
        rows[7] = rows[6] | {"Content": ""}
        for key, value in (
            ("Fluency", 1),
            ("Originality", eighth["Originality"]),
            ("Elaboration", eighth["Elaboration"]),
        ):
            summary[key] -= value
            summary["Overall"] -= value
            answer[2 + rater]["Total Score"] -= value


def _replace(row: dict[str, Any], **cells: Any) -> None:
    row.clear()
    row.update(cells)


H01, H02 = "A01_FS1, rater 1 (H01)", "A01_FS1, rater 2 (H02)"


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        (lambda a: step(a, 1)[8]["Score Summary"].update(Originality=0), ("error", f"{H01}, Step-1", "items give")),
        (lambda a: step(a, 3)[8]["Score Summary"].update(Flexibility=1), ("error", f"{H01}, Step-3", "items give 3")),
        (lambda a: step(a, 3)[8]["Score Summary"].update(Fluency=8), ("error", f"{H01}, Step-3", "items give 7")),
        (lambda a: step(a, 6)[0].update(Overall=1), ("error", f"{H01}, Step-6", "Overall is 1, but its parts add up")),
        (lambda a: a[4].update({"Total Score": 1}), ("error", H02, "Total Score is 1, but the steps' Overall add up")),
        (lambda a: step(a, 6)[0].pop("Overall"), ("note", f"{H01}, Step-6", "Overall is missing; it is computed")),
        (lambda a: a[1].pop(), ("error", "A01_FS1", "needs 2 raters, has 1")),
        (lambda a: a[1].pop(), ("error", "A01_FS1, rater 2", "has scores, but the list of raters does not name")),
        (lambda a: a.pop(), ("error", H02, "the scores of this rater are missing")),
        (lambda a: a.__setitem__(3, None), ("error", H01, "the scores of this rater are missing")),
        (lambda a: a.__setitem__(1, ["H01", "H01"]), ("error", "A01_FS1", "two raters have the same name H01")),
        (lambda a: a.__setitem__(2, "FS9"), ("error", "A01_FS1", "the id does not end in the scenario, which is FS9")),
        (
            lambda a: step(a, 2, 2)[0].update(Purpose=4),
            ("error", f"{H02}, Step-2", "Purpose 4 is outside the range 0 to 3"),
        ),
        (
            lambda a: step(a, 5)[0].update({"Correctly Used": 0, "Overall": 0}),
            ("note", f"{H01}, Step-5", "it needs the variant cgpst#correctly_used_0_5"),
        ),
        (lambda a: step(a, 2)[0].update(Focus=5.5), ("error", f"{H01}, Step-2", "Focus is '5.5', which is no whole")),
        (lambda a: step(a, 2)[0].update(Focus="5"), ("error", f"{H01}, Step-2", "Focus is '5', which is no whole")),
        (lambda a: step(a, 2)[0].update(Focus=True), ("error", f"{H01}, Step-2", "Focus is 'True', which is no whole")),
        (lambda a: step(a, 1)[0].update(Originality=3), ("error", f"{H01}, Step-1 item 1", "Originality 3 is outside")),
        (
            lambda a: step(a, 1)[0].update(Category="Gardens"),
            ("note", f"{H01}, Step-1 item 1", "category 'Gardens' is unknown; it is kept and counted like others"),
        ),
        (
            lambda a: step(a, 1)[0].update(Category="law and justice"),
            ("note", f"{H01}, Step-1 item 1", "like others; likely 'Law & Justice' is meant"),
        ),
        (
            lambda a: a.__setitem__(slice(0, 3, 2), ["A01_FS77", "FS77"]),
            ("note", "scenario FS77", "is none of the ten published ones, FS1 to FS10"),
        ),
        (
            lambda a: step(a, 3)[3].update(Invalid="Dull — so"),
            ("note", f"{H01}, Step-3 item 4", "reason 'Dull — so' is"),
        ),
        (
            lambda a: step(a, 3)[3].update(Invalid="Solution — a remedy"),
            ("note", f"{H01}, Step-3 item 4", "the reasons are Perhaps, Why, Duplicate, Blank"),
        ),
        (lambda a: step(a, 3)[3].update(Originality=1), ("error", f"{H01}, Step-3 item 4", "both Invalid and ratings")),
        (lambda a: step(a, 3)[3].pop("Invalid"), ("error", f"{H01}, Step-3 item 4", "neither ratings nor Invalid")),
        (lambda a: step(a, 4)[1].update(Invalid="Why"), ("error", f"{H01}, Step-4 item 2", "both Invalid and ratings")),
        (
            lambda a: _replace(step(a, 4)[1], Content="2. The criterion number 2.", Invalid="Why"),
            ("error", f"{H01}, Step-4 item 2", "carries Invalid, but every criterion counts"),
        ),
        (lambda a: step(a, 1)[2].pop("Elaboration"), ("error", f"{H01}, Step-1 item 3", "Elaboration is missing")),
        (lambda a: step(a, 1).pop(0), ("error", f"{H01}, Step-1", "needs 8 items, has 7")),
        (lambda a: step(a, 1).pop(), ("error", f"{H01}, Step-1", "needs 1 Score Summary, has 0")),
        (lambda a: step(a, 2).append(step(a, 2)[0]), ("error", f"{H01}, Step-2", "needs 1 text, has 2")),
        (lambda a: a[3].pop("Step-5"), ("error", f"{H01}, Step-5", "the step is missing")),
        (lambda a: step(a, 2)[0].pop("Focus"), ("error", f"{H01}, Step-2", "Focus is missing")),
        (lambda a: step(a, 1)[1].pop("Content"), ("error", f"{H01}, Step-1", "Content is missing, or no text")),
        (
            lambda a: step(a, 6)[0].update(Humaneness=step(a, 6)[0].pop("Humaness")),
            ("note", f"{H01}, Step-6", "Humaneness is spelled Humaness in the official files; both are read"),
        ),
        (
            lambda a: step(a, 6)[0].update(Humanness=step(a, 6)[0].pop("Humaness")),
            ("note", f"{H01}, Step-6", "the key Humanness is unknown and is not read; write Humaness if that is meant"),
        ),
        (lambda a: a[3].update({"Step-7": []}), ("note", H01, "the key Step-7 is unknown")),
        (
            lambda a: step(a, 1)[7].update(Content=" "),
            ("error", f"{H01}, Step-1 item 8", "empty content with ratings of"),
        ),
        (_pad, ("note", f"{H02}, Step-1 item 8", "the known slip of the released writer")),
        (
            lambda a: step(a, 6, 2)[0].update(Content="x"),
            ("error", f"{H02}, Step-6", "differs from the copy of rater 1"),
        ),
        (lambda a: step(a, 1, 2)[4].update(Content="x"), ("error", f"{H02}, Step-1 item 5", "differs from the copy")),
    ],
)
def test_a_fault_is_found_at_its_place(change: Change, finding: tuple[str, str, str], tmp_path: Path) -> None:
    content = plain(tmp_path)
    change(content[0])
    found = faults(check_file(save(tmp_path / "r.json", content)))
    kind, place, message = finding
    assert [f for f in found if f[:2] == (kind, place) and message in f[2]], found


def test_a_sound_file_has_no_findings(tmp_path: Path) -> None:
    write_ratings(tmp_path / "r.json", [entry("A01_FS1"), entry("B01_FS2", "FS2")])
    checked = inspect_file(tmp_path / "r.json")
    assert faults(checked.findings) == []
    assert (checked.kind, checked.samples, checked.errors) == ("ratings", 2, 0)


def test_filled_up_items_are_the_only_finding_where_the_summary_knows_better(tmp_path: Path) -> None:
    content = plain(tmp_path)
    _pad(content[0])
    found = faults(check_file(save(tmp_path / "r.json", content)))
    assert [place for _, place, _ in found] == [f"{H01}, Step-1 item 8", f"{H02}, Step-1 item 8"]


def test_repeated_ids(tmp_path: Path) -> None:
    found = faults(check_file(save(tmp_path / "r.json", plain(tmp_path, entry(), entry()))))
    assert found == [("error", "A01_FS1", "the id occurs more than once")]


def test_a_value_that_rules_out_a_variant_is_noted_once(tmp_path: Path) -> None:
    content = plain(tmp_path, entry(), entry("A02_FS1"))
    for answer in content:
        for rater in (1, 2):
            row = step(answer, 2, rater)[0]
            change = 3 - row["Purpose"]
            row.update(Purpose=3, Overall=row["Overall"] + change)
            answer[2 + rater]["Total Score"] += change
    noted = [f for f in check_file(save(tmp_path / "r.json", content)) if VARIANT_NOTE in f.message]
    assert [(f.kind, f.place, f.message) for f in noted] == [
        ("note", f"{H01}, Step-2", f"Purpose 3 {VARIANT_NOTE} (in 4 of the file's scores)")
    ]


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        (GRID, "no error: the rule gives Correctly Used 5, raters gave"),
        (
            GRID.replace("1 | 1 | 1", "1 | 2 | 1", 1),
            "criterion 1 does not hold each rank from 1 to 8 once; the total of",
        ),
        ("nothing", "no grid can be read in the response"),
    ],
)
def test_the_grid_is_compared_with_the_raters(grid: str, message: str, tmp_path: Path) -> None:
    content = plain(tmp_path)
    for rater in (1, 2):
        step(content[0], 5, rater)[0]["Content"] = grid
    (found,) = [f for f in check_file(save(tmp_path / "r.json", content)) if "grid" in f.place]
    assert (found.kind, found.place) == ("note", "A01_FS1, Step-5 grid")
    assert message in found.message


def scores(tmp_path: Path) -> dict[str, Any]:
    given = answers()
    judged = Judgement(
        sample_id="A01_FS1",
        judge="judge",
        method="direct",
        rubric="cgpst@0",
        scores=aggregate(RUBRIC, given),
        items=tuple(score for score in given if score.item),
    )
    write_scores(tmp_path / "made.json", [judged], RUBRIC)
    content: dict[str, Any] = json.loads((tmp_path / "made.json").read_text())
    # The judge's items that don't count have no further scores; a file without fault has them.
    item = content["A01_FS1"]["Step-3"]["each_solution"][3]
    item.update(Elaboration=0, Originality=0)
    return content


def responses(_: Path) -> dict[str, Any]:
    return {"A01_FS1": {f"Step-{number}": "text" for number in range(1, 7)}}


def evidence(_: Path) -> dict[str, Any]:
    steps = {}
    for one in RUBRIC.answered:
        texts = {
            d.title: "Environment" if d.distinct else "seen" for d in one.dimensions if not d.choices and not d.sum_of
        }
        texts = {"Humaness" if key == "Humaneness" else key: text for key, text in texts.items()}
        found: dict[str, Any] = texts if one.items is None else {f"item_{i + 1}": texts for i in range(one.items.count)}
        steps[one.label] = {"sot_evidence": found, "task_status_memory": "so far"}
    return {"A01_FS1": json.loads(json.dumps(steps))}


@pytest.mark.parametrize(
    ("make", "change", "finding"),
    [
        (responses, lambda c: c["A01_FS1"].pop("Step-2"), ("error", "A01_FS1, Step-2", "the step is missing")),
        (responses, lambda c: c["A01_FS1"].update({"Step-2": ["a", 1]}), ("error", "A01_FS1, Step-2", "needs a text")),
        (responses, lambda c: c["A01_FS1"].update({"Step-2": " "}), ("note", "A01_FS1, Step-2", "response is empty")),
        (responses, lambda c: c.update(A01=c.pop("A01_FS1")), ("error", "A01", "does not end in a scenario")),
        (responses, lambda c: c.update(A02_FS1=[]), ("error", "A02_FS1", "needs an object of steps")),
        (
            evidence,
            lambda c: c["A01_FS1"]["Step-1"]["sot_evidence"].pop("item_8"),
            ("error", "A01_FS1, Step-1", "needs item_1 to item_8 in order, has 7"),
        ),
        (
            evidence,
            lambda c: c["A01_FS1"]["Step-1"]["sot_evidence"]["item_2"].pop("Flexibility"),
            ("error", "A01_FS1, Step-1 item_2", "evidence on Flexibility is missing"),
        ),
        (
            evidence,
            lambda c: c["A01_FS1"]["Step-3"]["sot_evidence"]["item_2"].update(Flexibility="about gardens"),
            ("note", "A01_FS1, Step-3 item_2", "'about gardens', names none of the list"),
        ),
        (
            evidence,
            lambda c: c["A01_FS1"]["Step-3"]["sot_evidence"]["item_2"].update(Flexibility="It is law and justice."),
            ("note", "A01_FS1, Step-3 item_2", "names none of the list; likely 'Law & Justice' is meant"),
        ),
        (
            evidence,
            lambda c: c.update(A01_FS77=c.pop("A01_FS1")),
            ("note", "scenario FS77", "is none of the ten published ones, FS1 to FS10"),
        ),
        (
            responses,
            lambda c: c.update({name: c["A01_FS1"] for name in ("A02_FS1", "A01_FS2")}),
            ("note", "the file", "the scenarios have unequal numbers of answers: FS1 2, FS2 1"),
        ),
        (
            evidence,
            lambda c: c["A01_FS1"]["Step-6"].pop("task_status_memory"),
            ("error", "A01_FS1, Step-6", "task_status_memory is missing"),
        ),
        (
            scores,
            lambda c: c["A01_FS1"]["Step-1"]["summary"].update(Elaboration=0),
            ("error", "A01_FS1, Step-1", "Elaboration is 0, but the items add up to"),
        ),
        (
            scores,
            lambda c: c["A01_FS1"]["Step-2"].update(Overall=0),
            ("error", "A01_FS1, Step-2", "Overall is 0, but its parts add up to"),
        ),
        (
            scores,
            lambda c: c["A01_FS1"]["Step-3"]["each_solution"][1].update(Originality=4),
            ("error", "A01_FS1, Step-3 item 2", "Originality 4 is outside the range 0 to 2"),
        ),
        (
            scores,
            lambda c: c["A01_FS1"]["Step-4"]["each_criteria"].pop(),
            ("error", "A01_FS1, Step-4", "needs 5 items, has 4"),
        ),
        (
            scores,
            lambda c: c["A01_FS1"]["Step-4"]["each_criteria"][1].update(id=7),
            ("error", "A01_FS1, Step-4 item 2", "needs an object with id 2"),
        ),
        (
            scores,
            lambda c: c["A01_FS1"]["Step-6"].update(Impact=None),
            ("note", "A01_FS1, Step-6", "Impact has no score"),
        ),
        (
            scores,
            lambda c: c["A01_FS1"]["Step-6"].pop("Impact"),
            ("error", "A01_FS1, Step-6", "Impact is missing"),
        ),
    ],
)
def test_faults_of_exchanged_files(
    make: Callable[[Path], dict[str, Any]], change: Change, finding: tuple[str, str, str], tmp_path: Path
) -> None:
    content = make(tmp_path)
    sound = inspect_file(save(tmp_path / "f.json", content))
    assert (sound.kind, faults(sound.findings)) == (make.__name__, [])
    change(content)
    found = faults(check_file(save(tmp_path / "f.json", content)))
    kind, place, message = finding
    assert [f for f in found if f[:2] == (kind, place) and message in f[2]], found


def test_evidence_may_say_more_than_the_category(tmp_path: Path) -> None:
    content = evidence(tmp_path)
    for text in ("It belongs to Business & Commerce.", "does not apply", "Does not apply."):
        content["A01_FS1"]["Step-1"]["sot_evidence"]["item_1"]["Flexibility"] = text
        assert check_file(save(tmp_path / "f.json", content)) == [], text


@pytest.mark.parametrize(
    ("raters", "notes"),
    [
        ([["H01", "H02"]] * 3, []),
        (
            [["H01", "H02"], ["H01", "H02"], ["H01", "H03"]],
            [("A03_FS1", "the raters are others than usual: H01, H03, in 2 of the answers H01, H02")],
        ),
        (
            [["H01", "H02"], ["H02", "H01"], ["H01", "H02"]],
            [("A02_FS1", "the raters are swapped: H02, H01, in 2 of the answers H01, H02")],
        ),
        (
            [["H01", "H02"], ["H02", "H01"], ["H03", "H04"], ["H01", "H02"]],
            [
                (
                    "the file",
                    "the answers have 3 different pairs of raters: H01, H02 (2); H02, H01 (1); H03, H04 (1)",
                )
            ],
        ),
    ],
)
def test_raters_that_change(raters: list[list[str]], notes: list[tuple[str, str]], tmp_path: Path) -> None:
    content = plain(tmp_path, *[entry(f"A{number:02}_FS1") for number in range(1, len(raters) + 1)])
    for answer, names in zip(content, raters, strict=True):
        answer[1] = names
    found = faults(check_file(save(tmp_path / "r.json", content)))
    assert found == [("note", *note) for note in notes]


@pytest.mark.parametrize("content", [[], {}])
def test_nothing_is_an_error(content: Any, tmp_path: Path) -> None:
    checked = inspect_file(save(tmp_path / "f.json", content))
    assert [str(finding) for finding in checked.findings] == ["error  the file: nothing is in it"]


def test_a_folder_is_one_clear_sentence(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "folder.jsonl"):
        path.mkdir(exist_ok=True)
        with pytest.raises(UserError, match=r": is a folder; name a file in it$"):
            check_file(path)


def test_scenario_files(tmp_path: Path) -> None:
    path = scenario_file(tmp_path)
    assert inspect_file(path).summary == "scenarios: 3 scenarios, 0 errors, 0 notes"
    save(path, {"FS1": {"theme": "", "text": 3}})
    assert [(f.place, f.message) for f in check_file(path)] == [
        ("FS1", "theme is empty"),
        ("FS1", "text is '3'; a text is needed"),
    ]


@pytest.mark.parametrize("content", [3, {"a": 1}, {"a": {"b": "c"}}])
def test_other_files_are_refused(content: Any, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is none of the benchmark's files"):
        check_file(save(tmp_path / "f.json", content))


def test_the_published_file_has_no_error(data_dir: Path) -> None:
    checked = inspect_file(data_dir / "cgpst" / "data_A.json")
    assert checked.summary == "ratings: 1 sample, 0 errors, 1 note"
    (note,) = checked.findings
    assert "criterion 4" in note.message
    assert "the rule gives Correctly Used 4, raters gave 4, 4" in note.message


ODD = st.none() | st.booleans() | st.floats() | st.integers() | st.text(alphabet="a1|— \ud800\n", max_size=4)
JSON = st.recursive(
    ODD, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
)


def _places(node: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) in a JSON value."""
    pairs = list(node.items()) if isinstance(node, dict) else list(enumerate(node)) if isinstance(node, list) else []
    return [found for key, value in pairs for found in [(node, key), *_places(value)]]


@pytest.mark.parametrize("make", [lambda path: plain(path), scores, responses, evidence])
@given(st.data())
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_fault_is_a_finding_or_refused(make: Callable[[Path], Any], tmp_path: Path, data: st.DataObject) -> None:
    content = make(tmp_path)
    for _ in range(data.draw(st.integers(1, 3))):
        container, key = data.draw(st.sampled_from(_places(content)))
        container[key] = data.draw(JSON)
    try:
        checked = inspect_file(save(tmp_path / "f.json", content))
    except UserError:
        return
    assert all(finding.model_dump_json() and str(finding).encode() for finding in checked.findings)


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Runs ``python -m eval data check`` in this process: exit code, stdout, stderr."""

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["eval", "data", "check", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        shown = capsys.readouterr()
        return int(stop.value.code or 0), shown.out, shown.err

    return run


Command = Callable[..., tuple[int, str, str]]


def test_command_lists_findings_and_counts_them(command: Command, tmp_path: Path) -> None:
    content = plain(tmp_path)
    content[0][4]["Total Score"] += 1
    code, out, _ = command(save(tmp_path / "r.json", content))
    assert code == 1
    assert f"error  {H02}: Total Score is " in out
    assert out.splitlines()[-1].startswith("ratings: 1 sample, 1 error, ")


def test_errors_come_first_and_notes_of_a_kind_on_one_line(command: Command, tmp_path: Path) -> None:
    content = plain(tmp_path, *[entry(f"A{number:02}_FS1") for number in range(1, 4)])
    for answer in content:
        step(answer, 1)[0]["Category"] = step(answer, 1, 2)[0]["Category"] = "Gardens"
        step(answer, 5, 1)[0]["Content"] = step(answer, 5, 2)[0]["Content"] = "nothing"
    content[2][4]["Total Score"] += 1
    path = save(tmp_path / "r.json", content)
    code, out, _ = command(path)
    lines = [line for line in out.splitlines() if VARIANT_NOTE not in line]
    assert code == 1
    assert lines[0].startswith("error  ")
    assert [line[:6] for line in lines[:-1]] == sorted(line[:6] for line in lines[:-1])
    assert any(line.startswith("error  A03_FS1, rater 2 (H02): Total Score is ") for line in lines)
    assert any(line.startswith("note   6 × categories outside the list; the first: A01_FS1, rater 1") for line in lines)
    assert any(line.startswith("note   3 × grids of Step-5 that have errors, or that a rater ") for line in lines)
    assert lines[-1].startswith("ratings: 3 samples, ")
    assert lines[-1].endswith(" notes (all of them: --notes)")
    _, out, _ = command(path, "--notes")
    assert len(out.splitlines()) == len(check_file(path)) + 1
    assert "--notes" not in out
    _, out, _ = command(path, "--json")
    assert len(out.splitlines()) == len(check_file(path))


def test_command_as_json(command: Command, tmp_path: Path) -> None:
    code, out, err = command(save(tmp_path / "f.json", responses(tmp_path)), "--json")
    assert (code, out) == (0, "")
    assert err == "responses: 1 sample, 0 errors, 0 notes\n"
    code, out, _ = command(save(tmp_path / "f.json", {"A01_FS1": {"Step-1": " "}}), "--json")
    assert code == 1
    assert {json.loads(line)["kind"] for line in out.splitlines()} == {"note", "error"}


def test_command_on_another_file(command: Command, tmp_path: Path) -> None:
    code, out, err = command(tmp_path / "none.json")
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert "no such file" in err
