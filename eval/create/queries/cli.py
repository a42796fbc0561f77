"""``python -m eval create queries …``."""

from pathlib import Path
from typing import Annotated

import typer

from inference.errors import UserError, printable

queries_app = typer.Typer(help="Build a query set, or look at one.", no_args_is_help=True)


@queries_app.command()
def build(
    config: Annotated[Path, typer.Option("--config", help="A YAML file of relations.", show_default=False)],
    out: Annotated[Path, typer.Option(help="JSONL file for the queries; an older one is replaced.")],
    store: Annotated[Path | None, typer.Option(help="N-Triples file with the facts.", metavar="FILE")] = None,
    endpoint: Annotated[str | None, typer.Option(help="SPARQL endpoint with the facts.", metavar="URL")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Instead of the config's.")] = None,
    timeout: Annotated[float, typer.Option(min=1, max=86_400, help="Seconds the endpoint has for an answer.")] = 60.0,
) -> None:
    """Build queries from facts: same facts, settings and seed, same file."""
    from eval.create.queries.command import build_queries
    from eval.create.queries.graph import Endpoint, LocalGraph
    from eval.create.queries.settings import BuildConfig
    from inference.config import load_config

    if (store is None) == (endpoint is None):
        raise UserError("queries are built from --store FILE or from --endpoint URL; give one of the two")
    settings = load_config(config, BuildConfig)
    if seed is not None:
        settings = settings.model_copy(update={"seed": seed})
    graph = LocalGraph(store) if store is not None else Endpoint(endpoint or "", timeout=timeout)
    for note in build_queries(graph, settings, out):
        typer.echo(printable(note), err=True)


@queries_app.command()
def show(
    source: Annotated[
        Path,
        typer.Argument(help="A query set: a JSONL or Parquet file, or a folder of them.", metavar="FILE"),
    ],
    limit: Annotated[int, typer.Option(min=0, help="Queries to print.")] = 10,
) -> None:
    """Check a query set, count it by relation, and print its first queries."""
    from eval.console import print_lines, print_shown
    from eval.create.queries.command import queries_table
    from eval.create.queries.read import read_queries

    table, *lines = queries_table(read_queries(source), limit)
    print_shown(table)
    print_lines(printable(str(line)) for line in lines)
