"""The command line of the eval package: ``python -m eval --help``."""

import io
import signal
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from eval.console import print_lines, print_text
from eval.create.cli import create_app
from inference.errors import UserError, print_error

app = typer.Typer(
    help="Measure how well judges agree with people, and compare judges.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
data_app = typer.Typer(help="Get, check, simulate and exchange benchmark data.", no_args_is_help=True)
fetch_app = typer.Typer(help="Download public data, with its checksums verified.", no_args_is_help=True)
data_app.add_typer(fetch_app, name="fetch")
app.add_typer(data_app, name="data")
app.add_typer(create_app, name="create")

WandbMode = Literal["offline", "online"]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print tidy rows as JSON lines on stdout, and nothing else there.")
]
RunPath = Annotated[Path, typer.Argument(help="A run directory.", show_default=False)]


@app.command()
def run(
    config: Annotated[Path, typer.Option("--config", help="A file of configs/eval.", show_default=False)],
    out: Annotated[Path | None, typer.Option(help="Run directory instead of the config's.")] = None,
    as_json: AsJson = False,
    limit: Annotated[int | None, typer.Option(min=1, help="Judge only the first N samples.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print calls, tokens and price; ask nothing.")] = False,
) -> None:
    """Judge a benchmark and report the agreement with people. Start it again to resume an interrupted run."""
    from eval.rows import row_json
    from eval.run import dry_run as plan
    from eval.run import evaluate

    if dry_run and as_json:
        raise UserError("--json prints the rows of a report, which a dry run does not make; leave one of the two out")
    if dry_run:
        from rich.console import Console

        Console().print(plan(config, limit))
        return
    try:
        report = evaluate(config, out=out, limit=limit)
    except KeyboardInterrupt:
        typer.echo("interrupted; start the same command again to resume", err=True)
        raise typer.Exit(130) from None
    if as_json:
        print_lines(row_json(row) for row in report.rows)
    else:
        print_text(f"{report.as_text()}\n\nreport: {report.html}")


@app.command()
def report(
    run_dir: RunPath,
    wandb: Annotated[
        WandbMode | None,
        typer.Option(help="Mirror the report to W&B; without a value offline.", metavar="[offline|online]"),
    ] = None,
) -> None:
    """Recompute metrics.jsonl, report.md and report.html from the records of a run."""
    from eval.report import write_report
    from eval.tracking import Mirror

    mirror = Mirror.open(run_dir, wandb) if wandb else None
    written = write_report(run_dir)
    if mirror:
        mirror.send(written)
    print_text(f"{written.as_text()}\n\nreport: {written.html}")


@app.command()
def compare(
    first: RunPath,
    second: RunPath,
    judges: Annotated[
        tuple[str, str] | None,
        typer.Option(
            help="Two names separated by a space: a judge of the first run and one of the second. "
            "Default: all of the same name.",
            metavar="A B",
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="With several dimensions: every metric, kind of score and rater, too.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Differences between judges of two runs (first − second) on the samples both have scored, with intervals and p."""
    from eval.compare import compare_runs
    from eval.compare_tables import compared
    from eval.run_files import load_run
    from eval.tables import as_text

    found = compare_runs(load_run(first), load_run(second), judges)
    for note in found.notes:
        typer.echo(f"note: {note}", err=True)
    if as_json:
        print_lines(row.model_dump_json() for row in found.rows)
    else:
        tables = compared(found, everything=everything)
        if len(tables) < len(compared(found, everything=True)):
            typer.echo("note: every metric, kind of score and rater: --all, or --json", err=True)
        print_text(
            "\n\n".join("\n".join([table.title, *table.notes, as_text(table, intervals=True)]) for table in tables)
        )


@data_app.command()
def check(
    file: Annotated[
        Path,
        typer.Argument(
            help="A CGPST file: ratings, responses, evidence, scores, scenarios, splits.", show_default=False
        ),
    ],
    notes: Annotated[bool, typer.Option("--notes", help="Print every note; else one line for each kind.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print findings as JSON lines on stdout, and nothing else there.")
    ] = False,
) -> None:
    """Find faults in a file of the CGPST benchmark. Exit code 1 where there are errors; notes are no errors."""
    from eval.benchmarks.cgpst.check import inspect_file
    from eval.benchmarks.cgpst.findings import shown

    checked = inspect_file(file)
    if as_json:
        typer.echo(checked.summary, err=True)
        if checked.findings:
            print_lines(finding.model_dump_json() for finding in checked.findings)
    else:
        lines = shown(checked.findings, all_notes=notes)
        folded = len(lines) < len(checked.findings)
        print_lines([*lines, checked.summary + (" (all of them: --notes)" if folded else "")])
    if checked.errors:
        raise typer.Exit(1)


@data_app.command()
def export(
    run_dir: RunPath,
    out: Annotated[Path, typer.Option(help="Folder for the files; those of the same judges are replaced.")],
) -> None:
    """Write a CGPST run's scores and evidence in the layout of the released scripts, one file per judge."""
    from eval.benchmarks.cgpst.export import export_run

    print_lines(str(path) for path in export_run(run_dir, out))


@data_app.command()
def synth_cgpst(
    out: Annotated[Path, typer.Option(help="Folder for the files; those of an earlier simulation are replaced.")],
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same bytes.")] = 0,
    first: Annotated[int, typer.Option(min=1, help="Number of the first respondent.")] = 1,
    last: Annotated[int, typer.Option(max=999, help="Number of the last one; the benchmark has 1 to 20.")] = 20,
) -> None:
    """Write simulated CGPST: scenarios, responses, two raters, oracle evidence, splits. No person wrote or rated it."""
    from eval.benchmarks.simulation.files import write_simulation
    from inference.errors import UserError

    if last < first:
        raise UserError(f"--last {last} is before --first {first}: no respondent is left")
    print_lines(str(path) for path in write_simulation(out, seed, range(first, last + 1)))


@fetch_app.command()
def aut(
    out: Annotated[Path, typer.Option(help="Directory that gets a folder aut.")] = Path("data"),
    mirror: Annotated[str | None, typer.Option(help="URL with the same paths, instead of the public host.")] = None,
) -> None:
    """The Alternate Uses Task: rated responses and published judges' scores (MIT)."""
    from eval.benchmarks.fetch import NOT_REBUILT, fetch_aut

    fetch_aut(out, mirror, say=lambda message: typer.echo(message, err=True))
    typer.echo(f"note: {NOT_REBUILT}", err=True)


@fetch_app.callback()
def _fetch() -> None:
    """Keeps ``aut`` a command of its own while it is the only one."""


def main() -> None:
    """Entry point: a UserError becomes one line on stderr and exit code 2."""
    sys.argv[1:] = with_wandb_mode(sys.argv[1:])
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Tables have characters that not every terminal's encoding has.
        sys.stdout.reconfigure(errors="replace")
    # Ended from outside like by Ctrl-C, so that engines are closed: their processes would go on alone.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        app()
    except UserError as error:
        print_error(error)
        sys.exit(2)


def with_wandb_mode(arguments: list[str]) -> list[str]:
    """``--wandb`` without a value becomes ``--wandb offline``: options of typer always take one."""
    completed = []
    for argument, following in zip(arguments, [*arguments[1:], ""], strict=True):
        completed.append(argument)
        if argument == "--wandb" and following not in ("offline", "online"):
            completed.append("offline")
    return completed
