"""Judges in a config: grids, options, ids, analysts, and evidence that judges share."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from scripted_methods import CGPST, as_sample, filled, simulated

from inference.engines.base import EngineConfig
from inference.engines.scripted import ScriptedEngine
from inference.judgement_file import JudgementFile
from inference.judges import JudgeConfig, JudgeGrid, Judges, Price
from inference.records import Call, Completion, Judgement, Sample, Usage
from inference.runner import JudgeRun, run_judges
from inference.store import Store

SCRIPTED = {"engine": "scripted", "model": "scripted"}


def named(*names: str) -> list[dict[str, Any]]:
    return [{"id": name, "engine": "scripted", "model": name} for name in names]


def grid(**settings: Any) -> tuple[JudgeConfig, ...]:
    return JudgeGrid.model_validate({"judges": named("j1"), "methods": ["creaeval"], **settings}).expand()


def judge(**settings: Any) -> JudgeConfig:
    return JudgeConfig.model_validate({"id": "judge", **SCRIPTED, **settings})


def test_a_grid_is_every_model_with_every_method_and_for_creaeval_every_analyst() -> None:
    judges = grid(judges=named("j1", "j2"), analysts=named("a1", "a2"), methods=["direct", "creaeval"])
    assert [one.id for one in judges] == [
        *("j1.direct", "j1.creaeval.a1", "j1.creaeval.a2"),
        *("j2.direct", "j2.creaeval.a1", "j2.creaeval.a2"),
    ]
    assert [(one.model, one.analyst.model if one.analyst else None) for one in judges] == [
        *(("j1", None), ("j1", "a1"), ("j1", "a2")),
        *(("j2", None), ("j2", "a1"), ("j2", "a2")),
    ]


def test_without_analysts_each_model_analyses_for_itself() -> None:
    judges = grid(judges=named("j1", "j2"))
    assert [(one.id, one.analyst, len(one.models)) for one in judges] == [
        ("j1.creaeval", None, 1),
        ("j2.creaeval", None, 1),
    ]


def test_a_grid_hands_on_settings_options_and_repeats() -> None:
    model = {"id": "j1", "engine": "scripted", "model": "m", "temperature": 0.2, "price": {"input": 1, "output": 2}}
    methods = [
        "direct",
        {"method": "direct", "judge_scope": "step", "id": "by_step"},
        {"method": "creaeval", "memory": False, "id": "no_memory"},
        {"method": "creaeval", "evidence": False, "id": "no_evidence"},
        {"method": "creaeval", "decoupled": False, "id": "coupled"},
        {"method": "creaeval", "stepwise": False, "judge_scope": "step", "id": "at_once"},
    ]
    analyst = {"id": "a1", "engine": "scripted", "model": "a", "temperature": 0.5, "max_tokens": 99}
    judges = grid(judges=[model], methods=methods, analysts=[analyst], repeats=3)
    assert [one.id for one in judges] == [
        *("j1.direct", "j1.by_step", "j1.no_memory.a1", "j1.no_evidence", "j1.coupled", "j1.at_once.a1"),
    ]
    assert [one.asked for one in judges] == ["direct", "direct", "creaeval", "direct", "tat", "creaeval"]
    assert {one.repeats for one in judges} == {3}
    assert {one.price for one in judges} == {Price(input=1, output=2)}
    options = [one.settings(2) for one in judges]
    assert {one.temperature for one in options} == {0.2}
    assert {one.repeat for one in options} == {2}
    assert [one.judge_scope for one in options] == ["response", "step", "response", "response", "response", "step"]
    assert [one.memory for one in options] == [True, True, False, True, True, True]
    assert [one.stepwise for one in options] == [True, True, True, True, True, False]
    analysts = [one.analyst for one in judges if one.analyst]
    assert {(one.model, one.temperature, one.max_tokens) for one in analysts} == {("a", 0.5, 99)}


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"methods": ["creaeval", "creaeval"]}, "twice"),
        ({"methods": ["direct", {"method": "direct", "judge_scope": "step"}]}, "twice"),
        ({"judges": named("j1", "j1")}, "twice"),
        ({"analysts": named("a1", "a1")}, "twice"),
        ({"analysts": named("a1"), "methods": ["direct", "tat"]}, "no method of the grid has an analysis"),
        (
            {"analysts": named("a1"), "methods": [{"method": "creaeval", "evidence": False}]},
            "no method of the grid has an analysis",
        ),
        (
            {"judges": named("j" * 40), "methods": [{"method": "creaeval", "id": "m" * 40}]},
            rf"made of {'j' * 40}, {'m' * 40} has more than 80 characters; give its model, method or analyst",
        ),
        (
            {"judges": named("j" * 40), "analysts": named("a" * 40)},
            f"{'j' * 40}, creaeval, {'a' * 40} has more than 80",
        ),
        ({"methods": []}, "at least 1"),
        ({"judges": []}, "at least 1"),
        ({"methods": ["sot"]}, "method"),
        ({"methods": [{"method": "direct", "id": "a b"}]}, "pattern"),
        ({"judges": [{"id": "j1", "engine": "scripted", "model": "m", "method": "direct"}]}, "method"),
    ],
)
def test_a_faulty_grid_is_refused(settings: dict[str, Any], fault: str) -> None:
    content = {"judges": named("j1"), "methods": ["creaeval"], **settings}
    with pytest.raises(ValidationError, match=fault):
        Judges.model_validate({"grid": content})


def test_judges_stand_alone_in_a_list_and_beside_a_grid() -> None:
    alone = {"id": "mine", **SCRIPTED, "method": "cot"}
    both = Judges.model_validate({"judges": alone, "grid": {"judges": named("j1"), "methods": ["tot"]}})
    assert [one.id for one in both.asked] == ["mine", "j1.tot"]
    with pytest.raises(ValidationError, match="twice"):
        Judges.model_validate({"judges": [alone, alone]})
    with pytest.raises(ValidationError, match="twice"):
        Judges.model_validate(
            {"judges": {**alone, "id": "j1.tot"}, "grid": {"judges": named("j1"), "methods": ["tot"]}}
        )


@pytest.mark.parametrize("method", ["direct", "cot", "tot", "got", "tat", "compact"])
@pytest.mark.parametrize("option", ["memory", "stepwise", "decoupled", "evidence"])
def test_ablations_belong_to_creaeval(method: str, option: str) -> None:
    with pytest.raises(ValidationError, match=f"{option}: no option of method {method}"):
        judge(method=method, **{option: False})
    assert getattr(judge(method=method, **{option: True}), option)


@pytest.mark.parametrize("method", ["cot", "tot", "got", "tat", "compact"])
def test_a_scope_belongs_to_direct_and_creaeval(method: str) -> None:
    with pytest.raises(ValidationError, match="judge_scope: no option"):
        judge(method=method, judge_scope="step")


@pytest.mark.parametrize(
    "settings",
    [{"method": "direct"}, {"method": "creaeval", "evidence": False}, {"method": "creaeval", "decoupled": False}],
)
def test_an_analyst_without_an_analysis_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="no analysis of its own"):
        judge(**settings, analyst=SCRIPTED)


@pytest.mark.parametrize(
    ("off", "idle", "value"),
    [
        ("decoupled", "judge_scope", "step"),
        ("decoupled", "memory", False),
        ("decoupled", "stepwise", False),
        ("evidence", "decoupled", False),
        ("evidence", "memory", False),
        ("evidence", "stepwise", False),
        ("stepwise", "memory", False),
    ],
)
def test_options_without_effect_are_refused(off: str, idle: str, value: object) -> None:
    with pytest.raises(ValidationError, match=f"{idle}: no effect beside `{off}: false`"):
        judge(method="creaeval", **{off: False, idle: value})


def test_a_scope_has_an_effect_without_evidence() -> None:
    assert judge(method="creaeval", evidence=False, judge_scope="step").settings(0).judge_scope == "step"


def test_what_tokens_cost() -> None:
    usage = Usage(prompt=1_000_000, cached=400_000, completion=100_000, reasoning=60_000)
    assert Price(input=2, output=10).cost(usage) == pytest.approx(3.0)
    assert Price(input=2, cached=0.5, output=10).cost(usage) == pytest.approx(0.6 * 2 + 0.4 * 0.5 + 0.1 * 10)


class Counting(ScriptedEngine):
    """Writes down its calls under the model's name, which stands in all its texts too."""

    def __init__(self, config: EngineConfig, calls: dict[str, list[Call]]) -> None:
        super().__init__(config, lambda call: Completion(text=json.dumps(filled(call.json_schema or {}, self._text))))
        self._calls = calls.setdefault(config.model, [])

    def _text(self, key: str) -> str:
        return f"{key} by {self.identity['model']}"

    async def complete(self, call: Call) -> Completion:
        self._calls.append(call)
        return await super().complete(call)


def go(
    folder: Path, samples: list[Sample], judges: tuple[JudgeConfig, ...]
) -> tuple[dict[str, list[Call]], list[JudgeRun], list[Judgement]]:
    """Calls by model, in this start; the runs; all judgements."""
    calls: dict[str, list[Call]] = {}
    with Store(folder / "calls.sqlite") as store, JudgementFile(folder / "judgements.jsonl") as sink:
        runs = asyncio.run(
            run_judges(samples, judges, CGPST, store, sink, quiet=True, build=lambda config: Counting(config, calls))
        )
        return calls, runs, list(sink.read())


SAMPLES = [as_sample(response) for response in simulated(4, 50)]


def test_evidence_of_one_analyst_is_asked_for_once_and_shared(tmp_path: Path) -> None:
    judges = grid(judges=named("j1", "j2"), analysts=named("a1"))
    calls, runs, judgements = go(tmp_path, SAMPLES, judges)
    assert {model: len(of) for model, of in calls.items()} == {"a1": 6 * 4, "j1": 4, "j2": 4}
    assert [run.sent for run in runs] == [7 * 4, 4]
    assert len({call.key({}) for call in calls["a1"]}) == 24
    first, second = judgements[:4], judgements[4:]
    assert [one.evidence for one in first] == [one.evidence for one in second]
    assert all(len(one.evidence) == 6 and len(one.calls) == 7 for one in judgements)
    assert all(len(set(one.calls) & set(other.calls)) == 6 for one, other in zip(first, second, strict=True))
    assert {call.messages for call in calls["j1"]} == {call.messages for call in calls["j2"]}


def test_judges_with_settings_of_their_own_share_the_evidence_too(tmp_path: Path) -> None:
    models = named("j1", "j2")
    models[1] |= {"temperature": 0.7, "max_tokens": 3000}
    analysts = named("a1", "a2")
    analysts[1] |= {"temperature": 0.3}
    methods: list[Any] = ["creaeval", {"method": "creaeval", "judge_scope": "step", "id": "by_step"}]
    calls, _, _ = go(tmp_path, SAMPLES, grid(judges=models, analysts=analysts, methods=methods))
    assert {model: len(of) for model, of in calls.items()} == {
        "a1": 24,
        "a2": 24,
        "j1": 2 * (4 + 24),
        "j2": 2 * (4 + 24),
    }
    assert {call.temperature for call in calls["a2"]} == {0.3}
    assert {call.temperature for call in calls["j2"]} == {0.7}
    assert {call.max_tokens for call in calls["j2"]} == {3000}
    assert 3000 not in {call.max_tokens for call in calls["a1"]}


def test_repeats_and_ablations_have_evidence_of_their_own(tmp_path: Path) -> None:
    methods: list[Any] = ["creaeval", {"method": "creaeval", "memory": False, "id": "no_memory"}]
    judges = grid(judges=named("j1", "j2"), analysts=named("a1"), methods=methods, repeats=2)
    calls, _, _ = go(tmp_path, SAMPLES, judges)
    # The first step has no memory either way, so its analysis is one and the same.
    assert len(calls["a1"]) == 4 * 2 * (6 + 5)


def test_a_model_that_judges_and_analyses_shares_its_evidence_by_itself(tmp_path: Path) -> None:
    judges = grid(judges=named("j1", "a1"), analysts=named("a1"))
    calls, _, _ = go(tmp_path, SAMPLES, judges)
    assert {model: len(of) for model, of in calls.items()} == {"a1": 24 + 4, "j1": 4}
    calls, _, judgements = go(tmp_path, SAMPLES, judges)
    assert calls == {}
    assert len(judgements) == 8
