"""``python -m eval create compare``: several models on the same queries, from one file each or one file of all."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eval.console import print_shown
from eval.create.compare import ModelComparison, compare
from eval.create.compare_rows import Entry, parse_source, read_entries
from eval.create.compare_tables import comparison_tables
from eval.create.judging import Rules
from eval.create.rows import read_rows
from eval.create.scoring import paper, score_rows
from inference.errors import UserError

Command = Callable[..., tuple[int, str, str]]
X, Y, Z = ([["a", "r", name], [name, "s", "b"]] for name in "xyz")
PATIENCES = (0.7, 0.9, 1.0)


def write(path: Path, rows: Sequence[Any]) -> Path:
    path.write_text("".join(row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def row(query: object, *paths: Any, strength: float = 4, **keys: Any) -> dict[str, Any]:
    judged = {"strengths": [strength] * len(paths), "factuality": [[1] * len(path) for path in paths]}
    return {"id": query, "entity_a": "a", "entity_b": "b", "paths": paths, **judged, **keys}


def entries(*sources: object, queries: Path | None = None) -> list[Entry]:
    return read_entries([parse_source(str(source)) for source in sources], queries)


@pytest.fixture
def two(tmp_path: Path) -> tuple[str, str]:
    """Arguments of two models: six common queries, of which one fails for `few`, and one that `many` alone has."""
    many = [row(f"q{n}", X, Y, relation="even" if n % 2 == 0 else "odd", output_tokens=100 + n) for n in range(7)]
    few = [row(f"q{n}", X, strength=3) for n in range(5)] + [row("q5", X, factuality=[])]
    return f"many={write(tmp_path / 'many.jsonl', many)}", f"few={write(tmp_path / 'few.jsonl', few)}"


@pytest.fixture
def found(two: tuple[str, str], one_hot: Any) -> ModelComparison:
    return compare(entries(*two), PATIENCES, embedder=one_hot)


def test_models(found: ModelComparison, one_hot: Any) -> None:
    many, few = found.models["many"], found.models["few"]
    assert one_hot.given == [" [r] x", " [r] y"]  # each string once, for scores and union together
    assert {name: mean.value for name, mean in many.summary.utility.items()} == pytest.approx(
        {"0.7": 6.8, "0.9": 7.6, "1": 8}
    )
    assert (few.summary.rows, few.summary.failed, few.summary.utility["1"].value) == (6, 1, 3)
    values = {name: mean and mean.value for name, mean in many.measures.items()}
    assert values == {
        "kept_paths": 2,
        "quality": 4,
        "distance": 1,
        "triples": 2,
        "entity_redundancy": 0,
        "relation_redundancy": 0.5,  # both paths go by r
        "output_tokens": 103,
    }
    assert few.measures["output_tokens"] is None
    assert few.measures["distance"] is None
    assert many.summary.valid == {"strict": 1, "shared": 1, "official": 1}


def test_relations_pairs_and_union(found: ModelComparison) -> None:
    assert list(found.relations) == ["even", "odd"]  # `few` does not say, `many` does
    assert found.relations["even"].queries == 4
    assert found.relations["odd"].utility["few"]["1"].n == 2
    (pair,) = found.pairs
    assert (pair.a, pair.b, pair.n, pair.difference) == ("many", "few", 5, 5)
    assert pair.significant
    union = found.union
    assert union is not None
    assert (union.queries, union.pooled, union.paths, union.entities) == (5, 8, 10, 10)
    assert (union.models["many"].coverage, union.models["few"].coverage) == (1, 3 / 8)
    assert (union.models["many"].tail_entities, union.models["few"].tail_entities) == (5, 0)
    assert found.tail_entities()[0] == {"query_id": "q0", "model": "many", "entity": "y", "paths": 1}
    assert [(one["model"], one["query"]) for one in found.failed] == [("few", "q5")]


@pytest.mark.parametrize("columns", [80, 120])
def test_tables_fit(columns: int, found: ModelComparison, monkeypatch: Any, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    print_shown(*comparison_tables(found, columns))
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= columns
    shown = (
        "many",
        "5/6",
        "7.60",
        "even",
        "many − few",
        "+5.00",
        "37.5 %",
        "not scored: 1 rows",
        "few, q5: factuality",
    )
    assert [part for part in shown if part not in out] == []


def test_one_file_of_several_models(tmp_path: Path, one_hot: Any) -> None:
    rows = [
        row("g/q0", X, query_id="q0", generator="g", model="same", tokens={"completion": 7, "known": True}),
        row("h/q0", Y, query_id="q0", generator="h", model="same", tokens={"completion": 7, "known": False}),
        row("?", Y, query_id="q0", model="same"),
        "{\n",
    ]
    file = write(tmp_path / "evaluated.jsonl", rows)
    found = compare(entries(file), PATIENCES, embedder=one_hot)
    assert list(found.models) == ["g", "h"]
    tokens = found.models["g"].measures["output_tokens"]
    assert tokens is not None
    assert tokens.value == 7
    assert found.models["h"].measures["output_tokens"] is None
    assert [one["model"] for one in found.failed] == [None, None]
    assert "line 3 has no generator" in str(found.failed[0]["why"])
    assert list(compare(entries(f"run={file}"), PATIENCES, embedder=one_hot).models) == ["run/g", "run/h"]


def test_what_rows_do_not_say_comes_from_the_query_set(tmp_path: Path, one_hot: Any) -> None:
    query = {"query_id": "7", "query": "?", "entity_a": "a", "rel_b": "s", "entity_b": "b", "description": "c__P40"}
    bare = {key: value for key, value in row(7, X).items() if not key.startswith("entity")}
    sources = [f"{name}={write(tmp_path / f'{name}.jsonl', [bare])}" for name in ("one", "two")]
    queries = write(tmp_path / "queries.jsonl", [query])
    found = compare(entries(*sources, queries=queries), PATIENCES, embedder=one_hot)
    assert found.failed == []
    assert list(found.relations) == ["P40"]
    assert found.relations["P40"].utility["two"]["1"].value == 4
    without = compare(entries(*sources), PATIENCES, embedder=one_hot)
    assert len(without.failed) == 2  # nothing says where the paths should lead
    assert (without.union, without.relations, without.pairs[0].n) == (None, {}, 0)
    assert without.as_json()["significance"]["pairs"][0]["difference"] is None
    print_shown(*comparison_tables(without, 80))


@pytest.mark.parametrize(
    ("relation", "keys"),
    [
        ("P1", {"relation": "P1", "description": "c__P2", "rel_b": "r"}),
        ("P2", {"description": "c__P2", "rel_b": "r"}),
        ("r", {"description": "free text", "rel_b": "r"}),
        (None, {}),
    ],
)
def test_the_relation_of_a_row(relation: str | None, keys: dict[str, Any], tmp_path: Path) -> None:
    file = write(tmp_path / "rows.jsonl", [row(1, X, model="a", **keys), row(1, X, model="b")])
    assert entries(file)[0].relation == relation


@pytest.mark.parametrize(
    ("files", "part"),
    [
        ([("", [row(1, X)])], "only one model"),
        ([("a=", [row(1, X), row(1, Y)]), ("b=", [row(1, X)])], "both answer the query 1 of the model a"),
        ([("a=", [row(1, X)]), ("b=", [row(2, X)])], "no two models answer the same query (a: 1; b: 2)"),
        ([("a=", [row(None, X)]), ("b=", [row(None, X)])], "no row has an id"),
        ([("a=", [row(1, X)]), ("a=", [row(1, X)])], "the model a is in more than one file"),
        ([("=", [row(1, X)]), ("b=", [row(1, X)])], "no name before the ="),
        ([("a=", []), ("b=", [row(1, X)])], "is empty"),
    ],
)
def test_what_cannot_be_compared(files: list[tuple[str, list[Any]]], part: str, tmp_path: Path) -> None:
    named = [f"{name}{write(tmp_path / f'{number}.jsonl', rows)}" for number, (name, rows) in enumerate(files)]
    with pytest.raises(UserError) as error:
        entries(*named)
    assert part in str(error.value)


def test_a_query_set_of_other_queries(two: tuple[str, str], tmp_path: Path) -> None:
    query = {"query_id": "other", "query": "?", "entity_a": "a", "rel_b": "s", "entity_b": "b"}
    with pytest.raises(UserError, match="holds none of the queries"):
        entries(*two, queries=write(tmp_path / "queries.jsonl", [query]))


@pytest.mark.usefixtures("embed")
def test_the_command(two: tuple[str, str], command: Command, tmp_path: Path) -> None:
    code, out, err = command(*two, "--json", "--out", tmp_path / "out", "--patience", "0.5", name="compare")
    found = json.loads(out)
    assert code == 0
    assert "1 of 13 rows could not be scored" in err
    assert list(found["models"]["many"]["utility"]) == ["0.5"]
    assert found["significance"]["pairs"][0]["significant"] is True
    assert json.loads((tmp_path / "out" / "comparison.json").read_text()) == found
    scores = [json.loads(line) for line in (tmp_path / "out" / "scores.jsonl").read_text().splitlines()]
    assert [score["model"] for score in scores] == ["many"] * 7 + ["few"] * 6
    assert len((tmp_path / "out" / "tail_entities.jsonl").read_text().splitlines()) == 5


@pytest.mark.parametrize(
    ("options", "part"),
    [(("--patience", "2"), "--patience has '2'"), (("--union-patience", "nan"), "--union-patience")],
)
def test_faulty_options(options: tuple[str, str], part: str, two: tuple[str, str], command: Command) -> None:
    code, out, err = command(*two, *options, name="compare")
    assert (code, out) == (2, "")
    assert part in err


def test_published_answers(
    read_lines: Callable[[str], list[dict[str, Any]]], create_data: Path, tmp_path: Path, one_hot: Any
) -> None:
    """Three models of the stored answers with the stored replies: every number is that of `eval create score`."""
    models = ("gpt-4.1", "gemini-3-pro", "qwen3-32b")
    queries = {query["query_id"]: query for query in read_lines("queries.jsonl")}
    replies: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for reply in sorted(read_lines("evaluator_replies.jsonl"), key=lambda reply: reply["path_index"]):
        replies.setdefault((reply["query_id"], reply["model"]), []).append(reply)
    files = {}
    for model in models:
        answers = [answer for answer in read_lines("answers.jsonl") if answer["model"] == model]
        rows = []
        for answer in answers:
            mine = replies.get((answer["query_id"], model), [])
            ends = {key: queries[answer["query_id"]][key] for key in ("entity_a", "entity_b", "rel_b")}
            sizes = [reply["class_size_reply"] for reply in mine]
            labels = [reply["factuality_reply"] for reply in mine]
            judged = {"class_size_responses": sizes, "factuality_responses": labels}
            rows.append({"id": answer["query_id"], "raw": answer["answer"], **ends, **judged})
        files[model] = write(tmp_path / f"{model}.jsonl", rows)
    sources = [f"{model}={file}" for model, file in files.items()]
    read = entries(*sources, queries=create_data / "queries.jsonl")
    found = compare(read, PATIENCES, rules=Rules(validity="shared"), embedder=one_hot)
    assert found.failed == []
    assert found.union is not None
    assert found.union.queries >= 13
    utilities: dict[str, dict[str, float]] = {}
    for model, file in files.items():
        alone = score_rows(read_rows(file), paper(Rules(validity="shared")), PATIENCES, one_hot)
        utilities[model] = {result["id"]: result["utility"]["1"] for result in alone}
        for name in found.patiences:
            mean = found.models[model].summary.utility[name].value
            assert mean == pytest.approx(np.mean([result["utility"][name] for result in alone]))
        kept = found.models[model].measures["kept_paths"]
        assert kept is not None
        assert kept.value == pytest.approx(np.mean([len(result["kept"]) for result in alone]))
    for pair in found.pairs:
        common = utilities[pair.a].keys() & utilities[pair.b].keys()
        apart = [utilities[pair.a][query] - utilities[pair.b][query] for query in common]
        assert pair.n == len(common)
        assert pair.difference == pytest.approx(np.mean(apart))
    assert sum(part.share or 0 for part in found.union.models.values()) == pytest.approx(1)
    assert all(union.utility >= max(union.single.values()) * 0.999 for union in found.unions.values())
    assert set(found.relations) <= {query["description"].split("__")[1] for query in queries.values()}
    assert len(found.relations) > 5
