"""What a judging run shows: the summary and the estimate of a dry run."""

from collections.abc import Iterable, Sequence
from statistics import fmean

from rich.table import Table

from inference.estimate import Estimate
from inference.judges import JudgeConfig
from inference.records import Judgement, Usage
from inference.runner import JudgeRun
from inference.store import Store


def summary_table(
    judges: Sequence[JudgeConfig], runs: Sequence[JudgeRun], judgements: Sequence[Judgement], store: Store
) -> Table:
    """One row per judge: judgements, coverage, mean value, tokens, seconds of this start, and cost where priced."""
    usage = {call.key: call.completion.usage for call in store.calls()}
    table = Table(title="judgements")
    for name in ("judge", "n", "coverage", "mean", "prompt tokens", "completion tokens", "seconds", "cost"):
        table.add_column(name, justify="left" if name == "judge" else "right", overflow="fold")
    for judge, run in zip(judges, runs, strict=True):
        own = [judgement for judgement in judgements if judgement.judge == judge.id]
        scores = [score for judgement in own for score in judgement.scores]
        values = [score.value for score in scores if score.value is not None]
        used = _total(usage[key] for key in {key for judgement in own for key in judgement.calls} if key in usage)
        table.add_row(
            judge.id,
            str(len(own)),
            f"{len(values) / len(scores):.1%}",
            f"{fmean(values):.2f}" if values else "",
            f"{used.prompt:,}",
            f"{used.completion:,}",
            f"{run.seconds:.1f}",
            f"{judge.price.cost(used):.4f}" if judge.price else "",
        )
    return table


def _total(usages: Iterable[Usage]) -> Usage:
    """Sum of usages."""
    totals = dict.fromkeys(Usage.model_fields, 0)
    for usage in usages:
        for field in totals:
            totals[field] += getattr(usage, field)
    return Usage(**totals)


def estimate_table(estimates: Sequence[Estimate], samples: int) -> Table:
    """One row per judge of a dry run."""
    table = Table(
        title=f"dry run: {samples} samples, no call made; answers that have to be asked for again come on top"
    )
    for name in ("judge", "calls", "prompt tokens", "completion tokens, at most", "price, at most"):
        table.add_column(name, justify="left" if name == "judge" else "right", overflow="fold")
    for found in estimates:
        tokens = f"{found.prompt_tokens:,}" + ("" if found.exact else " (estimate: characters / 4)")
        price = "" if found.price is None else f"{found.price:.4f}" + ("" if found.exact else " (estimate)")
        table.add_row(found.judge, f"{found.calls:,}", tokens, f"{found.completion_tokens:,}", price)
    return table
