"""Judging a file and judging in memory, with scripted engines."""

import asyncio
import csv
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from rich.console import Console

from inference.engines.base import EngineConfig
from inference.engines.scripted import ScriptedEngine
from inference.errors import UserError
from inference.estimate import Estimate, Estimates, estimate, estimate_all
from inference.judge import judge_file, judge_samples
from inference.judges import JudgeConfig, Price
from inference.methods import METHODS, Answers, Asks, Settings
from inference.records import Call, Judgement, Sample, Score, Usage
from inference.rubric import Rubric
from inference.score_file import write_scores
from inference.tables import estimate_table

ROOT = Path(__file__).parents[2]
MakeSamples = Callable[[int], list[Sample]]
MakeJudge = Callable[..., JudgeConfig]


def config(folder: Path, **changes: object) -> Path:
    responses = folder / "mine.csv"
    responses.write_text("id,scenario,response\na,rope,swing\nb,tin,drum\nc,rope,leash\n", encoding="utf-8")
    judge = {"id": "j", "engine": "scripted", "model": "m", "method": "compact", "price": {"input": 1, "output": 2}}
    content = {
        "rubric": str(ROOT / "configs" / "rubrics" / "aut.yaml"),
        "input": str(responses),
        "judges": judge,
        "out": str(folder / "run"),
        **changes,
    }
    path = folder / "judge.yaml"
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return path


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_responses_in_scores_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    judge_file(config(tmp_path))
    found = rows(tmp_path / "run" / "scores.csv")
    assert [row["id"] for row in found] == ["a", "b", "c"]
    assert list(found[0]) == ["id", "j_value", "j_top", "j_unscored"]
    assert all(1 <= float(row["j_value"]) <= 5 and float(row["j_top"]) in range(1, 6) for row in found)
    shown = capsys.readouterr().out
    assert "100.0%" in shown
    assert str(tmp_path / "run" / "scores.csv") in shown.replace("\n", "")
    before = (tmp_path / "run" / "scores.csv").read_bytes()
    judge_file(config(tmp_path))
    assert (tmp_path / "run" / "scores.csv").read_bytes() == before


def test_input_and_out_can_be_given_beside_the_config(tmp_path: Path) -> None:
    other = tmp_path / "other.jsonl"
    other.write_text('{"id": "z", "scenario": "rope", "response": "net"}\n')
    judge_file(config(tmp_path), other, tmp_path / "elsewhere")
    assert [row["id"] for row in rows(tmp_path / "elsewhere" / "scores.csv")] == ["z"]
    assert not (tmp_path / "run").exists()


def test_a_limit_takes_the_first_samples_into_a_run_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    judge_file(config(tmp_path), dry_run=True, limit=2)
    assert "2 samples, no call made" in " ".join(capsys.readouterr().out.split())
    judge_file(config(tmp_path), limit=2)
    assert [row["id"] for row in rows(tmp_path / "run" / "scores.csv")] == ["a", "b"]
    with pytest.raises(UserError, match="changed: limit"):
        judge_file(config(tmp_path))


def test_changed_responses_under_the_same_name_are_refused(tmp_path: Path) -> None:
    judge_file(config(tmp_path))
    path = config(tmp_path)
    (tmp_path / "mine.csv").write_text("id,scenario,response\na,rope,another answer\n", encoding="utf-8")
    before = (tmp_path / "run" / "scores.csv").read_bytes()
    with pytest.raises(UserError, match="changed: input_sha256"):
        judge_file(path)
    assert (tmp_path / "run" / "scores.csv").read_bytes() == before


def test_a_dry_run_makes_no_directory_and_says_what_is_estimated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    judge_file(config(tmp_path), dry_run=True)
    shown = " ".join(capsys.readouterr().out.split())
    assert "no call made" in shown
    assert "estimate" in shown
    assert not (tmp_path / "run").exists()


def test_an_estimate_by_hand(aut_rubric: Rubric, make_judge: MakeJudge) -> None:
    # "rope: a swing\n" has 14 characters, 4 tokens; "tin: a drum\n" 12, 3 tokens. One token out for each.
    texts = [("rope", "a swing"), ("tin", "a drum"), ("tin", "a  drum ")]
    samples = [Sample(id=str(i), scenario=s, responses={"use": text}) for i, (s, text) in enumerate(texts)]
    judge = make_judge(price={"input": 1e6, "output": 10e6}, repeats=2, model="served@abc:def")
    found = asyncio.run(estimate(samples, judge, aut_rubric))
    assert (found.calls, found.prompt_tokens, found.completion_tokens, found.exact) == (4, 14, 4, False)
    assert found.price == pytest.approx(14 + 40)


def test_an_estimate_counts_no_empty_responses(aut_rubric: Rubric, make_judge: MakeJudge) -> None:
    samples = [Sample(id=text, scenario="rope", responses={"use": text}) for text in ("", "  \n", "a swing")]
    found = asyncio.run(estimate(samples, make_judge(), aut_rubric))
    assert (found.calls, found.prompt_tokens) == (1, 4)


def test_an_analyst_is_estimated_at_its_own_price(plan_rubric: Rubric, make_judge: MakeJudge) -> None:
    samples = [Sample(id="p", scenario="flood", responses={"ideas": "a dam", "outcome": "a plan"})]
    free, dear = {"input": 0, "output": 0}, {"input": 1e6, "output": 1e6}

    def of(own: object, analyst: object, **options: object) -> Estimate:
        model = {"engine": "scripted", "model": "a", "max_tokens": 50, "price": analyst}
        judge = make_judge(method="creaeval", price=own, analyst=model, **options)
        return asyncio.run(estimate(samples, judge, plan_rubric))

    analysis, judging = of(free, dear), of(dear, free)
    assert (analysis.calls, analysis.follows) == (3, True)  # two steps, and the scores
    assert analysis.price is not None
    assert judging.price is not None
    assert analysis.price + judging.price == analysis.prompt_tokens + analysis.completion_tokens
    assert analysis.price > 2 * 50
    assert of(dear, None).price is None
    assert of(None, dear).price is None
    alone = make_judge(method="creaeval", price=dear)
    found = asyncio.run(estimate(samples, alone, plan_rubric))
    assert found.price == found.prompt_tokens + found.completion_tokens


@pytest.mark.parametrize(("method", "limit"), [("direct", "at most 1"), ("tat", "at most 1"), ("cot", "about 1")])
def test_a_dry_run_says_which_prices_are_no_limits(
    plan_rubric: Rubric, make_judge: MakeJudge, method: str, limit: str, capsys: pytest.CaptureFixture[str]
) -> None:
    samples = [Sample(id="p", scenario="flood", responses={"ideas": "a dam", "outcome": "a plan"})]
    found = asyncio.run(estimate(samples, make_judge(method=method), plan_rubric)).model_copy(update={"price": 1.0})
    Console(width=200).print(estimate_table(Estimates(judges=(found,), total=found), 1))
    shown = capsys.readouterr().out
    assert f"{limit}.0000" in shown
    assert ("about" in shown.split("at most")[-1]) == (limit == "about 1")


def test_calls_that_judges_share_count_once_in_the_total(plan_rubric: Rubric, make_judge: MakeJudge) -> None:
    samples = [Sample(id="p", scenario="flood", responses={"ideas": "a dam", "outcome": "a plan"})]
    analyst = {"engine": "scripted", "model": "a", "price": {"input": 1e6, "output": 0}}
    free = {"input": 0, "output": 0}
    judges = [make_judge(id=name, model=name, method="creaeval", analyst=analyst, price=free) for name in ("b", "c")]
    found = asyncio.run(estimate_all(samples, judges, plan_rubric))
    assert [one.calls for one in (*found.judges, found.total)] == [3, 3, 4]  # two steps of evidence, and the scores
    shared = found.judges[0].prompt_tokens + found.judges[1].prompt_tokens - found.total.prompt_tokens
    assert shared > 0
    assert [one.price for one in (*found.judges, found.total)] == [shared] * 3
    # A model that two judges name needs its price once.
    once = [judges[0], judges[1].model_copy(update={"analyst": judges[0].models[1].model_copy(update={"price": None})})]
    assert asyncio.run(estimate_all(samples, once, plan_rubric)).total.price == shared


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        # Three prompts of 3 tokens, one token out for each; at 1 and 2 per million tokens.
        (
            {"max_tokens_total": 11},
            "over the budget: at most 12 tokens, budget.max_tokens_total is 11; the run may stop",
        ),
        ({"max_tokens_total": 12}, "within the budget: at most 12 tokens, budget.max_tokens_total is 12"),
        ({"max_cost": 1e-6}, "over the budget: at most 0.0000, budget.max_cost is 1e-06; the run may stop"),
        ({"max_cost": 0.5}, "within the budget: at most 0.0000, budget.max_cost is 0.5"),
        (None, ""),
    ],
)
def test_a_dry_run_says_whether_the_budget_is_enough(
    budget: dict[str, float] | None, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    judge_file(config(tmp_path, budget=budget), dry_run=True)
    shown = " ".join(capsys.readouterr().out.split())
    assert words in shown
    assert ("budget" in shown) == bool(budget)


def test_a_budget_stop_leaves_the_scores_of_all_that_is_finished(tmp_path: Path) -> None:
    # Sent by scenario: a, c, b. Of 4 tokens each the first two are all that the budget pays.
    judge = {"id": "j", "engine": "scripted", "model": "m", "method": "compact", "concurrency": 1}
    with pytest.raises(UserError, match=r"partial scores \(2 finished judgements\)"):
        judge_file(config(tmp_path, judges=judge, budget={"max_tokens_total": 8}))
    partly = rows(tmp_path / "run" / "scores.csv")
    assert [row["j_unscored"] for row in partly] == ["", "not judged", ""]
    judge_file(config(tmp_path, judges=judge))
    whole = rows(tmp_path / "run" / "scores.csv")
    assert [partly[0], partly[2]] == [whole[0], whole[2]]
    assert whole[1]["j_value"]


def test_a_budget_that_is_spent_before_any_judgement_leaves_no_scores(tmp_path: Path) -> None:
    judge = {"id": "j", "engine": "scripted", "model": "m", "method": "got"}
    with pytest.raises(UserError, match=r"the budget is spent.*; no judgement is finished, so there are no scores yet"):
        judge_file(config(tmp_path, judges=judge, budget={"max_tokens_total": 1}))
    assert not (tmp_path / "run" / "scores.csv").exists()


def test_a_dry_run_refuses_the_budget_that_the_run_would_refuse(tmp_path: Path) -> None:
    unpriced = {"id": "j", "engine": "scripted", "model": "m", "method": "compact"}
    with pytest.raises(UserError, match=r"budget\.max_cost: the model m has no `price`"):
        judge_file(config(tmp_path, judges=unpriced, budget={"max_cost": 1}), dry_run=True)


@pytest.mark.slow
@pytest.mark.skipif(not (ROOT / "models" / "smollm2-135m").is_dir(), reason="the base model has not been made")
def test_a_local_models_tokens_are_counted_exactly(aut_rubric: Rubric, make_judge: MakeJudge) -> None:
    judge = make_judge(engine="hf", model=str(ROOT / "models" / "smollm2-135m"))
    samples = [Sample(id="1", scenario="rope", responses={"use": "a swing"})]
    found = asyncio.run(estimate(samples, judge, aut_rubric))
    assert found.exact
    assert found.prompt_tokens == len(["ro", "pe", ":", " a", " swing", "\n"])


def test_prices_by_hand() -> None:
    usage = Usage(prompt=1_000_000, cached=400_000, completion=50_000, reasoning=20_000)
    assert Price(input=2.0, cached=0.5, output=10.0).cost(usage) == pytest.approx(0.6 * 2 + 0.4 * 0.5 + 0.05 * 10)
    assert Price(input=2.0, output=10.0).cost(usage) == pytest.approx(2 + 0.5)


def test_in_memory_also_inside_a_running_loop(
    make_samples: MakeSamples, make_judge: MakeJudge, aut_rubric: Rubric
) -> None:
    async def notebook() -> list[Judgement]:
        return judge_samples(make_samples(4), aut_rubric, make_judge())

    judgements = judge_samples(make_samples(4), aut_rubric, make_judge())
    assert [judgement.sample_id for judgement in judgements] == ["s000", "s001", "s002", "s003"]
    assert asyncio.run(notebook()) == judgements


@pytest.mark.parametrize("method", ["direct", "compact"])
def test_rubrics_of_several_steps_are_judged_whole(
    plan_rubric: Rubric, make_judge: MakeJudge, method: str, tmp_path: Path
) -> None:
    samples = [Sample(id="p", scenario="flood", responses={"ideas": "a dam", "outcome": "a plan"})]
    judge = make_judge(method=method)
    (judgement,) = judge_samples(samples, plan_rubric, judge)
    assert [score.key for score in judgement.scores] == ["ideas.fluency", "ideas.novelty", "outcome.clarity"]
    assert all(score.unscored is None for score in judgement.scores)
    write_scores(tmp_path / "s.csv", samples, plan_rubric, [judgement])
    (row,) = rows(tmp_path / "s.csv")
    assert list(row)[1:4] == ["judge_ideas.fluency_value", "judge_ideas.fluency_top", "judge_ideas.novelty_value"]
    assert len(row) == 7


def test_repeats_are_averaged_over_what_was_scored(tmp_path: Path, aut_rubric: Rubric) -> None:
    def judgement(sample: str, repeat: int, value: float | None, top: float | None) -> Judgement:
        reason = None if value is not None else f"no answer {repeat}"
        score = Score(step="use", dimension="originality", value=value, top=top, unscored=reason)
        return Judgement(
            sample_id=sample, judge="judge", method="direct", rubric="aut@0", repeat=repeat, scores=(score,)
        )

    numbers = [(2.5, 3.0), (None, None), (3.5, 3.0), (1.0, 1.0)]
    judgements = [judgement("a", repeat, *pair) for repeat, pair in enumerate(numbers)]
    judgements += [judgement("b", repeat, None, None) for repeat in range(4)]
    samples = [Sample(id=name, scenario="rope", responses={"use": "x"}) for name in "ab"]
    write_scores(tmp_path / "s.csv", samples, aut_rubric, judgements)
    first, second = rows(tmp_path / "s.csv")
    assert first == {"id": "a", "judge_value": "2.333333", "judge_top": "2.333333", "judge_unscored": ""}
    assert second == {"id": "b", "judge_value": "", "judge_top": "", "judge_unscored": "no answer 0"}


def test_the_scripted_engine_depends_on_the_call_alone() -> None:
    engines = [ScriptedEngine(EngineConfig(engine="scripted", model=model)) for model in ("m", "m", "other")]
    call = Call(prompt="x", grid=("1", "2", "3"))
    first, again, other = (asyncio.run(engine.complete(call)) for engine in engines)
    assert first == again
    assert first != other
    assert first != asyncio.run(engines[0].complete(call.model_copy(update={"repeat": 1})))
    with pytest.raises(UserError, match="seconds per call"):
        ScriptedEngine(EngineConfig(engine="scripted", model="m:slow"))


def test_a_damaged_store_leaves_the_scores_as_they_are(tmp_path: Path) -> None:
    judge_file(config(tmp_path))
    scores = tmp_path / "run" / "scores.csv"
    scores.write_text("mine\n")
    connection = sqlite3.connect(tmp_path / "run" / "calls.sqlite", isolation_level=None)
    connection.execute("UPDATE calls SET completion = '{'")
    connection.close()
    with pytest.raises(UserError, match=r"calls\.sqlite: the answer of call"):
        judge_file(config(tmp_path))
    assert scores.read_text() == "mine\n"


def test_a_directory_in_the_place_of_the_scores_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.yaml").write_text("{}\n")
    (tmp_path / "run" / "scores.csv").mkdir()
    with pytest.raises(UserError, match=r"scores\.csv: cannot be written"):
        judge_file(config(tmp_path))


def test_failed_judgements_are_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    compact = METHODS["compact"]

    async def faulty(rubric: Rubric, sample: Sample, asks: Asks, settings: Settings) -> Answers:
        if sample.id == "b":
            raise ZeroDivisionError
        return await compact(rubric, sample, asks, settings)

    monkeypatch.setitem(METHODS, "compact", faulty)
    judge_file(config(tmp_path))
    assert "warning: judge j: 1 of 3 judgements failed and are unscored" in capsys.readouterr().err


def test_two_judges_of_one_id_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    judge = {"id": "j", "engine": "scripted", "model": "m", "method": "compact"}
    with pytest.raises(UserError, match=r"the judge ids \['j'\] occur twice"):
        judge_file(config(tmp_path, judges=[judge, judge]))
    assert not (tmp_path / "run").exists()


def test_reasons_with_half_a_surrogate_pair_are_written(tmp_path: Path, aut_rubric: Rubric) -> None:
    score = Score(step="use", dimension="originality", unscored="cut \ud83d")
    judgement = Judgement(sample_id="a", judge="j", method="direct", rubric="aut@0", scores=(score,))
    write_scores(tmp_path / "s.csv", [Sample(id="a", scenario="x", responses={"use": "y"})], aut_rubric, [judgement])
    assert rows(tmp_path / "s.csv")[0]["j_unscored"] == "cut \\ud83d"
