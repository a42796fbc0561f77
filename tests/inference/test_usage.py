"""Token counts that servers don't report, or not soundly; prices; numbers of a config."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from rich.console import Console

from inference.budget import BudgetReached, Meter
from inference.cost import judge_costs
from inference.engines.base import EngineConfig
from inference.engines.openai_answers import read_usage
from inference.engines.scripted import ScriptedEngine
from inference.judgement_file import JudgementFile
from inference.judges import Budget, JudgeConfig, Judges, Price
from inference.records import Call, Completion, Judgement, Sample, Usage
from inference.rubric import Rubric
from inference.runner import run_judges
from inference.store import Store
from inference.tables import summary_table

MakeJudge = Callable[..., JudgeConfig]
SAMPLES = [Sample(id=f"s{i}", scenario="flood", responses={"ideas": f"dam {i}", "outcome": "plan"}) for i in range(6)]


class Silent(ScriptedEngine):
    """Reports no usage."""

    def __init__(self, config: EngineConfig) -> None:
        super().__init__(config)
        self.sent = 0

    async def complete(self, call: Call) -> Completion:
        self.sent += 1
        return (await super().complete(call)).model_copy(update={"usage": read_usage({})})


def judged(folder: Path, rubric: Rubric, judge: JudgeConfig, budget: Budget | None) -> tuple[list[Judgement], str]:
    """Judgements of SAMPLES and the summary that is shown."""
    with Store(folder / "calls.sqlite") as store, JudgementFile(folder / "judgements.jsonl") as sink:
        work = run_judges(SAMPLES, [judge], rubric, store, sink, quiet=True, budget=budget, build=Silent)
        runs = asyncio.run(work)
        found = list(sink.read())
        console = Console(width=120, record=True, file=(folder / "shown").open("w"))
        console.print(summary_table([judge], runs, found, store))
        costs = judge_costs(store.calls(), found, {judge.id: judge})
        assert costs.total.uncounted == len(store)
        return found, console.export_text()


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, Usage(known=False)),
        ({}, Usage(known=False)),
        ([], Usage(known=False)),
        ({"prompt_tokens": 9}, Usage(prompt=9, known=False)),
        ({"prompt_tokens": -9, "completion_tokens": 2}, Usage(completion=2, known=False)),
        ({"prompt_tokens": 9, "completion_tokens": True}, Usage(prompt=9, known=False)),
        ({"prompt_tokens": 9, "completion_tokens": "2"}, Usage(prompt=9, known=False)),
        ({"prompt_tokens": 0, "completion_tokens": 0}, Usage()),
        (
            {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 10}},
            Usage(prompt=9, cached=9, completion=2),
        ),
        (
            {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": -10}},
            Usage(prompt=9, completion=2),
        ),
        (
            {"prompt_tokens": 9, "completion_tokens": 2, "completion_tokens_details": {"reasoning_tokens": 5}},
            Usage(prompt=9, completion=2, reasoning=2),
        ),
    ],
)
def test_token_counts_are_sound_or_missing(usage: Any, expected: Usage) -> None:
    assert read_usage({"usage": usage}) == expected


@pytest.mark.parametrize("budget", [{"max_tokens_total": 10**6}, {"max_cost": 100.0}])
def test_without_token_counts_no_budget_is_kept(
    tmp_path: Path, plan_rubric: Rubric, make_judge: MakeJudge, budget: dict[str, float]
) -> None:
    judge = make_judge(model="silent", method="direct", concurrency=2, price={"input": 1, "output": 1})
    with pytest.raises(BudgetReached, match=r"model silent does not report the tokens .* remove `budget`"):
        judged(tmp_path, plan_rubric, judge, Budget.model_validate(budget))
    with Store(tmp_path / "calls.sqlite") as store:
        assert 1 <= len(store) <= 2, "more than what was in flight has been sent"
    found, shown = judged(tmp_path, plan_rubric, judge, None)
    assert len(found) == len(SAMPLES)
    (row,) = [line for line in shown.split("cost;")[1].splitlines() if "│ judge " in line]
    cells = [cell.strip() for cell in row.strip("│").split("│")]
    assert (cells[1:5], cells[6]) == ([str(len(SAMPLES)), "–", "–", "–"], "")


def test_a_free_model_needs_no_counts_for_a_limit_of_cost(
    tmp_path: Path, plan_rubric: Rubric, make_judge: MakeJudge
) -> None:
    judge = make_judge(model="silent", method="direct", price={"input": 0, "output": 0})
    found, shown = judged(tmp_path, plan_rubric, judge, Budget(max_cost=1.0))
    assert len(found) == len(SAMPLES)
    assert "0.0000" in shown


def test_a_tiny_budget_is_shown_with_its_digits(tmp_path: Path, make_judge: MakeJudge) -> None:
    judge = make_judge(price={"input": 0.01, "output": 0.01})
    with Store(tmp_path / "calls.sqlite") as store:
        meter = Meter(Budget(max_cost=0.0000025), [judge], store)
        meter.add(judge.label, Usage(prompt=312))
        with pytest.raises(BudgetReached, match=r"3\.12e-06 of 2\.5e-06 in cost"):
            meter.check()


PRICE = {"input": 1.0, "output": 2.0}


def test_a_model_with_two_prices_is_refused(make_judge: MakeJudge) -> None:
    def judges(first: dict[str, float] | None, second: dict[str, float] | None) -> Judges:
        analyst = {"engine": "scripted", "model": "m", "price": second}
        return Judges(
            judges=(
                make_judge(id="one", model="m", price=first),
                make_judge(
                    id="two", model="other", price={"input": 9, "output": 9}, method="creaeval", analyst=analyst
                ),
            )
        )

    for first, second in ((PRICE, PRICE), (PRICE, None), (None, PRICE)):
        judges(first, second)
    with pytest.raises(ValidationError, match="the model m has two different prices; give it the same one everywhere"):
        judges(PRICE, {"input": 1.0, "output": 2.5})


@pytest.mark.parametrize("value", [float("inf"), float("nan"), True, -1])
@pytest.mark.parametrize("name", ["input", "cached", "output"])
def test_prices_are_finite_numbers(name: str, value: float) -> None:
    with pytest.raises(ValidationError):
        Price.model_validate({**PRICE, name: value})


@pytest.mark.parametrize("value", [float("inf"), float("nan"), True, False])
@pytest.mark.parametrize("name", ["temperature", "max_tokens", "max_retries", "concurrency", "repeats", "timeout"])
def test_settings_of_numbers_take_finite_numbers_alone(make_judge: MakeJudge, name: str, value: float) -> None:
    with pytest.raises(ValidationError):
        make_judge(**{name: value})
    assert make_judge(**{name: "2"}) == make_judge(**{name: 2})  # a variable of the environment is text
