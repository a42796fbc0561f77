"""Cost: what a run's store says that each judge used, by hand, in the reports, and within a budget."""

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from eval import tables
from eval.cost import run_costs
from eval.report import write_report
from eval.run import evaluate
from inference.cost import Cost, Spread, spread
from inference.errors import UserError
from inference.judges import JudgeConfig
from inference.records import Completion, Judgement, Usage
from inference.store import Store

WriteConfig = Callable[..., Path]
JUDGE_PRICE = {"input": 1.0, "cached": 0.5, "output": 4.0}
ANALYST_PRICE = {"input": 10.0, "output": 20.0}
USED = Usage(prompt=100, cached=40, completion=5, reasoning=3)
JUDGE_CALL = (60 * 1.0 + 40 * 0.5 + 5 * 4.0) / 1e6
ANALYST_CALL = (100 * 10.0 + 5 * 20.0) / 1e6


def scripted(identifier: str = "fake", **settings: Any) -> dict[str, Any]:
    return {"id": identifier, "engine": "scripted", "model": "scripted", "method": "compact", **settings}


def judge(identifier: str, price: Any = JUDGE_PRICE, **settings: Any) -> JudgeConfig:
    """With an analyst, where one is given."""
    return JudgeConfig.model_validate(scripted(identifier, model=identifier, price=price, **settings))


def judgement(name: str, sample: str, *calls: str, method: str = "creaeval") -> Judgement:
    return Judgement(sample_id=sample, judge=name, method=method, rubric="r", scores=(), calls=calls)


def stored(path: Path, *calls: tuple[str, float, float, str], usage: Usage = USED) -> Path:
    """A store of calls: key, started, finished, label of the model."""

    async def fill(store: Store) -> None:
        for key, started, finished, label in calls:
            await store.put(key, Completion(text="3", usage=usage), started, finished, label)

    with Store(path) as store:
        asyncio.run(fill(store))
    return path


def test_sums_and_spans_by_hand(tmp_path: Path) -> None:
    one = judge("one")
    path = stored(
        tmp_path / "calls.sqlite",
        ("a", 10.0, 14.0, one.label),
        ("b", 12.0, 15.0, one.label),
        ("c", 100.0, 101.0, one.label),
        ("other", 0.0, 500.0, one.label),
    )
    judgements = [judgement("one", "s0", "a", "b"), judgement("one", "s1", "b", "c"), judgement("one", "blank")]
    costs = run_costs(path, judgements, {"one": one})
    assert costs is not None
    found = costs.judges["one"]
    assert (found.calls, found.prompt, found.cached, found.completion, found.reasoning) == (3, 300, 120, 15, 9)
    assert found.seconds == pytest.approx(6.0)  # 10 to 15, and 100 to 101
    assert found.money == pytest.approx(3 * JUDGE_CALL)
    # What both responses share belongs to each; an empty response was not asked about.
    assert found.calls_per_response == 2.0
    assert [(response.tokens, response.seconds) for response in found.responses] == [(210, 7.0), (210, 4.0)]
    seconds = found.seconds_per_response
    assert seconds is not None
    assert [seconds.p50, seconds.p95] == pytest.approx([5.5, 4.0 + 0.95 * 3.0])
    assert found.tokens_per_response == Spread(210.0, 210.0)


def test_shared_evidence_counts_for_each_judge_and_once_in_the_total(tmp_path: Path) -> None:
    analyst = {"engine": "scripted", "model": "analyst", "price": ANALYST_PRICE}
    judges = {name: judge(name, method="creaeval", analyst=analyst) for name in ("one", "two")}
    evidence = judges["one"].models[1].label
    path = stored(
        tmp_path / "calls.sqlite",
        ("e1", 0.0, 2.0, evidence),
        ("e2", 2.0, 5.0, evidence),
        ("j1", 5.0, 6.0, judges["one"].label),
        ("j2", 9.0, 13.0, judges["two"].label),
    )
    judgements = [judgement("one", "s", "e1", "e2", "j1"), judgement("two", "s", "e1", "e2", "j2")]
    costs = run_costs(path, judgements, judges)
    assert costs is not None
    assert {name: cost.calls for name, cost in costs.judges.items()} == {"one": 3, "two": 3}
    assert [response.seconds for cost in costs.judges.values() for response in cost.responses] == [6.0, 9.0]
    assert [cost.money for cost in costs.judges.values()] == [pytest.approx(2 * ANALYST_CALL + JUDGE_CALL)] * 2
    assert (costs.total.calls, costs.total.prompt) == (4, 400)
    assert costs.total.money == pytest.approx(2 * ANALYST_CALL + 2 * JUDGE_CALL)
    assert costs.total.seconds == 10.0
    table = tables.costs(costs)
    shown = [[cell.text for cell in row] for row in table.rows]
    assert [row[:4] for row in shown] == [
        ["one", "creaeval", "3", "3.0"],
        ["two", "creaeval", "3", "3.0"],
        ["all judges", "–", "4", "–"],
    ]
    named = [dict(zip(table.header, row, strict=True)) for row in shown]
    assert [row["of these cached"] for row in named] == ["40.0 %"] * 3
    assert [row["k tokens, p50 / p95"] for row in named] == ["0.32 / 0.32", "0.32 / 0.32", "–"]
    assert [row["seconds, p50 / p95"] for row in named] == ["6.00 / 6.00", "9.00 / 9.00", "–"]


@pytest.mark.parametrize(("price", "money"), [(JUDGE_PRICE, 2 * JUDGE_CALL), (None, None)])
def test_a_store_that_names_no_model_counts_at_the_judges_price(
    tmp_path: Path, price: dict[str, float] | None, money: float | None
) -> None:
    path = stored(tmp_path / "calls.sqlite", ("a", 0.0, 1.0, ""), ("b", 1.0, 2.0, ""))
    costs = run_costs(path, [judgement("one", "s", "a", "b")], {"one": judge("one", price)})
    assert costs is not None
    assert costs.judges["one"].money == (money if money is None else pytest.approx(money))


def test_no_sum_of_money_where_one_model_has_no_price(tmp_path: Path) -> None:
    mixed = judge("one", method="creaeval", analyst={"engine": "scripted", "model": "analyst"})
    labels = [model.label for model in mixed.models]
    path = stored(tmp_path / "calls.sqlite", ("j", 0.0, 1.0, labels[0]), ("e", 1.0, 2.0, labels[1]))
    costs = run_costs(path, [judgement("one", "s", "e", "j")], {"one": mixed})
    assert costs is not None
    assert costs.judges["one"].money is None
    assert costs.total.money is None
    assert tables.costs(costs).rows[0][-1].text == "–"


def test_without_a_store_or_calls_there_is_no_cost(tmp_path: Path) -> None:
    assert run_costs(tmp_path / "none.sqlite", [judgement("one", "s", "a")], {}) is None
    assert not (tmp_path / "none.sqlite").exists()
    path = stored(tmp_path / "calls.sqlite", ("a", 0.0, 1.0, ""))
    assert run_costs(path, [judgement("published", "s", method="recorded")], {}) is None
    assert Cost().seconds == 0.0


@pytest.mark.parametrize("count", [1, 2, 3, 20, 101])
def test_spreads_are_numpys_percentiles(count: int) -> None:
    values = [float(value) for value in np.random.default_rng(count).exponential(size=count)]
    found = spread(values)
    assert found is not None
    assert [found.p50, found.p95] == pytest.approx(np.percentile(values, [50, 95]).tolist())
    assert spread([]) is None


def cost_lines(text: str) -> list[list[str]]:
    """Cells of the Markdown table under Cost."""
    lines = [line for line in text.split("## Cost")[1].split("\n## ")[0].splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" |")] for line in lines]


def test_reports_show_the_cost_of_asked_judges(write_config: WriteConfig, tmp_path: Path) -> None:
    price = {"input": 2.0, "output": 10.0}
    evaluate(write_config(judges=[scripted(price=price)]), quiet=True)
    with Store(tmp_path / "run" / "calls.sqlite") as store:
        usages = [call.completion.usage for call in store.calls()]
    cost = sum(2.0 * usage.prompt + 10.0 * usage.completion for usage in usages) / 1e6
    header, line = cost_lines((tmp_path / "run" / "report.md").read_text())
    found = dict(zip(header, line, strict=True))
    assert (found["judge"], found["method"], found["calls"]) == ("fake", "compact", "12")
    assert (found["calls per response"], found["of these cached"]) == ("1.0", "0.0 %")
    assert found["prompt tokens"] == f"{sum(usage.prompt for usage in usages):,}"
    assert found["cost"] == f"{cost:,.4f}"
    page = (tmp_path / "run" / "report.html").read_text().split("<h2>Cost</h2>")[1].split("<h2>")[0]
    assert re.findall(r">([^<]+)</t[hd]>", page) == [*header, *line]


def test_a_run_that_stops_at_its_budget_goes_on_to_the_same_files(write_config: WriteConfig, tmp_path: Path) -> None:
    judges = [scripted("first", model="first:0.001"), scripted("second", method="direct", concurrency=2)]
    with pytest.raises(UserError, match=r"the budget is spent .* raise budget\.max_tokens_total"):
        evaluate(write_config(judges=judges, budget={"max_tokens_total": 200}), quiet=True)
    assert (tmp_path / "run" / "judgements.jsonl").stat().st_size > 0
    assert not (tmp_path / "run" / "report.md").exists()
    evaluate(write_config(judges=judges, budget={"max_tokens_total": 100_000}), quiet=True)
    evaluate(write_config(judges=judges), out=tmp_path / "whole", quiet=True)
    for name in ("judgements.jsonl", "scores.csv", "metrics.jsonl", "samples.jsonl"):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name


def test_a_report_reads_back_the_digests_of_a_local_analyst(write_config: WriteConfig, tmp_path: Path) -> None:
    evaluate(write_config(judges=[scripted()]), quiet=True)
    file = tmp_path / "run" / "config.yaml"
    settings = yaml.safe_load(file.read_text())
    analyst = {"engine": "hf", "model": "models/analyst", "model_digest": "0" * 12}
    settings["judges"][0] |= {"method": "creaeval", "analyst": analyst}
    file.write_text(yaml.safe_dump(settings))
    write_report(tmp_path / "run")
    assert "fake" in (tmp_path / "run" / "report.md").read_text()
