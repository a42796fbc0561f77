"""Budgets: a run stops cleanly, loses nothing that was paid for, and goes on with a larger one as if uninterrupted."""

import asyncio
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from inference.budget import BudgetReached, Meter
from inference.engines.scripted import ScriptedEngine
from inference.errors import UserError
from inference.judges import Budget, JudgeConfig, resolved_judge
from inference.records import Call, Completion, Sample, Usage
from inference.rubric import Rubric
from inference.run_dir import RunDir
from inference.runner import run_judges
from inference.store import Store

ROOT = Path(__file__).parents[2]
MakeJudge = Callable[..., JudgeConfig]
IN_FLIGHT = 4
PRICE = {"input": 1.0, "output": 4.0}
SAMPLES = [
    Sample(id=f"s{i}", scenario=f"flood {i}", responses={"ideas": f"dam {i}", "outcome": f"plan {i}"})
    for i in range(12)
]


class Place:
    """A run directory; every start notes what it sends."""

    def __init__(self, folder: Path, rubric: Rubric, judges: Sequence[JudgeConfig]) -> None:
        self.folder, self.rubric, self.judges = folder, rubric, judges
        self.sent: list[str] = []
        """Keys of the calls that reached an engine, in all starts."""

    def start(self, **budget: float) -> None:
        place = self

        class Noting(ScriptedEngine):
            async def complete(self, call: Call) -> Completion:
                place.sent.append(call.key(self.identity))
                return await super().complete(call)

        with RunDir.open(self.folder, {"judges": [resolved_judge(judge) for judge in self.judges]}) as run:
            work = run_judges(
                SAMPLES,
                self.judges,
                self.rubric,
                run.store,
                run.judgements,
                quiet=True,
                budget=Budget.model_validate(budget) if budget else None,
                build=Noting,
            )
            asyncio.run(work)

    def calls(self) -> dict[str, tuple[str, Usage]]:
        """Key → model and usage of the finished calls."""
        with Store(self.folder / "calls.sqlite") as store:
            return {call.key: (call.model, call.completion.usage) for call in store.calls()}

    def tokens(self) -> int:
        return sum(usage.prompt + usage.completion for _, usage in self.calls().values())

    @property
    def bytes(self) -> bytes:
        return (self.folder / "judgements.jsonl").read_bytes()


@pytest.fixture
def judges(make_judge: MakeJudge) -> list[JudgeConfig]:
    """Two judges with one analyst, three calls a sample each, of which they share two."""
    common: dict[str, Any] = {"method": "creaeval", "concurrency": IN_FLIGHT, "price": PRICE}
    analyst = {"engine": "scripted", "model": "analyst:0.003", "concurrency": IN_FLIGHT, "price": PRICE}
    return [make_judge(id=name, model=f"{name}:0.003", analyst=analyst, **common) for name in ("first", "second")]


@pytest.fixture
def undisturbed(tmp_path: Path, plan_rubric: Rubric, judges: list[JudgeConfig]) -> Place:
    place = Place(tmp_path / "undisturbed", plan_rubric, judges)
    place.start()
    assert len(place.sent) == len(set(place.sent)) == len(SAMPLES) * (2 + 1 + 1)
    return place


@pytest.mark.parametrize("name", ["max_tokens_total", "max_cost"])
def test_a_run_in_small_portions_loses_and_repeats_no_call(
    undisturbed: Place, tmp_path: Path, plan_rubric: Rubric, judges: list[JudgeConfig], name: str
) -> None:
    place, stops = Place(tmp_path / "portions", plan_rubric, judges), 0
    whole = undisturbed.tokens() if name == "max_tokens_total" else undisturbed.tokens() * 2e-6
    for part in range(1, 40):
        limit = whole * part / 6
        try:
            place.start(**{name: int(limit) if name == "max_tokens_total" else limit})
            break
        except BudgetReached as stop:
            said = str(stop)
        stops += 1
        assert f"raise budget.{name} and start the same command again" in said
        assert set(place.calls()) == set(place.sent), "a call that was sent is not in the store"
        assert undisturbed.bytes.startswith(place.bytes)
    assert stops >= 3
    assert sorted(place.sent) == sorted(undisturbed.sent)
    assert place.bytes == undisturbed.bytes


def test_calls_in_flight_are_all_that_goes_over_the_budget(
    undisturbed: Place, tmp_path: Path, plan_rubric: Rubric, judges: list[JudgeConfig]
) -> None:
    limit = undisturbed.tokens() // 2
    largest = max(usage.prompt + usage.completion for _, usage in undisturbed.calls().values())
    place = Place(tmp_path / "stopped", plan_rubric, judges)
    with pytest.raises(BudgetReached, match=rf"the budget is spent \([\d,]+ of {limit:,} tokens\)"):
        place.start(max_tokens_total=limit)
    # Judge and analyst have as many slots each.
    assert limit <= place.tokens() < limit + 2 * IN_FLIGHT * largest


def test_a_spent_budget_stops_before_any_call(tmp_path: Path, plan_rubric: Rubric, judges: list[JudgeConfig]) -> None:
    place = Place(tmp_path / "run", plan_rubric, judges)
    with pytest.raises(BudgetReached):
        place.start(max_tokens_total=2000)
    sent, before = len(place.sent), place.bytes
    for budget in ({"max_tokens_total": 2000}, {"max_tokens_total": 1}, {"max_cost": 1e-9}):
        with pytest.raises(BudgetReached):
            place.start(**budget)
    assert len(place.sent) == sent > 0
    assert place.bytes == before


def test_a_spent_budget_is_no_obstacle_where_nothing_is_left_to_ask(undisturbed: Place) -> None:
    before = undisturbed.bytes
    (undisturbed.folder / "judgements.jsonl").unlink()
    sent = len(undisturbed.sent)
    undisturbed.start(max_tokens_total=1)
    assert undisturbed.bytes == before
    assert len(undisturbed.sent) == sent


def test_a_budget_that_is_large_enough_changes_nothing(
    undisturbed: Place, tmp_path: Path, plan_rubric: Rubric, judges: list[JudgeConfig]
) -> None:
    place = Place(tmp_path / "enough", plan_rubric, judges)
    place.start(max_tokens_total=undisturbed.tokens() + 1, max_cost=1e6)
    assert place.bytes == undisturbed.bytes


@pytest.mark.parametrize("unpriced", ["judge", "analyst"])
def test_a_cost_limit_needs_all_prices(
    tmp_path: Path, plan_rubric: Rubric, make_judge: MakeJudge, unpriced: str
) -> None:
    prices = {"judge": PRICE, "analyst": PRICE, unpriced: None}
    analyst = {"engine": "scripted", "model": "analyst", "price": prices["analyst"]}
    judge = make_judge(method="creaeval", model="judge", analyst=analyst, price=prices["judge"])
    place = Place(tmp_path / "run", plan_rubric, [judge])
    with pytest.raises(
        UserError, match=rf"budget\.max_cost: the model {unpriced} has no `price`; give every model one"
    ):
        place.start(max_cost=1.0)
    assert place.sent == []
    place.start(max_tokens_total=10**9)


def test_a_free_model_has_a_price_of_zero(tmp_path: Path, make_judge: MakeJudge) -> None:
    free = make_judge(price={"input": 0, "output": 0})
    with Store(tmp_path / "calls.sqlite") as store:
        meter = Meter(Budget(max_cost=0.5), [free], store)
        meter.add(free.label, Usage(prompt=10**9))
        meter.check()


def test_every_model_is_counted_at_its_own_price(tmp_path: Path, make_judge: MakeJudge) -> None:
    analyst = {"engine": "scripted", "model": "cheap", "price": {"input": 1.0, "cached": 0.5, "output": 2.0}}
    judge = make_judge(method="creaeval", model="dear", analyst=analyst, price={"input": 10.0, "output": 20.0})
    used = Usage(prompt=100_000, cached=40_000, completion=10_000, reasoning=9_000)

    async def fill(store: Store) -> None:
        for key, model in zip("abc", (judge, *judge.models), strict=True):
            await store.put(key, Completion(text="x", usage=used), 0.0, 1.0, model.label)

    with Store(tmp_path / "calls.sqlite") as store:
        asyncio.run(fill(store))
        meter = Meter(Budget(max_cost=2.5), judge.models, store)
        assert meter.tokens == 330_000
        # dear: 1 + 0.2, twice; cheap: 0.06 + 0.02 + 0.02
        assert meter.cost == pytest.approx(2 * 1.2 + 0.1)
        with pytest.raises(BudgetReached, match=r"2\.5000 of 2\.5000 in cost.*raise budget\.max_cost"):
            meter.check()
        Meter(Budget(max_cost=2.51), judge.models, store).check()


@pytest.mark.parametrize("budget", [{"max_tokens_total": 0}, {"max_cost": 0}, {"max_cost": -1}, {"max_calls": 3}])
def test_budgets_that_are_none_are_refused(budget: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        Budget.model_validate(budget)


def test_the_command_stops_with_one_sentence_and_goes_on_with_a_larger_budget(tmp_path: Path) -> None:
    rows = "".join(f"s{i},rope,use number {i}\n" for i in range(30))
    (tmp_path / "mine.csv").write_text(f"id,scenario,response\n{rows}")

    def judge(out: str, **budget: object) -> subprocess.CompletedProcess[str]:
        content = {
            "rubric": str(ROOT / "configs" / "rubrics" / "aut.yaml"),
            "input": str(tmp_path / "mine.csv"),
            "judges": {"id": "j", "engine": "scripted", "model": "m:0.002", "method": "compact", "concurrency": 3},
            "out": str(tmp_path / out),
            "budget": budget or None,
        }
        (tmp_path / f"{out}.yaml").write_text(yaml.safe_dump(content))
        command = [sys.executable, "-m", "inference", "judge", "--config", str(tmp_path / f"{out}.yaml")]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)

    assert judge("whole").returncode == 0
    stopped = judge("parts", max_tokens_total=60)
    assert stopped.returncode == 2
    (said,) = [line for line in stopped.stderr.splitlines() if not line.startswith("j: ")]  # beside the progress
    assert said.startswith("error: the budget is spent (")
    scores = tmp_path / "parts" / "scores.csv"
    judged = [row for row in scores.read_text().splitlines()[1:] if not row.endswith("not judged")]
    assert 0 < len(judged) < 30
    assert said.endswith(f"partial scores ({len(judged)} finished judgements): {scores}")
    refused = judge("parts", max_cost=1.0)
    assert refused.returncode == 2
    assert "the model m:0.002 has no `price`" in refused.stderr
    assert judge("parts", max_tokens_total=10_000).returncode == 0
    for name in ("judgements.jsonl", "scores.csv"):
        assert (tmp_path / "parts" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
