"""What a generation shows: its answers with what they took, and the estimate of a dry run."""

from collections.abc import Iterator, Sequence

from rich.box import SIMPLE
from rich.console import Group
from rich.table import Table

from eval.create.generation.records import Answer
from eval.create.generation.settings import GenerationConfig, Generator
from eval.create.generation.strategies import completions
from eval.create.queries.records import Query
from eval.tables import MISSING
from inference.budget import checked_prices
from inference.cost import Cost, model_prices
from inference.estimate import Asked, added_up
from inference.judge import run_to_end
from inference.store import Store
from inference.tables import estimate_table


def answers_summary(generators: Sequence[Generator], answers: Sequence[Answer], store: Store) -> Group:
    """Answers, calls, tokens, seconds and price of each generator; below it what failed, is blank or was cut off."""
    table = Table(title="answers, and what they took", title_justify="left", box=SIMPLE, pad_edge=False)
    table.add_column("generator", overflow="fold")
    for name in ("answers", "calls", "k tokens\nin", "k tokens\nout", "seconds", "price"):
        table.add_column(name, justify="right")
    for generator in generators:
        mine = [answer for answer in answers if answer.generator == generator.id]
        cost = _cost(generator, generators, mine, store)
        tokens = [MISSING if cost.uncounted else f"{count / 1000:,.1f}" for count in (cost.prompt, cost.completion)]
        money = MISSING if cost.money is None else f"{cost.money:.4f}"
        table.add_row(generator.id, f"{len(mine):,}", f"{cost.calls:,}", *tokens, f"{cost.seconds:.1f}", money)
    return Group(table, *(_faults(answers) or ["no answer failed, is blank or was cut off"]))


def _cost(generator: Generator, generators: Sequence[Generator], answers: Sequence[Answer], store: Store) -> Cost:
    keys = {key for answer in answers for key in answer.calls}
    cost, price = Cost(method=generator.strategy), model_prices(generators)[generator.label]
    for call in store.calls():
        if call.key in keys:
            cost.add(call, price)
    return cost


def _faults(answers: Sequence[Answer]) -> list[str]:
    """A line for each generator with any."""

    def found(name: str) -> Iterator[str]:
        mine = [answer for answer in answers if answer.generator == name]
        texts = [text for answer in mine for text in answer.samples]
        counts = {
            f"of {len(mine):,} answers failed": sum(answer.failed is not None for answer in mine),
            f"of {len(texts):,} texts blank": sum(not text.strip() for text in texts),
            f"of {len(texts):,} texts cut off": sum(end == "length" for answer in mine for end in answer.finish),
        }
        return (f"{count:,} {what}" for what, count in counts.items() if count)

    by_name = {name: ", ".join(found(name)) for name in dict.fromkeys(answer.generator for answer in answers)}
    return [f"{name}: {faults}" for name, faults in by_name.items() if faults]


def estimated(queries: Sequence[Query], config: GenerationConfig) -> Group:
    """What generators would ask, to be printed; none is asked.

    Raises UserError for a budget that needs a missing price, and for a missing local model.
    """
    checked_prices(config.budget, config.generators)
    asked = {generator.id: [run_to_end(_asked(queries, generator))] for generator in config.generators}
    following = {generator.id for generator in config.generators if generator.strategy == "iterate"}
    found = added_up(asked, following, "generator")
    return estimate_table(found, len(queries), config.budget, kind="generator", items="queries")


async def _asked(queries: Sequence[Query], generator: Generator) -> Asked:
    model = Asked(generator)
    for query in queries:
        await completions(query, generator, model.ask)
    return model
