"""What is noted beside adapters: read back, and held against what they are asked and evaluated on."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scripted_methods import CGPST

from inference.adapter_notes import (
    ANALYST_NOTE,
    JUDGE_NOTE,
    AnalystNote,
    JudgeNote,
    Recipe,
    check_trained_for,
    copy_note,
    judge_note,
    judge_prompts,
    note_of,
    read_analyst,
    refuse_trained_on,
    write_note,
)
from inference.errors import UserError
from inference.judges import JudgeConfig
from inference.records import Sample
from inference.rubric import Rubric, load_rubric

SAMPLES = [Sample(id=name, scenario="Sea", responses={"step1": "1. Boats."}) for name in ("b", "a", "c")]
Make = Callable[..., str]


@pytest.fixture
def adapter(tmp_path: Path) -> Make:
    """Makes an adapter's directory with a note: of a judge with a recipe, of an analyst with a profile, or none."""

    def make(name: str, recipe: Recipe | None = None, profile: str | None = None, **changes: Any) -> str:
        folder = tmp_path / name
        folder.mkdir()
        if recipe:
            write_note(folder, judge_note(CGPST, recipe, SAMPLES[:2]).model_copy(update=changes))
        if profile:
            known = {"rubric": f"cgpst@{CGPST.digest}", "prompts": "0" * 12, "trained_on": ("a",), "simulated": True}
            write_note(folder, AnalystNote.model_validate({**known, "profile": profile, **changes}))
        return str(folder)

    return make


def judge(method: str, adapter: str | None, analyst: str | None = None, **settings: Any) -> JudgeConfig:
    """Asked over HTTP, so that no weights are needed."""
    model = {"engine": "openai", "model": "served", "base_url": "http://127.0.0.1:1/v1"}
    chosen = {"id": "j", "method": method, **model, "adapter": adapter, **settings}
    if analyst:
        chosen["analyst"] = {**model, "adapter": analyst}
    return JudgeConfig.model_validate(chosen)


def test_a_note_is_read_back(adapter: Make) -> None:
    note = note_of(Path(adapter("raw", "sft_raw")))
    assert note == judge_note(CGPST, "sft_raw", SAMPLES[:2])
    assert isinstance(note, JudgeNote)
    assert note.trained_on == ("a", "b")
    assert len(note.dimensions) == 23
    of_evidence = judge_note(CGPST, "sft_evidence", SAMPLES)
    assert set(note.dimensions) - set(of_evidence.dimensions) == {"step1.flexibility", "step3.flexibility"}
    assert isinstance(note_of(Path(adapter("analyst", profile="chat"))), AnalystNote)
    assert note_of(Path(adapter("none"))) is None


def test_the_prompts_of_a_judge_have_a_digest(aut_rubric: Rubric, plan_rubric: Rubric) -> None:
    recipes: tuple[Recipe, ...] = ("sft_raw", "sft_evidence")
    rubrics = (CGPST, aut_rubric, plan_rubric)
    digests = [judge_prompts(rubric, recipe) for rubric in rubrics for recipe in recipes]
    assert len(set(digests)) == len(digests)
    # The range of a score stands in no prompt.
    assert judge_prompts(load_rubric("cgpst#purpose_0_2"), "sft_raw") == digests[0]


def test_what_was_trained_for_it_passes_and_so_does_what_says_nothing(adapter: Make) -> None:
    raw, evidence, old = adapter("raw", "sft_raw"), adapter("evidence", "sft_evidence"), adapter("old")
    compact, chat = adapter("compact", profile="compact"), adapter("chat", profile="chat")
    judges = [
        judge("compact", raw),
        judge("compact", old),
        judge("compact_creaeval", evidence, compact),
        judge("compact_creaeval", old, old),
        judge("compact_creaeval", old),
        judge("compact_creaeval", evidence, evidence_file="e.json"),
        judge("creaeval", None, chat),
        judge("direct", raw),
    ]
    check_trained_for(judges, CGPST)


@pytest.mark.parametrize(
    ("method", "own", "analyst", "words"),
    [
        ("compact", {"recipe": "sft_evidence"}, None, "`recipe: sft_evidence`, but method compact needs sft_raw; use"),
        ("compact_creaeval", {"recipe": "sft_raw"}, {"profile": "compact"}, "use `method: compact`, or another"),
        ("compact", {"profile": "compact"}, None, r"own is an analyst's; give it to the `analyst`"),
        ("compact_creaeval", {}, {"recipe": "sft_evidence"}, "a judge's, which writes no evidence"),
        ("compact_creaeval", {"recipe": "sft_evidence"}, None, "give an `analyst` with an adapter of its own"),
        ("compact_creaeval", {}, {"profile": "chat"}, "`profile: chat`, but method compact_creaeval needs compact"),
        ("creaeval", {}, {"profile": "compact"}, "use `method: compact_creaeval`, or another analyst"),
        ("compact", {"recipe": "sft_raw", "rubric": "plan@0123"}, None, "for the rubric plan@0123, but is asked about"),
        ("creaeval", {}, {"profile": "chat", "rubric": "cgpst@0123"}, "analyst was trained for the rubric cgpst@0123"),
        ("compact", {"recipe": "sft_raw", "prompts": "0123"}, None, "on the prompts 0123, but this program asks with"),
    ],
)
def test_what_was_trained_for_something_else_is_refused(
    method: str, own: dict[str, Any], analyst: dict[str, Any] | None, words: str, adapter: Make
) -> None:
    one = judge(method, adapter("own", **own), None if analyst is None else adapter("analyst", **analyst))
    with pytest.raises(UserError, match=words) as refused:
        check_trained_for([one], CGPST)
    assert str(refused.value).startswith("judge j: ")


def test_merged_weights_have_the_note_of_their_adapter(adapter: Make, tmp_path: Path) -> None:
    own, merged = Path(adapter("raw", "sft_raw")), tmp_path / "merged"
    merged.mkdir()
    copy_note(own, merged)
    copy_note(Path(adapter("none")), tmp_path)
    assert note_of(merged) == note_of(own)
    assert note_of(tmp_path) is None
    asked = JudgeConfig(id="j", engine="hf", model=str(merged), method="compact")
    check_trained_for([asked], CGPST)
    with pytest.raises(UserError, match=r"merged has learned from 1 of the responses to be evaluated on \(b\)"):
        refuse_trained_on([asked], SAMPLES[:1])
    evidence = JudgeConfig(id="j", engine="hf", model=str(merged), method="compact_creaeval")
    with pytest.raises(UserError, match="merged was trained with `recipe: sft_raw`, but method compact_creaeval needs"):
        check_trained_for([evidence], CGPST)


def test_a_variant_of_the_rubric_is_another_one(adapter: Make) -> None:
    with pytest.raises(UserError, match="was trained for the rubric"):
        check_trained_for([judge("compact", adapter("raw", "sft_raw"))], load_rubric("cgpst#purpose_0_2"))


@pytest.mark.parametrize("name", [JUDGE_NOTE, ANALYST_NOTE])
@pytest.mark.parametrize(
    ("content", "words"),
    [("{", "not valid JSON"), ("[]", "Field required"), ('{"rubric": 3}', "rubric: Input should be a valid string")],
)
def test_a_damaged_note_is_named(name: str, content: str, words: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(UserError, match=rf"{name}: .*{words}"):
        note_of(tmp_path)


def test_an_analyst_from_before_the_length_of_rows_was_noted_is_read(adapter: Make, tmp_path: Path) -> None:
    path = Path(adapter("analyst", profile="compact"))
    content = json.loads((path / ANALYST_NOTE).read_text())
    del content["max_row_tokens"]
    (path / ANALYST_NOTE).write_text(json.dumps(content))
    assert read_analyst(path).max_row_tokens is None
    with pytest.raises(UserError, match="so it is no analyst's"):
        read_analyst(tmp_path)


def test_responses_that_were_learned_from_are_no_test(adapter: Make) -> None:
    learned = judge("compact", adapter("raw", "sft_raw"))
    refuse_trained_on([learned], SAMPLES[2:])
    with pytest.raises(UserError, match=r"raw has learned from 2 of the responses to be evaluated on \(b, a\)"):
        refuse_trained_on([learned], SAMPLES)
    analysed = judge("compact_creaeval", adapter("old"), adapter("analyst", profile="compact"))
    with pytest.raises(UserError, match=r"analyst has learned from 1 of the responses to be evaluated on \(a\)"):
        refuse_trained_on([analysed], SAMPLES)
    refuse_trained_on([judge("compact", adapter("none")), judge("compact", None)], SAMPLES)
