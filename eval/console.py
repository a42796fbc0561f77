"""The last that a command prints on stdout."""

import os
import sys
from collections.abc import Iterable

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
