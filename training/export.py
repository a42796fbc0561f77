"""Write merged weights: base model + adapter as one plain safetensors directory, for servers without LoRA support.

    python -m training.export merge --adapter runs/aut_smollm2/train/adapter --out runs/aut_smollm2/merged [--base DIR]

Merged weights are served faster than an adapter on top of its base, at the cost of a full copy on disk.

A Qwen3.5 checkpoint holds a vision model beside the language model, whose weights are named ``model.language_model.…``
there and in vLLM. transformers trains the language model alone, under shorter names; `rename_to_base` gives an adapter
the names of the checkpoint. With the short ones vLLM would drop its weights and answer with the base model.
"""

import sys
from pathlib import Path
from typing import Annotated

import click
import typer

from inference.adapter_notes import copy_note
from inference.adapters import LANGUAGE_MODEL, PREFIX, TEXT_NAMES, check_base, model_shapes, read_adapter
from inference.errors import UserError, print_error
from inference.files import parse_json
from inference.tokens import model_directory

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, no_args_is_help=True, help=__doc__)


@app.callback()
def _commands() -> None:
    """Keeps `merge` a command of its own."""


@app.command()
def merge(
    adapter: Annotated[Path, typer.Option(help="Directory of the PEFT adapter.")],
    out: Annotated[Path, typer.Option(help="Directory to write; must not exist yet.")],
    base: Annotated[Path | None, typer.Option(help="Base model. Default: the one the adapter names.")] = None,
) -> None:
    """Merge an adapter into its base model."""
    merge_adapter(adapter, out, base)
    typer.echo(f"merged weights: {out}")


def merge_adapter(adapter: Path, out: Path, base: Path | None = None) -> None:
    """Merged float32 weights, the tokenizer, and what is noted beside the adapter, in `out`.

    Raises UserError where `out` exists, the adapter is no LoRA adapter of this base, or files are missing.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UserError(f"{out} is a file or already holds files; choose a new directory, nothing is overwritten")
    found = read_adapter(adapter)
    directory = model_directory(base if base is not None else found.base_model)
    check_base(found, directory)

    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM, AutoModelForImageTextToText

    from inference.tokens import load_tokenizer

    # A checkpoint with a vision model stays one: servers load it by the architecture its config names.
    whole = "text_config" in parse_json((directory / "config.json").read_bytes())
    kind = AutoModelForImageTextToText if whole else AutoModelForCausalLM
    model = kind.from_pretrained(
        directory, dtype=torch.float32, local_files_only=True, trust_remote_code=False, use_safetensors=True
    )
    names = None if whole else TEXT_NAMES
    merged = PeftModel.from_pretrained(model, adapter, key_mapping=names).merge_and_unload(safe_merge=True)
    load_tokenizer(directory).save_pretrained(out)
    merged.save_pretrained(out)
    copy_note(adapter, out)


def wraps_language_model(base: Path | str) -> bool:
    """Whether a checkpoint holds its language model under ``model.language_model.``, as those of Qwen3.5 do."""
    return any(name.startswith(LANGUAGE_MODEL) for name in model_shapes(Path(base)))


def rename_to_base(adapter: Path, base: Path | str) -> None:
    """Give the weights in an adapter's directory the names that their modules have in the base checkpoint."""
    if not wraps_language_model(base):
        return
    from safetensors.torch import load_file, save_file

    path = adapter / "adapter_model.safetensors"
    short, long = PREFIX + "model.", PREFIX + LANGUAGE_MODEL
    renamed = {
        long + name.removeprefix(short) if name.startswith(short) and not name.startswith(long) else name: weight
        for name, weight in load_file(path).items()
    }
    save_file(renamed, path, metadata={"format": "pt"})


def main() -> int:
    try:
        app(standalone_mode=False)
    except UserError as error:
        print_error(error)
        return 2
    except typer.Exit as exit_:
        return exit_.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (typer.Abort, KeyboardInterrupt):
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
