"""The items of a raw response: its parts by number, ``1. …`` at the beginning of a line."""

import re

from inference.records import Sample
from inference.rubric import Step

# "1.", "2)", "(3)", "4:", "**5.**", "Challenge 6:"; years and decimals don't begin an item.
_NUMBER = re.compile(
    r"^[ \t]*(?:[*_#>-]+[ \t]*)?(?:[^\W\d_]+[ \t]+)?[(\[#]?(\d{1,2})(?:[.):\]]+|[ \t]+[-–—])(?!\d)[*_]*", re.MULTILINE
)
_BLANK_LINES = re.compile(r"\n\s*\n")


def split_items(text: str, count: int) -> list[str]:
    """The texts of the items 1 … `count`, without their numbers; empty where a number is missing.

    The first line with a number begins its item; numbers that come again belong to the item they stand in. What stands
    before the first number, and items beyond `count`, are left out. A text without numbers falls into its paragraphs,
    or where there is but one into its lines.
    """
    starts = _starts(text, count)
    if not starts:
        parts = [part for part in _BLANK_LINES.split(text) if part.strip()]
        parts = parts if len(parts) > 1 else text.splitlines()
        texts = [part.strip() for part in parts if part.strip()]
        return (texts + [""] * count)[:count]
    ends = [match.start() for _, match in starts[1:]] + [len(text)]
    found = {number: text[match.end() : end].strip() for (number, match), end in zip(starts, ends, strict=True)}
    return [found.get(number, "") for number in range(1, count + 1)]


def _starts(text: str, count: int) -> list[tuple[int, re.Match[str]]]:
    found: dict[int, re.Match[str]] = {}
    for match in _NUMBER.finditer(text):
        number = int(match[1])
        # A number beyond the items begins one only where it goes on counting.
        if number not in found and number > 0 and (number <= count or number - 1 in found):
            found[number] = match
    return list(found.items())


def item_texts(step: Step, sample: Sample) -> list[str]:
    """The items of the response to `step`, as many as are judged. Raises ValueError for a step without items."""
    if step.items is None:
        raise ValueError(f"step {step.name} has no items")
    return split_items(sample.responses.get(step.name, ""), step.items.count)
