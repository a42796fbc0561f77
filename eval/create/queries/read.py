"""Query sets from files: a folder of a data set, a Parquet file or a JSONL file."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from eval.create.queries.records import Query, query_id
from inference.errors import UserError, named_list, quoted
from inference.files import read_json_lines

COLUMNS = ("query", "entity_a", "rel_b", "entity_b")
IDS = ("query_id", "id")
Row = tuple[str, dict[str, Any]]
"""Place for messages, and the columns."""


def read_queries(path: Path | str) -> list[Query]:
    """The queries of a file, or of all Parquet files, else JSONL files, of a folder, in order of names and rows.

    Needs the columns of `COLUMNS`; ids come from ``query_id`` or ``id``, or follow from the content. Raises UserError
    for missing columns, blank cells, repeated ids, and files that cannot be read.
    """
    rows = [row for file in query_files(Path(path)) for row in _rows(file)]
    if not rows:
        raise UserError(f"{path}: holds no queries; it needs rows with the columns {', '.join(COLUMNS)}")
    ids = _ids(path, rows)
    return [_query(place, content, name) for (place, content), name in zip(rows, ids, strict=True)]


def query_files(path: Path) -> list[Path]:
    """The file itself, or a folder's files: the Parquet files, else the JSONL files. Raises UserError."""
    if not path.is_dir():
        return [path]
    visible = [file for file in sorted(path.rglob("*")) if not _hidden(file.relative_to(path))]
    for suffix in (".parquet", ".jsonl"):
        if found := [file for file in visible if file.suffix == suffix]:
            return found
    raise UserError(
        f"{path}: the folder holds no .parquet and no .jsonl file; name the folder or a file of a query set"
    )


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _rows(path: Path) -> Iterator[Row]:
    if path.suffix == ".parquet":
        for number, content in enumerate(_parquet(path), start=1):
            yield f"{path}: row {number}", content
        return
    for number, content in read_json_lines(path):
        yield f"{path}: line {number}", content


def _parquet(path: Path) -> list[dict[str, Any]]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise UserError(
            f"{path}: Parquet files need the package pyarrow, which is missing: pip install -e '.[create]' installs "
            "it; or give a JSONL file"
        ) from None
    try:
        rows: list[dict[str, Any]] = pyarrow.parquet.ParquetFile(path).read().to_pylist()
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; check the path (it is relative to {Path.cwd()})") from None
    except (OSError, pyarrow.ArrowException) as error:
        raise UserError(f"{path}: not a readable Parquet file ({' '.join(str(error).split())[:200]})") from None
    return rows


def _ids(path: Path | str, rows: list[Row]) -> list[str]:
    """Given ids have to differ; where there is none, equal rows get a number behind theirs."""
    given = [next((_text(content.get(name)) for name in IDS if _text(content.get(name))), "") for _, content in rows]
    repeated = [name for name, count in Counter(filter(None, given)).items() if count > 1]
    if repeated:
        raise UserError(f"{path}: the query ids {named_list(repeated)} occur more than once; give each query its own")
    seen: Counter[str] = Counter()
    found = []
    for name, (_, content) in zip(given, rows, strict=True):
        made = name or query_id(*(_text(content.get(column)) for column in COLUMNS))
        seen[made] += 1
        found.append(made if seen[made] == 1 else f"{made}-{seen[made]}")
    return found


def _query(place: str, content: dict[str, Any], name: str) -> Query:
    missing = [column for column in COLUMNS if column not in content]
    if missing:
        raise UserError(
            f"{place}: the column{'s' * (len(missing) > 1)} {', '.join(missing)} {'are' if len(missing) > 1 else 'is'} "
            f"missing; a query needs {', '.join(COLUMNS)}, and this one has {named_list(content) or 'nothing'}"
        )
    blank = [column for column in COLUMNS if not _text(content[column])]
    if blank:
        raise UserError(f"{place}: {', '.join(blank)} holds no text ({quoted(str(content[blank[0]]))}); fill it in")
    return Query(
        id=name,
        **{column: _text(content[column]) for column in COLUMNS},
        description=_text(content.get("description")),
        triples=_triples(content),
        ids=_iris(place, content.get("ids")),
        phrasing=_text(content.get("phrasing")),
    )


def _iris(place: str, value: Any) -> tuple[tuple[str, str, str], ...]:
    triples = [] if value is None else value
    if not isinstance(triples, list) or not all(
        isinstance(triple, list) and len(triple) == 3 and all(isinstance(part, str) for part in triple)
        for triple in triples
    ):
        raise UserError(f"{place}: ids has to be a list of triples of texts, or left out")
    return tuple((a, b, c) for a, b, c in triples)


def _triples(content: dict[str, Any]) -> tuple[Any, ...]:
    """A column ``triples``, or the columns whose names begin with ``triple``, by name."""
    if isinstance(content.get("triples"), list):
        return tuple(content["triples"])
    names = sorted(name for name in content if name.startswith("triple") and content[name] is not None)
    return tuple(content[name] for name in names)


def _text(value: Any) -> str:
    """A cell as text without white space around it; numbers count, truth values and the rest are none."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return ""
    return str(value).strip()
