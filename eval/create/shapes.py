"""From a tree of lists and objects to paths: every shape in which models write them, and a reason for what is none."""

import json
import re
from collections.abc import Iterator
from typing import Any

from eval.create.literal import Bare, Map, Node, Seq, Text
from eval.create.records import Path, Triple

SHOWN = 200
"""Most characters of a rejected part that are kept."""
_HEAD, _RELATION, _TAIL = ("head", "subject"), ("relation", "relationship", "predicate"), ("tail", "object")
_WRAPPERS = ("path", "paths", "triples")
_TRIPLE_TEXT = re.compile(r"\s*\(([^,]*),([^,]*),([^,]*)\)\s*")
_NUMBER = re.compile(r"[-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")

Candidate = Path | tuple[str, str]
"""A path, or (reason, text) of what stands in its place."""


def candidates(root: Seq | Map) -> list[Candidate]:
    """Everything in `root` that is a path or stands where one should, in order. Shapes that are read:

    key → triples, key → {"path": triples}, {"paths": [...]}, a list of paths, a list of triples (one path), a flat list
    of 3k strings (k triples); a triple as a list of three, as an object with head, relation and tail (or subject and
    object, predicate), or as text "(head, relation, tail)" with exactly two commas.
    """
    return [] if _is_empty(root) else list(_collect(root))


def _is_empty(node: Seq | Map) -> bool:
    return not (node.items if isinstance(node, Seq) else node.pairs)


def _collect(node: Node) -> Iterator[Candidate]:
    if isinstance(node, Map):
        yield from _of_map(node)
    elif isinstance(node, Seq):
        yield from _of_seq(node)
    else:
        yield "bad_path", shown(node)


def _of_map(node: Map) -> Iterator[Candidate]:
    if _named_triple(node) is not None:
        yield _path(node, [node])
        return
    wrapped = [value for key, value in node.pairs if key.casefold() in _WRAPPERS]
    for value in wrapped or [value for _, value in node.pairs]:
        yield from _collect(value)


def _of_seq(node: Seq) -> Iterator[Candidate]:
    depth = _depth(node)
    if (depth >= 3 and not any(_is_mixed(item) for item in node.items)) or (depth == 2 and _holds_flat_paths(node)):
        for item in node.items:
            yield from _collect(item)
    elif depth == 1 and not any(_is_triple_text(item) for item in node.items):
        yield _flat(node)
    else:
        yield _path(node, node.items)


def _depth(node: Node) -> int:
    """0 a scalar, 1 a triple, 2 a path, 3 a list of paths; an object with a path in it counts like the path."""
    if isinstance(node, Seq):
        return 1 + max(map(_depth, node.items), default=0)
    if isinstance(node, Map):
        if _named_triple(node) is not None:
            return 1
        wrapped = [_depth(value) for key, value in node.pairs if key.casefold() in _WRAPPERS]
        return max(wrapped) if wrapped else 1 + max((_depth(value) for _, value in node.pairs), default=0)
    return 0


def _is_mixed(node: Node) -> bool:
    """A triple one of whose parts is a list: names beside containers."""
    if not isinstance(node, Seq):
        return False
    scalars = [item for item in node.items if not isinstance(item, (Seq, Map)) and not _is_triple_text(item)]
    return 0 < len(scalars) < len(node.items)


def _holds_flat_paths(node: Seq) -> bool:
    """A list of flat paths: all of 3k names, at least one of more than three."""
    lengths = [len(item.items) if isinstance(item, Seq) else 0 for item in node.items]
    return all(length and length % 3 == 0 for length in lengths) and max(lengths) > 3


def _flat(node: Seq) -> Candidate:
    parts = node.items
    if not parts or all(isinstance(part, Bare) for part in parts):
        return "bad_path", shown(node)
    triples: list[Node] = [Seq(parts[start : start + 3], complete=True) for start in range(0, len(parts), 3)]
    return _path(node, triples)


def _path(node: Seq | Map, triples: list[Node]) -> Candidate:
    if not node.complete:
        return "truncated", shown(node)
    found = [_triple(triple) for triple in triples]
    path = tuple(triple for triple in found if triple is not None)
    return path if path and len(path) == len(found) else ("bad_triple", shown(node))


def _triple(node: Node) -> Triple | None:
    parts: list[Node] | None
    if isinstance(node, Text):
        match = _TRIPLE_TEXT.fullmatch(node.text)
        parts = [Text(part.strip()) for part in match.groups()] if match else None
    else:
        parts = node.items if isinstance(node, Seq) else _named_triple(node) if isinstance(node, Map) else None
    if parts is None or len(parts) != 3:
        return None
    texts = [_part(part) for part in parts]
    head, relation, tail = texts
    return (head, relation, tail) if head and relation and tail else None


def _named_triple(node: Map) -> list[Node] | None:
    """Head, relation and tail of an object that names all three."""
    by_name = {key.casefold(): value for key, value in node.pairs}
    found = [next((by_name[name] for name in names if name in by_name), None) for names in (_HEAD, _RELATION, _TAIL)]
    parts = [part for part in found if part is not None]
    return parts if len(parts) == 3 else None


def _part(node: Node) -> str | None:
    """Text of a name or number, None where it is blank or anything else."""
    if isinstance(node, Text):
        return node.text if node.text.strip() else None
    return node.text if isinstance(node, Bare) and _NUMBER.fullmatch(node.text) else None


def _is_triple_text(node: Node) -> bool:
    return isinstance(node, Text) and node.text.lstrip().startswith("(") and node.text.rstrip().endswith(")")


def shown(node: Node) -> str:
    """A part of an answer as compact JSON, at most `SHOWN` characters of it."""
    text = json.dumps(_plain(node), ensure_ascii=False)
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


def _plain(node: Node) -> Any:
    if isinstance(node, Seq):
        return [_plain(item) for item in node.items]
    if isinstance(node, Map):
        return {key: _plain(value) for key, value in node.pairs}
    return None if node == Bare("null") or node == Bare("None") else node.text
