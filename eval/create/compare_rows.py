"""Rows of several models, from one file each or from one file of all, put together by query."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

from eval.create.normal import is_number
from eval.create.queries.read import read_queries
from eval.create.rows import BadRow, NamedObject, Row, make_row, read_objects
from inference.errors import UserError, named, named_list, quoted

MODEL_KEYS = ("generator", "model")
"""Under which a row says who answered: the first one that a file has."""
USAGE = "give NAME=FILE for each model, or one FILE whose rows name theirs as `generator` or `model`"


class Source(NamedTuple):
    """An argument of the command."""

    name: str | None
    """None where the rows themselves are to name their model."""
    path: Path


@dataclass(frozen=True)
class Entry:
    """One answer of one model."""

    model: str | None
    """None, like `query`, for a line that does not tell."""
    query: str | None
    row: Row | BadRow
    relation: str | None
    """What the query is counted under in the table by relation."""
    tokens: float | None
    """Output tokens of the answer."""
    place: str
    """File and line."""


def parse_source(text: str) -> Source:
    """``NAME=FILE``, or ``FILE``. Raises UserError for an empty part."""
    name, equals, path = text.partition("=")
    if not equals or Path(text).is_file():
        name, path = "", text
    elif not name.strip():
        raise UserError(f"{quoted(text)} has no name before the =; {USAGE}")
    if not path.strip():
        raise UserError(f"{quoted(text)} names no file; {USAGE}")
    return Source(name.strip() or None, Path(path))


def read_entries(sources: Sequence[Source], queries: Path | None) -> list[Entry]:
    """The answers of all files in order; what a row does not say of its query is taken from `queries`.

    Raises UserError for files and queries that cannot be read, fewer than two models, a name of two files, a query that
    a model answers twice, and models of which no two answer the same query.
    """
    known = {query.id: _query_keys(query.model_dump()) for query in read_queries(queries)} if queries else {}
    of_source = [list(_entries(source, known)) for source in sources]
    _check_names(sources, of_source)
    entries = [entry for found in of_source for entry in found]
    _check_queries(entries)
    asked = {entry.query for entry in entries if entry.query is not None}
    if queries and not asked & set(known):
        raise UserError(
            f"{queries}: holds none of the queries of the rows, such as {named_list(sorted(asked)[:3])}; its ids are "
            f"{named_list(list(known)[:3])} and so on; give the file that the answers were asked from"
        )
    return entries


def _query_keys(query: Mapping[str, Any]) -> dict[str, Any]:
    return {key: query[key] for key in ("entity_a", "rel_b", "entity_b", "description") if query[key]}


def _entries(source: Source, queries: Mapping[str, Mapping[str, Any]]) -> Iterator[Entry]:
    found = list(read_objects(source.path))
    contents = [line.content for line in found if isinstance(line, NamedObject)]
    key, names = _named_models(contents)
    alone = source.name or (names[0] if names else source.path.stem)
    for line in found:
        model = alone if len(names) < 2 else None
        if isinstance(line, BadRow):
            yield _lost(model, line.message, line.id, source.path)
            continue
        given = _text(line.content.get(key))
        if len(names) > 1 and given:
            model = f"{source.name}/{given}" if source.name else given
        yield _entry(model, key, line, source.path, queries)


def _named_models(contents: Sequence[Mapping[str, Any]]) -> tuple[str, list[str]]:
    """The key under which rows name their model, and the different names."""
    for key in MODEL_KEYS:
        names = dict.fromkeys(name for content in contents if (name := _text(content.get(key))))
        if names:
            return key, list(names)
    return MODEL_KEYS[0], []


def _entry(
    model: str | None, key: str, line: NamedObject, path: Path, queries: Mapping[str, Mapping[str, Any]]
) -> Entry:
    if model is None:
        return _lost(None, f"{line.name} has no {key}, which names the model of the other lines", line.name, path)
    query = _text(line.content.get("query_id")) or _text(line.content["id"])
    # `read_objects` calls a row without an id after its line, which says nothing of its query.
    if query is None or (query == line.name and "query_id" not in line.content):
        return _lost(
            model, f"{line.name} has no query_id and no id, by which answers are put together", line.name, path
        )
    given = {name: value for name, value in line.content.items() if value is not None}
    content = {**queries.get(query, {}), **given}
    return Entry(
        model, query, make_row(content, line.name), _relation(content), _tokens(content), f"{path}: {line.name}"
    )


def _lost(model: str | None, message: str, name: str, path: Path) -> Entry:
    return Entry(model, None, BadRow(name, message), None, None, f"{path}: {name}")


def _relation(content: Mapping[str, Any]) -> str | None:
    """``relation``, else the relation of ``description``, which is ``<class>__<relation>``, else ``rel_b``."""
    _, found, described = (_text(content.get("description")) or "").rpartition("__")
    return _text(content.get("relation")) or (found and described.strip()) or _text(content.get("rel_b"))


def _tokens(content: Mapping[str, Any]) -> float | None:
    """``output_tokens``, or the completion tokens of ``tokens`` where the server counted all of them."""
    found: Any = content.get("output_tokens")
    tokens = content.get("tokens")
    if found is None and isinstance(tokens, dict) and tokens.get("known", True):
        found = tokens.get("completion")
    return float(found) if is_number(found) and found >= 0 else None


def _text(value: Any) -> str | None:
    """A name or number as text; None where it is blank or anything else."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    return str(value).strip() or None


def _check_names(sources: Sequence[Source], of_source: Sequence[Sequence[Entry]]) -> None:
    names = Counter(name for entries in of_source for name in {entry.model for entry in entries} if name)
    repeated = [name for name, count in names.items() if count > 1]
    if repeated:
        raise UserError(f"the model {named_list(repeated)} is in more than one file; give each file a NAME= of its own")
    if len(names) < 2:
        files = named_list(source.path for source in sources)
        raise UserError(f"{files}: only one model, {named_list(names) or 'or none'}; two are needed: {USAGE}")


def _check_queries(entries: Sequence[Entry]) -> None:
    """One answer per model and query, and any query that two models answer."""
    places: dict[tuple[str | None, str], str] = {}
    answered: dict[str | None, set[str]] = {}
    for entry in entries:
        if entry.query is None:
            continue
        first = places.setdefault((entry.model, entry.query), entry.place)
        if first != entry.place:
            raise UserError(
                f"{entry.place} and {first.rpartition(': ')[2]} both answer the query {named(entry.query)} of the "
                f"model {named(str(entry.model))}; keep one of them, or tell different models apart by `generator`"
            )
        answered.setdefault(entry.model, set()).add(entry.query)
    if not any(one & other for one, other in combinations(answered.values(), 2)):
        examples = "; ".join(f"{model}: {named_list(sorted(ids)[:3])}" for model, ids in answered.items())
        raise UserError(
            f"no two models answer the same query ({examples or 'no row has an id'}); rows are put together by "
            "query_id, else id, which have to be the same in every file"
        )
