"""What a judging run shows: the summary and the estimate of a dry run."""

from collections.abc import Iterator, Sequence
from statistics import fmean

from rich.console import Group
from rich.markup import escape
from rich.table import Table

from inference.cost import Cost, Costs, Spread, judge_costs
from inference.errors import printable
from inference.estimate import Estimate, Estimates
from inference.judges import Budget, JudgeConfig
from inference.records import Judgement
from inference.runner import JudgeRun
from inference.store import Store


def summary_table(
    judges: Sequence[JudgeConfig], runs: Sequence[JudgeRun], judgements: Sequence[Judgement], store: Store
) -> Group:
    """One row per judge: judgements, coverage, mean value and seconds of this start; below it what the calls cost.

    A mean over dimensions of different scales says nothing: with several dimensions there is none.
    """
    one_scale = len({score.key for judgement in judgements for score in judgement.scores}) == 1
    table = _table("judgements", ("judge", "n", "coverage", *(["mean"] if one_scale else []), "seconds"))
    for judge, run in zip(judges, runs, strict=True):
        own = [judgement for judgement in judgements if judgement.judge == judge.id]
        scores = [score for judgement in own for score in judgement.scores]
        values = [score.value for score in scores if score.value is not None]
        mean = [f"{fmean(values):.2f}" if values else ""] if one_scale else []
        table.add_row(judge.id, str(len(own)), f"{len(values) / len(scores):.1%}", *mean, f"{run.seconds:.1f}")
    return Group(table, _cost_table(judge_costs(store.calls(), judgements, {judge.id: judge for judge in judges})))


def _cost_table(found: Costs) -> Table:
    """Of all starts. With several judges the last row counts each call once, where they share some."""
    columns = ("judge", "calls", "tokens in", "tokens out", "k tokens", "seconds", "cost")
    table = _table("cost; tokens and seconds per response: median / 95th percentile", columns)
    rows = list(found.judges.items()) + ([("all judges", found.total)] if len(found.judges) > 1 else [])
    for name, cost in rows:
        table.add_row(
            name,
            f"{cost.calls:,}",
            *([MISSING] * 3 if cost.uncounted else _tokens(cost)),
            _spread(cost.seconds_per_response),
            "" if cost.money is None else f"{cost.money:.4f}",
        )
    return table


MISSING = "–"
"""In place of tokens that a server does not report."""


def _tokens(cost: Cost) -> list[str]:
    return [f"{cost.prompt:,}", f"{cost.completion:,}", _spread(cost.tokens_per_response, 1000)]


def _spread(found: Spread | None, unit: float = 1.0) -> str:
    return f"{found.p50 / unit:.1f} / {found.p95 / unit:.1f}" if found else ""


def _table(title: str, columns: Sequence[str]) -> Table:
    table = Table(title=title)
    for number, name in enumerate(columns):
        table.add_column(name, justify="right" if number else "left", overflow="fold")
    return table


def estimate_table(
    estimates: Estimates, samples: int, budget: Budget | None = None, *, kind: str = "judge", items: str = "samples"
) -> Group:
    """One row per judge of a dry run, with several judges one for all; below it whether the budget is enough.

    `kind`, `items`: what is asked, and about what, where those are no judges of samples.
    """
    if not estimates.judges:
        return Group("dry run: no judge is asked, all scores are recorded")
    table = _table(
        f"dry run: {samples} {items}, no call made; answers that have to be asked for again come on top",
        (kind, "calls", "prompt tokens", "completion tokens, at most", "price"),
    )
    rows = [*estimates.judges, estimates.total] if len(estimates.judges) > 1 else estimates.judges
    for found in rows:
        tokens = f"{'about ' if found.follows else ''}{found.prompt_tokens:,}"
        tokens += "" if found.exact else " (estimate: characters / 4)"
        price = "" if found.price is None else f"{_bound(found)} {found.price:.4f}"
        price += "" if found.exact or not price else " (estimate)"
        table.add_row(escape(printable(found.judge)), f"{found.calls:,}", tokens, f"{found.completion_tokens:,}", price)
    return Group(table, *_against(budget or Budget(), estimates.total))


def _bound(found: Estimate) -> str:
    return "about" if found.follows else "at most"


def _against(budget: Budget, total: Estimate) -> Iterator[str]:
    """Whether the estimate is over the budget, a line for each limit that is set."""
    tokens, limit = total.prompt_tokens + total.completion_tokens, budget.max_tokens_total
    if limit is not None:
        yield _verdict("max_tokens_total", f"{limit:,}", f"{_bound(total)} {tokens:,} tokens", over=tokens > limit)
    if budget.max_cost is not None and total.price is not None:
        price, most = f"{_bound(total)} {total.price:.4f}", f"{budget.max_cost:g}"
        yield _verdict("max_cost", most, price, over=total.price > budget.max_cost)


def _verdict(name: str, limit: str, estimated: str, *, over: bool) -> str:
    if over:
        return f"over the budget: {estimated}, budget.{name} is {limit}; the run may stop before its end"
    return f"within the budget: {estimated}, budget.{name} is {limit}"
