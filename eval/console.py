"""The last that a command prints on stdout."""

import io
import os
import sys
from collections.abc import Iterable

from rich.console import Console, RenderableType

from inference.errors import UserError


def print_lines(lines: Iterable[str]) -> None:
    """Print `lines`, see `print_text`."""
    print_text("\n".join(lines))


def print_text(text: str) -> None:
    """Print `text` on stdout. A reader that has gone has seen enough.

    Raises UserError where stdout cannot be written.
    """
    try:
        print(text, flush=True)
    except OSError as error:
        # Python writes what is left in the buffer when it ends, and would fail once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            raise UserError(
                f"the output cannot be written ({error.strerror}); free space where it is sent, or send it elsewhere"
            ) from None


def print_shown(*parts: RenderableType) -> None:
    """Tables and lines on stdout, as wide as the terminal."""
    terminal, text = Console(), io.StringIO()
    console = Console(file=text, width=terminal.width, force_terminal=terminal.is_terminal)
    console.print(*parts, sep="\n", highlight=False)
    print_text(text.getvalue().rstrip("\n"))


def width() -> int:
    """Columns of the terminal."""
    return Console().width
