"""What a judging run shows of its cost."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console

from inference.judgement_file import JudgementFile
from inference.judges import JudgeConfig
from inference.records import Sample
from inference.rubric import Rubric
from inference.runner import run_judges
from inference.store import Store
from inference.tables import summary_table

MakeJudge = Callable[..., JudgeConfig]


def summary(folder: Path, judges: Sequence[JudgeConfig], rubric: Rubric) -> dict[str, list[str]]:
    """Judge → cells of its row in the table of costs."""
    samples = [Sample(id=f"s{i}", scenario=f"flood {i}", responses={"ideas": "dam", "outcome": "plan"}) for i in "ab"]
    with Store(folder / "calls.sqlite") as store, JudgementFile(folder / "judgements.jsonl") as sink:
        runs = asyncio.run(run_judges(samples, judges, rubric, store, sink, quiet=True))
        console = Console(width=100, record=True, file=(folder / "shown").open("w"))
        console.print(summary_table(judges, runs, list(sink.read()), store))
    lines = [line.strip("│").split("│") for line in console.export_text().split("cost;")[1].splitlines()]
    return {line[0].strip(): [cell.strip() for cell in line[1:]] for line in lines if len(line) == 7}


def test_an_analyst_is_paid_at_its_own_price_and_once(
    tmp_path: Path, plan_rubric: Rubric, make_judge: MakeJudge
) -> None:
    analyst = {"engine": "scripted", "model": "analyst", "price": {"input": 0, "output": 1e6}}
    judges = [
        make_judge(id=name, model=name, method="creaeval", analyst=analyst, price={"input": 0, "output": 0})
        for name in ("one", "two")
    ]
    rows = summary(tmp_path, judges, plan_rubric)
    with Store(tmp_path / "calls.sqlite") as store:
        used = [call.completion.usage.completion for call in store.calls() if "analyst" in call.model]
    assert len(used) == 2 * 2
    assert [rows[name][0] for name in ("one", "two", "all judges")] == ["6", "6", "8"]
    assert {rows[name][-1] for name in ("one", "two", "all judges")} == {f"{sum(used):.4f}"}


def test_one_judge_has_no_total(tmp_path: Path, plan_rubric: Rubric, make_judge: MakeJudge) -> None:
    rows = summary(tmp_path, [make_judge(model="slow:0.2", method="direct")], plan_rubric)
    assert set(rows) == {"judge"}
    assert rows["judge"][0] == "2"
    assert rows["judge"][-2] == "0.2 / 0.2"
    assert rows["judge"][-1] == ""
