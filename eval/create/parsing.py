"""Model answers → paths. Reads whatever holds complete paths, accepts nothing else as one, and never raises.

Flags of a `ParsedAnswer` are advisory: ``answer_in_reasoning``, ``unclosed_reasoning``, ``unclosed_answer``,
``no_answer_tags``, ``truncated`` (the text ends inside a list), ``repaired`` (a bracket or quote had to be guessed),
``empty`` (nothing that stands where a path should).
"""

import json
from collections.abc import Iterable, Sequence

from eval.create.answers import answer_text
from eval.create.literal import Bare, Documents, Map, Node, Seq, read_documents
from eval.create.normal import normalised_path
from eval.create.records import ParsedAnswer, Path, Rejected
from eval.create.shapes import SHOWN, Candidate, candidates
from inference.prompts.text import sound


def parse_answer(text: str, *, salvage: bool = True) -> ParsedAnswer:
    """The paths of one answer, in order, repeated ones too.

    Args:
        text: All that the model wrote, with or without reasoning and tags.
        salvage: Keep the complete paths of a text that breaks off; else such a text has no paths.
    """
    found, flags = answer_text(sound(text))
    documents = read_documents(found)
    parts = _parts(documents)
    if documents.truncated and not salvage:
        parts = [_given_up(part) for part in parts]
    flags += ("truncated",) * documents.truncated + ("repaired",) * documents.repaired + ("empty",) * (not parts)
    return _collected([(0, part) for part in parts], flags)


def parse_samples(texts: Iterable[str | None], *, salvage: bool = True) -> ParsedAnswer:
    """Union of several answers to one query: duplicates but for case, width and whitespace are rejected as such.

    A sample of None or blank text has no paths. Flags are those of any sample.
    """
    seen: set[tuple[tuple[str, ...], ...]] = set()
    parts: list[tuple[int, Candidate]] = []
    flags: dict[str, None] = {}
    for sample, text in enumerate(texts):
        parsed = parse_answer(text or "", salvage=salvage)
        flags.update(dict.fromkeys(parsed.flags))
        for part in _in_order(parsed):
            parts.append((sample, _unless_seen(part, seen)))
    if parts:
        flags.pop("empty", None)
    return _collected(parts, tuple(flags))


def render_answer(paths: Sequence[Path]) -> str:
    """`paths` in the form that models are asked for: an object of numbered paths in answer tags."""
    numbered = {str(number): path for number, path in enumerate(paths, start=1)}
    return f"<answer>\n{json.dumps(numbered, ensure_ascii=False)}\n</answer>"


def _parts(documents: Documents) -> list[Candidate]:
    """Of all lists and objects those that hold paths; where none does, what those that are no prose hold."""
    every = [(value, candidates(value)) for value in documents.values]
    holding = [parts for _, parts in every if any(_is_path(part) for part in parts)]
    # In prose, bare words in brackets are no attempt at a path.
    return [part for parts in holding or [parts for value, parts in every if _is_attempt(value)] for part in parts]


def _is_attempt(value: Seq | Map) -> bool:
    inner: list[Node] = value.items if isinstance(value, Seq) else [item for _, item in value.pairs]
    return isinstance(value, Map) or any(not isinstance(item, Bare) for item in inner)


def _is_path(part: Candidate) -> bool:
    return not isinstance(part[0], str)


def _given_up(part: Candidate) -> Candidate:
    return ("truncated", json.dumps(part, ensure_ascii=False)[:SHOWN]) if _is_path(part) else part


def _in_order(parsed: ParsedAnswer) -> list[Candidate]:
    parts: dict[int, Candidate] = dict(zip(parsed.positions, parsed.paths, strict=True))
    parts.update({rejected.position: (rejected.reason, rejected.text) for rejected in parsed.rejected})
    return [parts[position] for position in sorted(parts)]


def _unless_seen(part: Candidate, seen: set[tuple[tuple[str, ...], ...]]) -> Candidate:
    if not _is_path(part):
        return part
    key = normalised_path(part)
    if key in seen:
        return "duplicate", json.dumps(part, ensure_ascii=False)[:SHOWN]
    seen.add(key)
    return part


def _collected(parts: Sequence[tuple[int, Candidate]], flags: tuple[str, ...]) -> ParsedAnswer:
    paths: list[Path] = []
    samples: list[int] = []
    rejected: list[Rejected] = []
    for position, (sample, part) in enumerate(parts):
        if isinstance(part[0], str):
            rejected.append(Rejected(position, part[0], str(part[1])))
        else:
            paths.append(part)
            samples.append(sample)
    return ParsedAnswer(tuple(paths), flags, tuple(rejected), tuple(samples))
