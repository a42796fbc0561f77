"""Queries built from facts: the shipped store, determinism, filters, endpoints, and questions worded by a model."""

import json
import sys
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from servers import Reply, Request, fake_server

from eval.cli import main
from eval.create.queries.build import draft_queries
from eval.create.queries.command import build_queries
from eval.create.queries.graph import Endpoint, LocalGraph
from eval.create.queries.question import complaint, rewrite_messages, template_question
from eval.create.queries.read import read_queries
from eval.create.queries.settings import BuildConfig
from inference import asking
from inference.config import load_config
from inference.engines.base import EngineConfig, EngineError
from inference.engines.scripted import ScriptedEngine
from inference.errors import UserError
from inference.records import Call, Completion

pytest.importorskip("pyoxigraph", reason="pyoxigraph is not installed")

ROOT = Path(__file__).parents[3]
FACTS = ROOT / "eval" / "create" / "samples" / "facts.nt"
DEMO = ROOT / "configs" / "eval" / "create_queries_demo.yaml"
BASE = "https://creajudge.example/"
AWKWARD = ["a, b", '"Heroes" (album)', "O'Brien \\ Sons", "千と千尋の神隠し", "عمر الشريف"]


@pytest.fixture(scope="module")
def facts() -> LocalGraph:
    return LocalGraph(FACTS)


@pytest.fixture
def demo() -> BuildConfig:
    return load_config(DEMO, BuildConfig)


def config(**changes: Any) -> BuildConfig:
    """Bands and their members in a small store made by `store_of`."""
    return BuildConfig.model_validate({"relations": [{"relation": f"{BASE}p/in"}], **changes})


def store_of(path: Path, triples: list[tuple[str, str, str]]) -> LocalGraph:
    """A store of facts in which everything is called by its name."""
    names = {
        name: f"{BASE}e/{number}" for number, name in enumerate(dict.fromkeys(n for h, _, t in triples for n in (h, t)))
    }
    lines = [f"<{names[head]}> <{BASE}p/{relation}> <{names[tail]}> ." for head, relation, tail in triples]
    label = "<http://www.w3.org/2000/01/rdf-schema#label>"
    lines += [f"<{iri}> {label} {json.dumps(name, ensure_ascii=False)}@en ." for name, iri in names.items()]
    for relation in {relation for _, relation, _ in triples}:
        lines.append(f"<{BASE}q/{relation}> <http://wikiba.se/ontology#directClaim> <{BASE}p/{relation}> .")
        lines.append(f'<{BASE}q/{relation}> {label} "{relation}"@en .')
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return LocalGraph(path)


def seed_with_middle(graph: LocalGraph, name: str) -> int:
    """The first seed that draws the entity `name` as the hidden one of the only pair."""
    for seed in range(20):
        try:
            if draft_queries(graph, config(seed=seed)).kept[0].middle.label == name:
                return seed
        except UserError:
            continue
    pytest.fail(f"no seed draws {name}")


@contextmanager
def serving(graph: LocalGraph, first: tuple[Reply, ...] = ()) -> Iterator[tuple[str, list[Request]]]:
    """An endpoint over `graph` that begins with the replies `first`."""
    from pyoxigraph import QueryResultsFormat

    waiting = list(first)

    def answer(request: Request) -> Reply:
        if waiting:
            return waiting.pop(0)
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(request.path).query)["query"][0]
        content = graph._store.query(query).serialize(format=QueryResultsFormat.JSON)
        assert content is not None
        return Reply(content.decode())

    with fake_server(answer) as server:
        yield f"{server.url}/sparql", server.requests


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "FIRST_WAIT", 0.001)


def test_the_shipped_facts_come_through_a_store_unchanged(facts: LocalGraph) -> None:
    from pyoxigraph import RdfFormat

    written = facts._store.dump(format=RdfFormat.N_TRIPLES, from_graph=_default_graph())
    assert written is not None
    lines = FACTS.read_text(encoding="utf-8").splitlines()
    assert sorted(written.decode().splitlines()) == sorted(lines)
    assert lines == sorted(set(lines))


def _default_graph() -> Any:
    from pyoxigraph import DefaultGraph

    return DefaultGraph()


def test_everything_in_the_shipped_facts_has_a_name_and_a_kind(facts: LocalGraph) -> None:
    label = "http://www.w3.org/2000/01/rdf-schema#label"
    names = {row["s"] for row in facts.select(f'SELECT ?s WHERE {{ ?s <{label}> ?n FILTER(LANG(?n) = "en") }}')}
    used = facts.select("SELECT DISTINCT ?p ?s ?o WHERE { ?s ?p ?o FILTER(STRSTARTS(STR(?p), 'https://creajudge')) }")
    claimed = {row["p"] for row in facts.select("SELECT ?p WHERE { ?q <http://wikiba.se/ontology#directClaim> ?p }")}
    kinds = {row["s"] for row in used if row["p"].endswith("/instance_of")}
    real = [row for row in used if not row["p"].endswith("/instance_of")]
    assert {row["p"] for row in used} == claimed
    assert {row[end] for row in real for end in "so"} == kinds <= names
    assert len(real) == 259
    assert len(kinds) == 201
    assert not any("wikidata" in line for line in FACTS.read_text(encoding="utf-8").splitlines())


def test_the_shipped_queries_are_what_the_demo_builds(facts: LocalGraph, demo: BuildConfig, tmp_path: Path) -> None:
    build_queries(facts, demo, tmp_path / "q.jsonl")
    shipped = FACTS.with_name("queries.jsonl")
    assert (tmp_path / "q.jsonl").read_bytes() == shipped.read_bytes()
    assert len(read_queries(shipped)) == 16


def test_another_seed_draws_others(facts: LocalGraph, demo: BuildConfig) -> None:
    def starts(seed: int) -> list[str]:
        return [draft.start.label for draft in draft_queries(facts, demo.model_copy(update={"seed": seed})).kept]

    assert starts(1) == starts(1) != starts(0)


def test_an_endpoint_gives_the_queries_of_the_store(facts: LocalGraph, demo: BuildConfig) -> None:
    with serving(facts) as (url, requests):
        drafts = draft_queries(Endpoint(url), demo)
    assert drafts == draft_queries(facts, demo)
    assert len({request.path for request in requests}) == len(requests), "a question was asked twice"


def test_source_paths_are_facts_and_starts_miss_the_target(facts: LocalGraph, demo: BuildConfig) -> None:
    for draft in draft_queries(facts, demo).kept:
        for head, relation, tail in draft.path:
            assert facts.select(f"SELECT ?x WHERE {{ VALUES ?x {{ 1 }} <{head.iri}> <{relation.iri}> <{tail.iri}> }}")
        hop = draft.hop
        assert not facts.select(
            f"SELECT ?x WHERE {{ VALUES ?x {{ 1 }} <{draft.start.iri}> <{hop.relation.iri}> <{hop.target.iri}> }}"
        )
        assert hop.relation.label != "instance of"


@pytest.mark.parametrize("name", AWKWARD)
def test_names_of_all_kinds_come_through(tmp_path: Path, name: str) -> None:
    graph = store_of(tmp_path / "f.nt", [("X", "in", "band"), (name, "in", "band"), (name, "from", f"{name} town")])
    build_queries(graph, config(seed=seed_with_middle(graph, name)), tmp_path / "q.jsonl")
    (query,) = read_queries(tmp_path / "q.jsonl")
    assert (query.entity_a, query.rel_b, query.entity_b) == ("X", "from", f"{name} town")
    assert query.triples == (["X", "in", "band"], [name, "in", "band"], [name, "from", f"{name} town"])
    assert f"{name} town" in query.query


@pytest.mark.parametrize(
    ("more", "changes", "reason"),
    [
        ([], {}, "no_hop 1"),
        ([("a", "from", "t"), ("b", "from", "t")], {}, "start_satisfies 1"),
        ([("a", "likes", "b"), ("b", "likes", "a"), ("band", "likes", "a")], {}, "no_hop 1"),
        ([("a", "is", "t"), ("b", "is", "u")], {"blocked": [f"{BASE}p/is"]}, "no_hop 1"),
        (
            [("a", "from", "t"), ("b", "from", "u"), *((f"x{i}", "from", e) for i in range(9) for e in "tu")],
            {"max_target_class": 9},
            "huge_class 1",
        ),
    ],
)
def test_pairs_that_make_no_good_query_are_dropped_with_a_reason(
    tmp_path: Path, more: list[tuple[str, str, str]], changes: dict[str, Any], reason: str
) -> None:
    graph = store_of(tmp_path / "f.nt", [("a", "in", "band"), ("b", "in", "band"), *more])
    with pytest.raises(UserError, match=rf"no query could be built \({reason}\)"):
        draft_queries(graph, config(**changes))


def test_members_may_be_the_objects_of_a_relation(tmp_path: Path) -> None:
    triples = [("film", "cast", "a"), ("film", "cast", "b"), ("a", "from", "t"), ("b", "from", "u")]
    relation = {"relation": f"{BASE}p/cast", "members": "objects"}
    (draft,) = draft_queries(store_of(tmp_path / "f.nt", triples), config(relations=[relation])).kept
    assert [triple[0].label for triple in draft.path] == ["film", "film", draft.middle.label]


def test_an_endpoint_s_passing_faults_are_outlived(facts: LocalGraph, demo: BuildConfig) -> None:
    with serving(facts, (Reply("busy", 429), Reply("down", 503))) as (url, _):
        assert draft_queries(Endpoint(url), demo) == draft_queries(facts, demo)


@pytest.mark.parametrize(
    ("reply", "message", "requests"),
    [
        (Reply("no", 400), r"gave no answer \(HTTP 400\)", 1),
        (Reply("no", 503), r"after 3 tries \(HTTP 503\)", 3),
        (Reply("<html>hello</html>"), r"no SPARQL results in JSON: '<html>hello", 1),
        (Reply({"results": {"bindings": 5}}), "no SPARQL results", 1),
        (Reply("late", delay=1.5), r"after 3 tries \(.*timed out", 3),
    ],
)
def test_an_endpoint_that_fails_is_a_sentence(reply: Reply, message: str, requests: int) -> None:
    with fake_server(lambda _: reply) as server, pytest.raises(UserError, match=message) as caught:
        Endpoint(server.url, timeout=0.5 if reply.delay else 20, tries=3).select("SELECT * WHERE {}")
    assert len(server.requests) == requests
    assert "--store" in str(caught.value)


def test_an_endpoint_that_is_not_there_is_a_sentence() -> None:
    with pytest.raises(UserError, match=r"http://127\.0\.0\.1:9/sparql gave no answer after 2 tries"):
        Endpoint("http://127.0.0.1:9/sparql", tries=2).select("SELECT * WHERE {}")
    with pytest.raises(UserError, match="needs an http or https address"):
        Endpoint("file:///etc/passwd")


def test_files_and_settings_at_fault_are_named(tmp_path: Path, facts: LocalGraph) -> None:
    with pytest.raises(UserError, match="no such file"):
        LocalGraph(tmp_path / "missing.nt")
    (tmp_path / "bad.nt").write_text("<a> <b> c .\n")
    with pytest.raises(UserError, match="not a readable N-Triples file"):
        LocalGraph(tmp_path / "bad.nt")
    with pytest.raises(UserError, match=r"relation https://creajudge\.example/p/in has no label in the language en"):
        draft_queries(facts, config())
    with pytest.raises(ValueError, match="no http"):
        config(blocked=["wdt:P31"])
    with pytest.raises(ValueError, match="relation"):
        config(relations=[{"relation": 'https://x/> ; DROP "'}])


def test_the_command_needs_one_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*arguments: str) -> tuple[object, str]:
        line = ["eval", "create", "queries", "build", "--config", str(DEMO), "--out", str(tmp_path / "q"), *arguments]
        monkeypatch.setattr(sys, "argv", line)
        with pytest.raises(SystemExit) as stop:
            main()
        return stop.value.code, capsys.readouterr().err

    assert run() == (2, "error: queries are built from --store FILE or from --endpoint URL; give one of the two\n")
    code, shown = run("--store", str(FACTS))
    assert code in (0, None)
    assert "16 queries" in shown


Wording = Callable[[Call], Completion]


def worded(tmp_path: Path, answer: Wording) -> tuple[list[str], list[str], list[str]]:
    """Questions and phrasings of three queries that a scripted model words, and the notes."""
    names = ("a", "b", "c")
    triples = [(name, relation, f"{name}{relation}") for name in names for relation in ("from", "likes")]
    graph = store_of(tmp_path / "f.nt", [*((name, "in", "band") for name in names), *triples])
    settings = config(per_class=3, rewrite={"engine": "scripted", "model": "m", "max_retries": 0}, seed=3)
    out = tmp_path / "q.jsonl"
    notes = build_queries(
        graph, settings, out, lambda one: ScriptedEngine(EngineConfig(engine="scripted", model=one.model), answer)
    )
    queries = read_queries(out)
    return [query.query for query in queries], [query.phrasing for query in queries], notes


def named(call: Call) -> dict[str, str]:
    lines = (call.messages or ())[1].content.splitlines()[1:-1]
    return dict(line.split(": ", 1) for line in lines)


def test_a_model_may_word_the_questions_and_is_asked_once(tmp_path: Path) -> None:
    def answer(call: Call) -> Completion:
        names = named(call)
        return Completion(text=f'<think>{names["Hidden"]}</think>"How do {names["Start"]} and {names["Target"]} meet?"')

    questions, phrasings, _ = worded(tmp_path, answer)
    assert set(phrasings) == {"model"}
    assert all(question.startswith("How do ") and question.endswith(" meet?") for question in questions)

    def never(_: Call) -> Completion:
        raise AssertionError("asked again")

    assert worded(tmp_path, never)[0] == questions


def test_a_question_that_breaks_the_rules_is_asked_for_again_then_replaced(tmp_path: Path) -> None:
    calls: list[Call] = []

    def answer(call: Call) -> Completion:
        calls.append(call)
        return Completion(text="Something else altogether?")

    questions, phrasings, notes = worded(tmp_path, answer)
    assert set(phrasings) == {"template"}
    assert len(calls) == 2 * len(questions)
    assert "is missing" in (calls[-1].messages or ())[-1].content
    assert notes[-1].startswith(f"{len(questions)} questions are by the template")


def test_a_model_that_never_answers_stops_the_building(tmp_path: Path) -> None:
    def answer(_: Call) -> Completion:
        raise EngineError("no such model")

    with pytest.raises(UserError, match=r"rewriting: none of its .* calls was answered \(no such model\)"):
        worded(tmp_path, answer)
    assert not (tmp_path / "q.jsonl").exists()


def test_what_a_question_must_hold_and_must_not(tmp_path: Path) -> None:
    graph = store_of(
        tmp_path / "f.nt", [("X", "in", "band"), ("Hidden One", "in", "band"), ("Hidden One", "from", "Y Town")]
    )
    (draft,) = draft_queries(graph, config(seed=seed_with_middle(graph, "Hidden One"))).kept
    assert complaint(draft, template_question(draft)) is None
    assert complaint(draft, "x and y  TOWN?") is None
    assert complaint(draft, "How is X linked to hidden one of Y Town?") == "it gives the hidden one away"
    assert "is missing" in str(complaint(draft, "How is X linked?"))
    assert complaint(draft, " ") == "it holds no question"
    assert "one line" in str(complaint(draft, "X\nY Town"))
    assert "Hidden: Hidden One" in rewrite_messages(draft, "", "")[1].content
