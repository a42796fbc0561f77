"""The command line of the training package: ``python -m training --help``."""

import io
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from inference.errors import UserError, print_error

app = typer.Typer(
    help="Split rated data, and make traces of evidence to learn from. Training itself: training.sft, training.sot.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
traces_app = typer.Typer(help="Evidence traces: collect, filter, look at and write them.", no_args_is_help=True)
app.add_typer(traces_app, name="traces")

Data = Annotated[
    Path,
    typer.Option(
        "--benchmark-config",
        help="A config that names rated samples: of an evaluation, a judging run or a training.",
        show_default=False,
    ),
]
Splits = Annotated[Path | None, typer.Option(help="File of splits; answers of the test part are left out.")]
NewFile = Annotated[Path, typer.Option("--out", help="File to write; must not exist yet.", show_default=False)]
NewFolder = Annotated[Path, typer.Option("--out", help="Folder to write; must not hold files yet.", show_default=False)]
Folder = Annotated[Path, typer.Argument(help="A folder of traces.", show_default=False)]
FilterFile = Annotated[
    Path, typer.Option("--config", help="Thresholds, such as configs/training/traces.yaml.", show_default=False)
]


@app.command()
def split(
    benchmark_config: Data,
    out: NewFile,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same split.")] = 0,
) -> None:
    """Split rated samples 7:3 into training and test, by sample and by scenario."""
    from training.sources import read_source
    from training.splits import make_splits, write_splits

    splits = make_splits(read_source(benchmark_config, whole=True).samples, seed)
    write_splits(out, splits)
    for name, sides in splits.items():
        typer.echo(f"{name}: {len(sides['train'])} train, {len(sides['test'])} test")


@app.command()
def folds(
    benchmark_config: Data,
    splits: Annotated[Path, typer.Option(help="File of splits; its training part is divided.", show_default=False)],
    out: NewFile,
    split: Annotated[str, typer.Option(help="Name of the split in the file.")] = "scenario",
    by: Annotated[Literal["sample", "scenario"], typer.Option(help="What stays together in a fold.")] = "scenario",
    count: Annotated[int, typer.Option(min=2, help="Number of folds.")] = 2,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same folds.")] = 0,
) -> None:
    """Divide a training part into folds, for evidence on answers that an analyst has not learned from."""
    from training.sources import read_source
    from training.splits import make_folds, need_known, side_of, write_splits

    samples = read_source(benchmark_config, whole=True).samples
    train = side_of(str(splits), split, "train")
    need_known(train, samples, str(splits))
    made = make_folds([sample for sample in samples if sample.id in train], count, by, seed)
    write_splits(out, made)
    for name, sides in made.items():
        typer.echo(f"{name}: {len(sides['train'])} to learn from, {len(sides['test'])} to write evidence on")


@traces_app.command()
def collect(
    out: NewFolder,
    runs: Annotated[list[Path] | None, typer.Argument(help="Run directories.", show_default=False)] = None,
    oracle: Annotated[
        Path | None, typer.Option(help="Folder of a simulation: its oracle evidence stands in for a teacher's.")
    ] = None,
    judge: Annotated[list[str] | None, typer.Option(help="Judges whose evidence is taken; repeatable.")] = None,
    splits: Splits = None,
    split: Annotated[str, typer.Option(help="Name of the split in the file.")] = "scenario",
    rubric: Annotated[str, typer.Option(help="Rubric of the simulation.")] = "cgpst",
) -> None:
    """Make traces of the evidence in evaluation or judging runs with an analyst, or of a simulation."""
    from training.traces.collect import collect_oracle, collect_runs

    if oracle is not None and (runs or judge):
        raise UserError("--oracle takes no run and no --judge: collect them into folders of their own")
    named = None if splits is None else str(splits)
    if oracle is not None:
        collect_oracle(oracle, out, splits=named, split=split, rubric=rubric)
    else:
        collect_runs(runs or [], out, judges=judge or (), splits=named, split=split)
    _print_info(out)


@traces_app.command("filter")
def filter_(folder: Folder, config: FilterFile, out: NewFolder) -> None:
    """Keep what is worth learning from, and say what was dropped for which reason."""
    from rich.console import Console

    from inference.config import load_config
    from training.traces.filter import FilterConfig, filter_folder
    from training.traces.show import drop_sample, filter_table, print_drops

    settings = load_config(config, FilterConfig)
    found, info = filter_folder(folder, settings, out)
    console = Console()
    console.print(filter_table(found, info.rubric))
    sample = drop_sample(found.dropped, settings.shown)
    if sample:
        console.print(f"{len(sample)} of {len(found.dropped)} dropped, all of them in {out}:", highlight=False)
        print_drops(console, [drop.as_json() for drop in sample])


@traces_app.command()
def show(
    folder: Folder,
    sample: Annotated[str | None, typer.Option(help="Id of a sample, for all its traces.")] = None,
    count: Annotated[int, typer.Option("--count", min=0, help="Traces to print.")] = 2,
    dropped: Annotated[bool, typer.Option("--dropped", help="What the filter dropped, with reasons.")] = False,
) -> None:
    """Print what is in a folder of traces, and some of them."""
    from rich.console import Console

    from training.traces.records import read_traces
    from training.traces.show import chosen, counts_table, print_drops, print_trace, read_drops

    console = Console()
    if dropped:
        print_drops(console, [row for row in read_drops(folder) if sample in (None, row["sample_id"])][:count])
        return
    info, traces = read_traces(folder)
    console.print(counts_table(info))
    for trace in chosen(traces, sample, count):
        print_trace(console, trace)


@traces_app.command()
def write(
    analyst: Annotated[
        Path, typer.Option(help="Adapter of a trained analyst, or a model that it was merged into.", show_default=False)
    ],
    benchmark_config: Data,
    splits: Annotated[Path, typer.Option(help="File of folds or splits.", show_default=False)],
    fold: Annotated[str, typer.Option(help="Fold or split in the file.", show_default=False)],
    out: Annotated[Path, typer.Option(help="Run directory; the same command goes on with it.", show_default=False)],
    side: Annotated[Literal["train", "test"], typer.Option(help="Which part of it evidence is written on.")] = "test",
    model: Annotated[Path | None, typer.Option(help="Base model of an adapter. Default: the one it names.")] = None,
    engine: Annotated[Literal["hf", "vllm"], typer.Option(help="What computes.")] = "hf",
    dtype: Annotated[Literal["float32", "bfloat16"], typer.Option(help="Of weights and activations.")] = "float32",
    batch_size: Annotated[int, typer.Option(min=1, help="Calls computed together.")] = 32,
    max_model_len: Annotated[int, typer.Option(min=8, help="Longest prompt plus answer, in tokens.")] = 2048,
    config: Annotated[
        Path | None, typer.Option(help="Thresholds of the filter, for the shares that are printed.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Write on the first answers only.")] = None,
) -> None:
    """Write evidence with a trained analyst, on answers that it has not learned from."""
    from rich.console import Console

    from inference.adapters import read_adapter
    from inference.config import load_config
    from inference.judges import ModelConfig
    from training.sources import read_source
    from training.traces.filter import FilterConfig
    from training.traces.quality import quality_table
    from training.traces.write import OUT, write_fold

    settings = FilterConfig() if config is None else load_config(config, FilterConfig)
    adapted = not (analyst / "config.json").is_file()
    asked = ModelConfig(
        engine=engine,
        model=str(model or (read_adapter(analyst).base_model if adapted else analyst)),
        adapter=str(analyst) if adapted else None,
        dtype=dtype,
        batch_size=batch_size,
        max_model_len=max_model_len,
    )
    source = read_source(benchmark_config, whole=True)
    console = Console()
    found = write_fold(asked, source, str(splits), fold, out, settings, side=side, limit=limit)
    console.print(quality_table(found))
    console.print(f"evidence: {out / OUT}", soft_wrap=True, highlight=False, markup=False)


@traces_app.command()
def quality(
    run: Annotated[Path, typer.Argument(help="Run directory of an evaluation or of `inference judge`.")],
    config: Annotated[
        Path | None, typer.Option(help="Thresholds of the filter: steps without quotations, names for no choice.")
    ] = None,
    judge: Annotated[list[str] | None, typer.Option(help="Only of this judge; may be repeated.")] = None,
) -> None:
    """Print what the evidence in a run is worth: share in the form asked for, grounded in the response, not made up."""
    from rich.console import Console

    from inference.config import load_config
    from inference.errors import UserError
    from training.traces.filter import FilterConfig
    from training.traces.quality import quality_table, run_quality

    settings = FilterConfig() if config is None else load_config(config, FilterConfig)
    found = run_quality(run, settings, judge or ())
    if not found:
        raise UserError(f"{run}: nothing has been judged yet; start the run again")
    for name, steps in found.items():
        Console().print(quality_table(steps, name))


@traces_app.command()
def merge(
    files: Annotated[list[Path], typer.Argument(help="Files of evidence on different answers.", show_default=False)],
    out: NewFile,
    rubric: Annotated[str, typer.Option(help="Rubric of the evidence.")] = "cgpst",
) -> None:
    """Join files of evidence, such as those of all folds, into one to train a judge on."""
    from inference.rubric import load_rubric
    from training.traces.write import merge as join

    typer.echo(f"{out}: evidence on {join(files, out, load_rubric(rubric))} answers")


def _print_info(folder: Path) -> None:
    from rich.console import Console

    from training.traces.records import read_info
    from training.traces.show import counts_table

    Console().print(counts_table(read_info(folder)))


def main() -> int:
    """Entry point: a UserError becomes one line on stderr and exit code 2."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal of another encoding is no reason to stop
    try:
        app()
    except UserError as error:
        print_error(error)
        return 2
    return 0
