"""Write merged weights: base model + adapter as one plain safetensors directory, for servers without LoRA support.

    python -m training.export merge --adapter runs/aut_smollm2/train/adapter --out runs/aut_smollm2/merged [--base DIR]

Merged weights are served faster than an adapter on top of its base, at the cost of a full copy on disk.
"""

import sys
from pathlib import Path
from typing import Annotated

import click
import typer

from inference.adapters import check_base, read_adapter
from inference.errors import UserError
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
    """Merged float32 weights and the tokenizer in `out`.

    Raises UserError where `out` exists, the adapter is no LoRA adapter of this base, or files are missing.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UserError(f"{out} is a file or already holds files; choose a new directory, nothing is overwritten")
    found = read_adapter(adapter)
    directory = model_directory(base if base is not None else found.base_model)
    check_base(found, directory)

    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    from inference.tokens import load_tokenizer

    model = AutoModelForCausalLM.from_pretrained(
        directory, dtype=torch.float32, local_files_only=True, trust_remote_code=False, use_safetensors=True
    )
    merged = PeftModel.from_pretrained(model, adapter).merge_and_unload(safe_merge=True)
    load_tokenizer(directory).save_pretrained(out)
    merged.save_pretrained(out)


def main() -> int:
    try:
        app(standalone_mode=False)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
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
