"""JSON, Python literals and what models make of them, read into a tree without ever failing.

Accepted beyond JSON: comments and code fences outside strings, trailing and missing commas, round brackets, single
quotes, quotes and line ends inside strings, unquoted words and numbers, repeated keys, a closing bracket of the wrong
kind, and text that breaks off. String contents are kept as they are.
"""

import re
from dataclasses import dataclass, field

from inference.prompts.text import sound

DEEPEST = 60
"""Containers inside one another; whatever is nested deeper is passed over."""

_SPACE = re.compile(r"(?:\s+|//[^\n]*|#[^\n]*|/\*.*?(?:\*/|\Z)|```\w*)+", re.DOTALL)
_START = re.compile(r"[\[{]")
# A quote ends its string only where something follows that may stand after a string.
_FOLLOWS = re.compile(r"\s*(?:[,:\]})]|//|/\*|#|\Z)")
_WORD = r"(?:(?!//|/\*)[^,:\[\]{}()\"\n#])"
_BARE = re.compile(rf"{_WORD}+")
_BARE_VALUE = re.compile(rf"[-~≈]?\d{{1,3}}(?:,\d{{3}})+(?!\d){_WORD}*|{_WORD}+")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|x[0-9a-fA-F]{2}|.)", re.DOTALL)
_PLAIN_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "\n": ""}


@dataclass(frozen=True)
class Text:
    """A quoted string."""

    text: str


@dataclass(frozen=True)
class Bare:
    """What stands without quotes: a number, ``null``, ``True`` or any other words."""

    text: str


@dataclass
class Seq:
    """A list or tuple."""

    items: list["Node"] = field(default_factory=list)
    complete: bool = False
    """Whether its end was there."""


@dataclass
class Map:
    """An object; a key may occur more than once."""

    pairs: list[tuple[str, "Node"]] = field(default_factory=list)
    complete: bool = False


Node = Text | Bare | Seq | Map


@dataclass(frozen=True)
class Documents:
    """The lists and objects of a text, outermost ones only, in order."""

    values: tuple[Seq | Map, ...]
    repaired: bool = False
    """Whether a bracket or quote had to be guessed."""
    truncated: bool = False
    """Whether the text ends inside one."""


def read_documents(text: str) -> Documents:
    """Every list and object in `text`; what stands between them is passed over. Takes time linear in the text."""
    values: list[Seq | Map] = []
    repaired = truncated = False
    start = _START.search(text)
    while start:
        reader = _Reader(text, start.start())
        values.append(reader.read())
        repaired |= reader.repaired
        truncated |= reader.truncated
        start = _START.search(text, reader.position)
    return Documents(tuple(values), repaired, truncated)


def unescaped(text: str) -> str:
    """The contents of a string literal: JSON's and Python's escapes resolved, unknown ones left as they are."""
    found = _ESCAPE.sub(_character, text)
    paired = found.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if "\\u" in text else found
    return sound(paired)


def _character(match: re.Match[str]) -> str:
    code = match.group(1)
    if code[0] in "uUx" and len(code) > 1:
        point = int(code[1:], 16)
        return chr(point) if point < 0x110000 else match.group()
    if code in "\"'\\/":
        return code
    return _PLAIN_ESCAPES.get(code, match.group())


class _Reader:
    """Reads the container that opens at `position`; its open containers stand on a stack, so depth costs no calls."""

    def __init__(self, text: str, position: int) -> None:
        self.text = text
        self.position = position
        self.repaired = False
        self.truncated = False
        self._stack: list[Seq | Map] = []
        self._keys: list[str | None] = []  # of each open container: the key that waits for its value
        self._word: str | None = None  # a scalar in an object that may turn out to be a key
        self._too_deep = 0

    def read(self) -> Seq | Map:
        root = self._open(self.text[self.position])
        while self._stack:
            space = _SPACE.match(self.text, self.position)
            self.position = space.end() if space else self.position
            if self.position >= len(self.text):
                self._end()
                break
            self._step(self.text[self.position])
        return root

    def _step(self, character: str) -> None:
        if character in "[{(":
            self._flush()
            self._open(character)
        elif character in "]})":
            self._flush()
            self._close(character)
            self.position += 1
        elif character == ",":
            self._flush()
            self.position += 1
        elif character == ":":
            if self._word is not None:
                self._keys[-1], self._word = self._word, None
            self.position += 1
        elif character in "\"'":
            self._string(character)
        else:
            self._bare()

    def _open(self, character: str) -> Seq | Map:
        self.position += 1
        new: Seq | Map = Map() if character == "{" else Seq()
        if len(self._stack) >= DEEPEST:
            self._too_deep += 1
            return new
        if self._stack:
            self._add(new)
        self._stack.append(new)
        self._keys.append(None)
        return new

    def _close(self, character: str) -> None:
        if self._too_deep:
            self._too_deep -= 1
            return
        top = self._stack[-1]
        if isinstance(top, Map) and character != "}":
            self.repaired = True
            flat = not any(isinstance(value, (Seq, Map)) for _, value in top.pairs)
            if not (flat and len(self._stack) > 1 and isinstance(self._stack[-2], Seq)):
                return  # one bracket too many
            self._pop()  # an object in a list that lacks its own bracket
        elif isinstance(top, Seq) and character == "}":
            self.repaired = True
        self._pop()

    def _pop(self) -> None:
        self._stack.pop().complete = True
        self._keys.pop()

    def _end(self) -> None:
        """The text is over: fine where only the outermost object lacks its bracket, and one was of the wrong kind."""
        self._flush()
        if self.repaired and len(self._stack) == 1 and isinstance(self._stack[0], Map):
            self._stack[0].complete = True
        else:
            self.truncated = True

    def _string(self, quote: str) -> None:
        start = self.position + 1
        for match in re.compile(rf"\\.|{quote}", re.DOTALL).finditer(self.text, start):
            if match.group() != quote:
                continue
            if _FOLLOWS.match(self.text, match.end()):
                self.position = match.end()
                self._scalar(Text(unescaped(self.text[start : match.start()])))
                return
            self.repaired = True
        self.position = len(self.text)

    def _bare(self) -> None:
        waits = isinstance(self._stack[-1], Map) and self._keys[-1] is not None
        match = (_BARE_VALUE if waits else _BARE).match(self.text, self.position)
        if match is None:
            self.position += 1
            return
        self.position = match.end()
        if self.position < len(self.text):  # else more of it may be missing
            self._scalar(Bare(match.group().strip()))

    def _scalar(self, scalar: Text | Bare) -> None:
        if isinstance(self._stack[-1], Map) and self._keys[-1] is None:
            self._flush()
            self._word = scalar.text
        else:
            self._add(scalar)

    def _flush(self) -> None:
        """A scalar in an object that no colon followed is a value without a key."""
        if self._word is not None:
            word, self._word = self._word, None
            self._add(Text(word))

    def _add(self, node: Node) -> None:
        if self._too_deep:
            return
        top = self._stack[-1]
        if isinstance(top, Seq):
            top.items.append(node)
        else:
            top.pairs.append((self._keys[-1] or "", node))
            self._keys[-1] = None
