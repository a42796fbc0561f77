"""``python -m eval create …``: the commands of the CREATE benchmark."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

import typer

from eval.create.queries.cli import queries_app
from inference.errors import UserError, printable, quoted

create_app = typer.Typer(help="CREATE: many creative paths between two entities.", no_args_is_help=True)
create_app.add_typer(queries_app, name="queries")


@contextmanager
def _resumable() -> Iterator[None]:
    """An interrupted run ends with a word on how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo("interrupted; start the same command again to resume", err=True)
        raise typer.Exit(130) from None


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
        typer.echo(printable(f"scores: {write_results(out, results, mode)}"), err=True)
    print_results(results, mode, as_json=as_json)


@create_app.command()
def generate(
    config: Annotated[
        Path, typer.Option("--config", help="A file such as configs/eval/create_demo_smollm2.yaml.", show_default=False)
    ],
    out: Annotated[Path | None, typer.Option(help="Run directory instead of the config's.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N queries.", metavar="N")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print calls, tokens and price; ask nothing.")] = False,
) -> None:
    """Ask models for paths: queries in, answers.jsonl out. Start it again to resume an interrupted run."""
    from eval.console import print_shown, print_text
    from eval.create.generation.run import dry_run as estimate
    from eval.create.generation.run import generate as run

    if dry_run:
        print_shown(estimate(config, limit))
        return
    with _resumable():
        answers, table = run(config, out, limit)
    print_shown(table)
    print_text(printable(f"answers: {answers}"))


@create_app.command()
def evaluate(
    config: Annotated[
        Path, typer.Option("--config", help="A file such as configs/eval/create_evaluate.yaml.", show_default=False)
    ],
    out: Annotated[Path | None, typer.Option(help="Run directory instead of the config's.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print paths and calls; ask nothing.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the report as JSON on stdout, and nothing else there.")
    ] = False,
) -> None:
    """Judge specificity and factuality of every path of answers. Start it again to resume an interrupted run."""
    import json

    from eval.console import print_lines, print_shown, print_text
    from eval.create.evaluators.report import report_tables
    from eval.create.evaluators.run import EVALUATED, read_evaluation
    from eval.create.evaluators.run import evaluate as run
    from eval.create.files import print_results

    if dry_run and as_json:
        raise UserError("--json prints the report, which a dry run does not make; leave one of the two out")
    plan = read_evaluation(config, out)
    if dry_run:
        print_lines(map(printable, plan.shown()))
        return
    with _resumable():
        found = run(plan)
    if as_json:
        print_text(json.dumps(found.report, allow_nan=False))
        return
    if found.results:
        print_results(found.results, "paper", as_json=False)
    print_shown(*report_tables(found.report))
    print_text(printable(f"rows for `eval create score`: {found.path / EVALUATED}"))


@create_app.command()
def reasoning(
    config: Annotated[
        Path, typer.Option("--config", help="A file such as configs/eval/create_reasoning.yaml.", show_default=False)
    ],
    out: Annotated[Path | None, typer.Option(help="Run directory instead of the config's.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print calls, tokens and price; ask nothing.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the report as JSON on stdout, and nothing else there.")
    ] = False,
) -> None:
    """Relations, entities, strategies in the thinking behind answers. Start it again to resume an interrupted run."""
    import json

    from eval.console import print_shown, print_text
    from eval.create.reasoning.report import report_tables
    from eval.create.reasoning.run import read_plan, read_traces

    if dry_run and as_json:
        raise UserError("--json prints the report, which a dry run does not make; leave one of the two out")
    plan = read_plan(config, out)
    if dry_run:
        print_shown(plan.estimated())
        return
    with _resumable():
        path, report = read_traces(plan)
    if as_json:
        print_text(json.dumps(report, allow_nan=False))
        return
    print_shown(report_tables(report))
    print_text(printable(f"what was read in each trace: {path / 'readings.jsonl'}"))


@create_app.command()
def triples(
    replies: Annotated[
        Path, typer.Option(help="JSONL: a path with its recorded replies per line.", show_default=False)
    ],
    queries: Annotated[Path, typer.Option(help="JSONL: query_id, entity_a, entity_b.", show_default=False)],
    out: Annotated[Path, typer.Option(help="Folder for train.csv, validation.csv, test.csv.", show_default=False)],
    answers: Annotated[
        Path | None, typer.Option(help="JSONL: query_id, model, answer; gives triples the case they had.")
    ] = None,
    test_share: Annotated[float, typer.Option(min=0, max=1, help="Share of the queries.")] = 0.3,
    validation_share: Annotated[float, typer.Option(min=0, max=1, help="Share of the queries.")] = 0.15,
    seed: Annotated[int, typer.Option(min=0, help="Of the split.")] = 0,
) -> None:
    """Scored triples to train and test learned evaluators on, split by query."""
    from eval.console import print_lines
    from eval.create.triple_files import write_triples

    lines = write_triples(
        replies, queries, answers, out, test_share=test_share, validation_share=validation_share, seed=seed
    )
    print_lines(map(printable, lines))


@create_app.command()
def validate(
    what: Annotated[Literal["specificity", "factuality", "utility"], typer.Argument(help="What was rated.")],
    ratings: Annotated[
        Path, typer.Option(help="CSV: id, a column of queries, a column per rater.", show_default=False)
    ],
    raters: Annotated[str, typer.Option(help="Columns of people, or of a teacher, separated by commas.")],
    scores: Annotated[
        list[Path] | None, typer.Option(help="CSV with an id and a column per evaluator, as scores.csv of a run.")
    ] = None,
    judges: Annotated[
        str, typer.Option(help="Columns of evaluators, separated by commas. Default: all of --scores named …_value.")
    ] = "",
    cluster: Annotated[
        str,
        typer.Option(
            help="Column of the queries, which are resampled as a whole. Default: query, query_id or connection.",
            show_default=False,
        ),
    ] = "",
    seed: Annotated[int, typer.Option(min=0)] = 0,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON lines on stdout, and nothing else there.")
    ] = False,
) -> None:
    """Agreement of evaluators with people or a teacher, and differences between evaluators, with intervals by query."""
    from eval.console import print_lines, print_shown, width
    from eval.create.validation import validate as compare
    from eval.create.validation_table import read_ratings, validation_tables

    rows = compare(what, read_ratings(ratings, names(raters), names(judges), scores or [], cluster), seed=seed)
    if as_json:
        print_lines(row.model_dump_json() for row in rows)
    else:
        print_shown(*validation_tables(rows, width()))


@create_app.command()
def compare(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME=FILE",
            help="A model and its rows, as `score` reads them; or FILE, whose rows name theirs as generator or model.",
        ),
    ],
    queries: Annotated[
        Path | None, typer.Option(help="The query set: what rows don't say of their query.", show_default=False)
    ] = None,
    patience: Annotated[str, typer.Option(help="Values from 0 to 1, separated by commas.")] = "0.7,0.9,1",
    union_patience: Annotated[float, typer.Option(min=0, max=1, help="Of what models find together.")] = 1.0,
    validity: Annotated[Literal["strict", "shared", "official"], typer.Option(help="Which paths count.")] = "strict",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object on stdout, and nothing else there.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="Folder for comparison.json, scores.jsonl, tail_entities.jsonl.")
    ] = None,
) -> None:
    """Models side by side: utility, by relation, significance of differences, and what they find together."""
    import json

    from eval.console import print_shown, print_text, width
    from eval.create.compare import compare as compared
    from eval.create.compare_rows import parse_source, read_entries
    from eval.create.compare_tables import comparison_tables
    from eval.create.files import write_comparison
    from eval.create.judging import Rules

    patiences = read_patiences(patience)
    entries = read_entries([parse_source(text) for text in files], queries)
    found = compared(entries, patiences, rules=Rules(validity=validity), union_patience=union_patience)
    if found.failed:
        typer.echo(f"note: {len(found.failed)} of {len(entries)} rows could not be scored, each says why", err=True)
    if out:
        typer.echo(printable(f"comparison: {write_comparison(out, found)}"), err=True)
    if as_json:
        print_text(json.dumps(found.as_json(), allow_nan=False))
    else:
        print_shown(*comparison_tables(found, width()))


@create_app.command()
def published(
    file: Annotated[Path, typer.Argument(help="JSON with website_patience_curves: model → patience → mean utility.")],
    patience: Annotated[str, typer.Option(help="Values from 0 to 1, separated by commas.")] = "0.7,0.9",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object on stdout, and nothing else there.")
    ] = False,
) -> None:
    """Published utilities beside where they lie by the paper's discount, which the released code departs from."""
    from eval.console import print_shown, print_text, width
    from eval.create.published import convert_curves, published_json, published_tables, read_published

    patiences = read_patiences(patience)
    curves = read_published(file)
    converted = convert_curves(curves.website_patience_curves, patiences)
    if as_json:
        print_text(published_json(curves, converted))
    else:
        print_shown(*published_tables(curves, converted, width()))


def names(text: str) -> list[str]:
    """``a, b`` → its names."""
    return [name.strip() for name in text.split(",") if name.strip()]


def read_patiences(text: str) -> tuple[float, ...]:
    """``0.7,0.9,1`` → numbers from 0 to 1, each once. Raises UserError, also for two that are shown alike (``%g``)."""
    found: dict[float, None] = {}
    for part in text.split(","):
        try:
            value = float(part)
        except ValueError:
            value = math.nan
        if not 0 <= value <= 1:
            raise UserError(f"--patience has {quoted(part.strip())}; give numbers from 0 to 1, as in 0.7,0.9,1")
        found[value] = None
    if len({f"{value:g}" for value in found}) < len(found):
        raise UserError(f"--patience {quoted(text)}: two values are the same in six digits; leave one of them out")
    return tuple(found)
