"""The command line of the inference package: ``python -m inference --help``."""

import io
import signal
import sys
from pathlib import Path
from typing import Annotated

import typer

from inference.errors import UserError, print_error

app = typer.Typer(
    help="Judge responses, serve judges, and look at rubrics.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
rubric_app = typer.Typer(help="Look at a rubric, or check one of your own.", no_args_is_help=True)
app.add_typer(rubric_app, name="rubric")

ConfigPath = Annotated[Path, typer.Option("--config", help="A YAML file.", show_default=False)]
RubricPath = Annotated[
    Path, typer.Argument(help="A rubric file, or the name of one in configs/rubrics.", show_default=False)
]


@app.command()
def judge(
    config: ConfigPath,
    input_path: Annotated[
        Path | None, typer.Option("--input", help="Responses (.csv or .jsonl) instead of the config's.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Run directory instead of the config's.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print calls, tokens and price; ask nothing.")] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="Judge only the first N samples.", metavar="N")] = None,
) -> None:
    """Score responses: a CSV or JSONL file in, scores.csv out. Start it again to resume an interrupted run."""
    from inference.judge import judge_file

    try:
        judge_file(config, input_path, out, dry_run, limit)
    except KeyboardInterrupt:
        typer.echo("interrupted; start the same command again to resume", err=True)
        raise typer.Exit(130) from None


@app.command()
def serve(config: ConfigPath) -> None:
    """Serve a model and its adapters with vLLM over the OpenAI protocol."""
    from inference.serve import serve as start

    raise typer.Exit(start(config))


@app.command()
def service(config: ConfigPath) -> None:
    """Judge samples over HTTP: POST /v1/judge answers with scores and evidence. Ctrl-C ends it."""
    from inference.service import serve_judges

    try:
        raise typer.Exit(serve_judges(config))
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


@app.command()
def check_adapter(config: ConfigPath) -> None:
    """Prove that an adapter changes the base model and that vLLM computes what PEFT computes."""
    from inference.check_adapter import check_adapter as check

    raise typer.Exit(check(config))


@rubric_app.command()
def show(rubric: RubricPath) -> None:
    """Print a rubric: what a judge is told, and what is computed from the answers."""
    from inference.prompts import describe
    from inference.rubric import load_rubric, split_variants, variants_of

    loaded = load_rubric(rubric)
    lines = [f"{loaded.name} ({loaded.digest})", loaded.description, "", describe(loaded)]
    computed = [(step, d) for step, d in loaded.scored if d.derived or d.per_item]
    if computed:
        lines += ["", "Computed from the answers:"]
    for step, dimension in computed:
        how = f"sum of {', '.join(dimension.sum_of)}" if dimension.sum_of else "sum over the items"
        if dimension.distinct:
            how = f"different {dimension.distinct} names among the items that count"
        low, high = dimension.range
        lines.append(f"- {step.name}.{dimension.name} ({low} to {high}): {how}")
    if variants := variants_of(rubric):
        lines += ["", f"Variants, chosen by {split_variants(rubric)[0]}#NAME,NAME: {', '.join(variants)}"]
    typer.echo("\n".join(lines))


@rubric_app.command()
def check(rubric: RubricPath) -> None:
    """Check a rubric file and its variants; says what is wrong and in which line."""
    from inference.rubric import load_rubric, split_variants, variants_of

    loaded = load_rubric(rubric)
    variants = variants_of(rubric)
    for variant in variants:
        load_rubric(f"{split_variants(rubric)[0]}#{variant}")
    if len(loaded.scored) == 1:
        ((step, dimension),) = loaded.scored
        holds = f"{step.name}.{dimension.name} {list(dimension.range)}"
    else:
        holds = (
            f"{len(loaded.answered)} steps, {len(loaded.unsummed)} dimensions asked or derived per step, "
            f"{len(loaded.scored)} scored with sums, {len(loaded.reported)} reported; "
            "`python -m inference rubric show` lists them"
        )
    typer.echo(f"{rubric} is a valid rubric: {holds}")
    if variants:
        typer.echo(f"its variants are valid, too: {', '.join(variants)}")


def main() -> None:
    """Entry point: a UserError becomes one line on stderr and exit code 2."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal of another encoding is no reason to stop
    # Ended from outside like by Ctrl-C, so that engines are closed: their processes would go on alone.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        app()
    except UserError as error:
        print_error(error)
        sys.exit(2)
