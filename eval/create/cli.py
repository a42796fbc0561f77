"""``python -m eval create …``: the commands of the CREATE benchmark."""

import math
from pathlib import Path
from typing import Annotated, Literal

import typer

from inference.errors import UserError, quoted

create_app = typer.Typer(help="CREATE: many creative paths between two entities.", no_args_is_help=True)


@create_app.callback()
def _create() -> None:
    """Keeps ``score`` a command of its own while it is the only one."""


@create_app.command()
def score(
    source: Annotated[
        Path,
        typer.Option("--input", help="JSONL: answers and evaluators' replies, one row per line.", show_default=False),
    ],
    mode: Annotated[
        Literal["paper", "official"],
        typer.Option(help="The paper's rules, or the values of the released code with its faults."),
    ] = "paper",
    patience: Annotated[str, typer.Option(help="Values from 0 to 1, separated by commas.")] = "0.7,0.9,1",
    validity: Annotated[
        Literal["strict", "shared", "official"], typer.Option(help="Which paths count as valid (paper mode).")
    ] = "strict",
    require_relation: Annotated[
        bool, typer.Option("--require-relation", help="The last relation must be rel_b (paper mode).")
    ] = False,
    website: Annotated[
        bool,
        typer.Option(
            "--website",
            help="A path of one triple has its own score, as in the published results; the released code stops there "
            "(official mode).",
        ),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON row per input row on stdout, and nothing else there.")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="Folder for scores.jsonl and summary.json.")] = None,
) -> None:
    """Creative utility of recorded answers with recorded judgements; needs no model but the packaged MiniLM."""
    patiences = read_patiences(patience)
    from eval.create.files import print_results, write_results
    from eval.create.judging import Rules
    from eval.create.rows import read_rows
    from eval.create.scoring import paper, released, score_rows

    rules = Rules(validity=validity, require_relation=require_relation)
    chosen = paper(rules) if mode == "paper" else released("website" if website else "error")
    results = score_rows(read_rows(source), chosen, patiences)
    failed = sum("error" in result for result in results)
    if failed:
        typer.echo(f"note: {failed} of {len(results)} rows could not be scored, each says why", err=True)
    if out:
        typer.echo(f"scores: {write_results(out, results, mode)}", err=True)
    print_results(results, mode, as_json=as_json)


def read_patiences(text: str) -> tuple[float, ...]:
    """``0.7,0.9,1`` → numbers from 0 to 1, each once. Raises UserError."""
    found: dict[float, None] = {}
    for part in text.split(","):
        try:
            value = float(part)
        except ValueError:
            value = math.nan
        if not 0 <= value <= 1:
            raise UserError(f"--patience has {quoted(part.strip())}; give numbers from 0 to 1, as in 0.7,0.9,1")
        found[value] = None
    return tuple(found)
