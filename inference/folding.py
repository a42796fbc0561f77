"""Words of a text for comparison: without case, accents, punctuation and what cannot be seen, with their places.

Characters are folded one by one: compatibility forms (full width, ligatures) decomposed, combining marks and format
characters dropped, Cyrillic and Greek letters that look like Latin ones replaced by them. A Chinese, Japanese or Korean
character counts as a word.
"""

import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

_LOOKALIKES = str.maketrans(
    "авекмнорстухіјѕһԁԛԝӏαβεζικμνοπρτυχγıłøđɑɡ", "abekmhopctyxijshdqwlabezikmvonptuxyilodag", "ʼʹʻʽˈ"
)
_FILLERS = "\u115f\u1160\u3164\uffa0"
"""Letters by their category, invisible all the same."""
_BREAK = re.compile(r"(?<=[^\W\d_])[-\u2010\u2011\u00ad]\s+(?=[^\W\d_])")
_WORD = re.compile(
    r"[\u1100-\u1112][\u1161-\u1175]?[\u11a8-\u11c2]?"
    r"|[\u3040-\u30ff\u3400-\u9fff\U00020000-\U0003ffff]"
    r"|[^\W_\u1100-\u1112\u3040-\u30ff\u3400-\u9fff\U00020000-\U0003ffff]+"
)


class Word(NamedTuple):
    """A folded word, and the characters of the text in which it stands."""

    text: str
    start: int
    end: int


class _Folds(dict[int, str]):
    """Code point → what it is compared as: letters and digits, a blank between words, or nothing. Filled when asked."""

    def __missing__(self, code: int) -> str:
        self[code] = folded = _fold(chr(code))
        return folded


def _fold(character: str) -> str:
    kind = unicodedata.category(character)
    if character in _FILLERS or kind in ("Cf", "Cn") or (kind == "Cc" and not character.isspace()):
        return ""
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", character).casefold())
    plain = "".join(part for part in plain if unicodedata.category(part) not in ("Mn", "Me")).translate(_LOOKALIKES)
    if any(part.isalnum() for part in plain):
        return "".join(part if part.isalnum() else " " for part in plain)
    # Blanks stay one character, so that most texts keep their length.
    return " " if plain else ""


_FOLDS = _Folds()


def words(text: str, *, joined: bool = False) -> list[Word]:
    """The words of `text` in order. With `joined` a word that a hyphen divides at the end of a line is one."""
    breaks = [match.span() for match in _BREAK.finditer(text)] if joined else []
    folded = text.translate(_FOLDS)
    if len(folded) == len(text) and "" not in map(_FOLDS.__getitem__, set(map(ord, text))) and not breaks:
        return [Word(match.group(), *match.span()) for match in _WORD.finditer(folded)]
    return list(_moved(text, {at for start, end in breaks for at in range(start, end)}))


def _moved(text: str, left_out: set[int]) -> Iterator[Word]:
    """The words of a text whose folded form has another length."""
    pieces = ["" if at in left_out else _FOLDS[ord(character)] for at, character in enumerate(text)]
    places = [at for at, piece in enumerate(pieces) for _ in piece]
    for match in _WORD.finditer("".join(pieces)):
        end = places[match.end() - 1] + 1
        while end < len(text) and not pieces[end] and end not in left_out:
            end += 1  # the accents of the last letter
        yield Word(match.group(), places[match.start()], end)


def readings(text: str) -> list[list[Word]]:
    """The words of `text`; where hyphens stand before white space, once as they are and once joined."""
    return [words(text), words(text, joined=True)] if _BREAK.search(text) else [words(text)]
