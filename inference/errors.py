"""The error a user sees as one sentence: what was given, what is needed, the way out."""

import re
import sys
from collections.abc import Iterable

SHOWN_ITEMS = 10


class UserError(Exception):
    """A mistake in input, configuration or environment that the user can mend.

    Command lines print its text after ``error:`` without a traceback and exit with code 2.
    """


def printable(text: str) -> str:
    """`text` for a terminal: names come from files, and no control character of them may reach it; lines stay lines."""
    return "".join(character if character.isprintable() or character == "\n" else "?" for character in text)


def print_error(error: UserError) -> None:
    """The line that a command line ends with."""
    print(f"error: {printable(str(error))}", file=sys.stderr)


def quoted(text: str, limit: int = 60) -> str:
    """A user's text for a message: quoted, on one line, at most `limit` characters of it."""
    return repr(text if len(text) <= limit else text[: limit - 3] + "...")


def shortened(number: float, limit: int = 20) -> str:
    """A number for a message: at most `limit` characters of it."""
    text = str(number)
    return text if len(text) <= limit else text[: limit - 3] + "..."


def named(text: str, limit: int = 60) -> str:
    """A user's name for a message: as it stands where it is one short word, else `quoted`."""
    return text if re.fullmatch(r"[\w.-]+", text) and len(text) <= limit else quoted(text, limit)


def named_list(texts: Iterable[object]) -> str:
    """Several of them: the first `SHOWN_ITEMS`, and how many more there are."""
    every = [str(text) for text in texts]
    shown = [named(text) for text in every[:SHOWN_ITEMS]]
    more = len(every) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
