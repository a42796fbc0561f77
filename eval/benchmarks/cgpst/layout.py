"""JSON files laid out as the benchmark's own scripts leave them.

Indented by four blanks, all characters as they are, no line end after the last line.
"""

import json
from pathlib import Path
from typing import Any, Literal

from inference.errors import UserError
from inference.files import open_text, parse_json, write_text

LineEnd = Literal["\r\n", "\n"]
PUBLISHED: LineEnd = "\r\n"
"""Line ends of the published files, which were written on Windows."""


def read_json(path: Path | str) -> Any:
    """The value in a UTF-8 JSON file.

    Raises UserError for unreadable files and faulty JSON, repeated keys and infinite numbers included.
    """
    with open_text(path) as file:
        text = file.read()
    try:
        return parse_json(text, finite=True)
    except ValueError as error:
        raise UserError(f"{path}: not valid JSON ({error}); mend the file, or export it again") from None


def write_json(path: Path | str, content: Any, line_end: LineEnd = PUBLISHED) -> None:
    """Write `content` in one step, so that reading and writing a file of this layout gives the same bytes."""
    text = json.dumps(content, ensure_ascii=False, indent=4)
    # Inside strings JSON escapes line ends, so all that are left belong to the layout.
    write_text(path, text.replace("\n", line_end))


def line_end_of(path: Path | str) -> LineEnd:
    """The line ends of a file, to be handed to `write_json` where it should keep them."""
    with open_text(path) as file:
        return "\r\n" if "\r\n" in file.read() else "\n"


def sound(text: str) -> str:
    """`text` with half surrogate pairs, which neither records nor engines take, as replacement characters."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def need(condition: bool, place: str, needed: str) -> None:
    """Raise a UserError unless `condition` holds: ``place: needed``."""
    if not condition:
        raise UserError(f"{place}: {needed}")
