"""Model answers of every shape, and of none."""

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval.create.literal import DEEPEST, unescaped
from eval.create.official import parsing as official
from eval.create.official.errors import QuirkError
from eval.create.parsing import parse_answer, parse_samples, render_answer

AB = (("a", "r", "b"),)
ABC = (("a", "r", "b"), ("b", "s", "c"))


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ('```JSON\n{"1": [["a", "r", "b"]]}\n```', [AB]),
        ('See [1]: {"1": [["a", "json format", "b"]]} [2]', [(("a", "json format", "b"),)]),
        ('<ANSWER>{"1": [["a", "r", "b"]]}</Answer>', [AB]),
        ('<answer>{"1": [["x", "y", "z"]]}</answer> or <answer>{"1": [["a", "r", "b"]]}</answer>', [AB]),
        ('{"1": [["x", "y", "z"]]}</think>\n{"1": [["a", "r", "b"]]}', [AB]),
        ('<think>so <answer>{"1": [["a", "r", "b"]]}</answer></think>\n', [AB]),
        ('[[["a", "r", "b"]], [["a", "r", "b"], ["b", "s", "c"]]]', [AB, ABC]),
        ('[["a", "r", "b"], ["b", "s", "c"]]', [ABC]),
        ('["a", "r", "b", "b", "s", "c"]', [ABC]),
        ('[["a", "r", "b", "b", "s", "c"], ["a", "r", "b"]]', [ABC, AB]),
        ('{"paths": [[["a", "r", "b"]], [["a", "r", "b"]]]}', [AB, AB]),
        ('{"1": {"path_probability": 0.5, "path": [["a", "r", "b"]]}}', [AB]),
        ('{"1": [["a", "r", "b"]], "1": [["a", "r", "b"], ["b", "s", "c"]]}', [AB, ABC]),
        ('{"1": [{"tail": "b", "head": "a", "relation": "r", "why": "x"}]}', [AB]),
        ('{"1": [{"Subject": "a", "Predicate": "r", "Object": "b"}]}', [AB]),
        ('{"1": ["(a, r, b)", "(b, s, c)"]}', [ABC]),
        ("{1: [('a', 'r', 1984),],}", [(("a", "r", "1984"),)]),
        ('{"1": [["a", "r", "b"]}, "2": [["a", "r", "b"]]}', [AB, AB]),
        ('{"1": [["a", "r", "b"]]], "2": [["a", "r", "b"]]}', [AB, AB]),
        ('{"1": [["a", "r", "b"}]}', [AB]),
        ('{/* one */ "1": [["a", "r", "b"]] // two\n# three\n}', [AB]),
        ("{'1': [('Schindler's List', 'r', 'b')]}", [(("Schindler's List", "r", "b"),)]),
        ('{"1": [["a", "say "hi" to", "b"]]}', [(("a", 'say "hi" to', "b"),)]),
        (
            '{"1": [["Album (\\"Heroes\\")", "r // s", "東京, #1\\u00e9"]]}',
            [(('Album ("Heroes")', "r // s", "東京, #1é"),)],
        ),
        ('{"1": [["a", "r", "b"]], "2": [["a", "r', [AB]),
    ],
)
def test_shapes(text: str, paths: list[object]) -> None:
    assert list(parse_answer(text).paths) == paths


@pytest.mark.parametrize(
    ("text", "reasons"),
    [
        ('{"1": null}', ["bad_path"]),
        ('{"1": "abcdef", "2": 5, "3": []}', ["bad_path"] * 3),
        ('{"1": [["a", "r", null]]}', ["bad_triple"]),
        ('{"1": [["a", "r", " "]]}', ["bad_triple"]),
        ('{"1": [["a", "r", "b", "c"], ["c", "s", "d"]]}', ["bad_triple"]),
        ('{"1": [["a", "r", ["b", "c"]], ["c", "s", "d"]]}', ["bad_triple"]),
        ('{"1": ["(a, r, Los Angeles, California)"]}', ["bad_triple"]),
        ('["a", "r", "b", "s"]', ["bad_triple"]),
        ('{"1": [["a", "r"', ["truncated"]),
        ("null", []),
        ('"none"', []),
        ("[Smith, Jones, Brown]", []),
        ("", []),
        ("<think>{'1': [('a', 'r', 'b')]}", []),
    ],
)
def test_what_is_no_path_has_a_reason(text: str, reasons: list[str]) -> None:
    parsed = parse_answer(text)
    assert parsed.paths == ()
    assert [rejected.reason for rejected in parsed.rejected] == reasons
    assert ("empty" in parsed.flags) == (not reasons)


def test_flags() -> None:
    assert parse_answer('{"1": [["a", "r", "b"]}').flags == ("no_answer_tags", "repaired")
    assert parse_answer("<think>x").flags == ("unclosed_reasoning", "empty")
    cut = '<answer>{"1": [["a", "r", "b"]], "2": [["a"'
    assert parse_answer(cut, salvage=False).paths == ()
    assert [rejected.reason for rejected in parse_answer(cut, salvage=False).rejected] == ["truncated"] * 2


def test_samples_are_united() -> None:
    parsed = parse_samples(
        ['{"1": [["a", "r", "b"]]}', None, " ", "junk", '{"1": [["Ａ", "R ", "b"]], "2": [["a", "q", "b"]]}']
    )
    assert parsed.paths == (AB, (("a", "q", "b"),))
    assert parsed.samples == (0, 4)
    assert [(rejected.position, rejected.reason) for rejected in parsed.rejected] == [(1, "duplicate")]
    assert parsed.positions == (0, 2)


def test_500_paths_and_deep_nesting() -> None:
    paths = tuple(((f"a{n}", "r", "(b), 'c' \"d\" [e]"),) for n in range(500))
    assert parse_answer(render_answer(paths)).paths == paths
    assert parse_answer("[" * 100_000).paths == ()
    assert parse_answer("[" * (DEEPEST - 3) + '["a","r","b"]' + "]" * (DEEPEST - 3)).paths == (AB,)


def test_escapes() -> None:
    assert unescaped(r"\u00e9\n\"\'\/\\ \q \ud83d\ude00 \ud83d \x41") == "é\n\"'/\\ \\q 😀 \ufffd A"


PIECES = [*"[]{}()\"'\\,: /#*`~\n\tabnu01-é", "<answer>", "</answer>", "</think>", '["a", "r", "b"]', "null"]
TEXTS = st.lists(st.sampled_from(PIECES)).map("".join)
NAMES = st.text(min_size=1).filter(lambda text: bool(text.strip()))


@settings(deadline=None)
@given(st.one_of(st.text(), TEXTS))
def test_never_raises_and_is_idempotent(text: str) -> None:
    parsed = parse_answer(text)
    assert parse_answer(render_answer(parsed.paths)).paths == parsed.paths
    assert all(len(triple) == 3 and all(part.strip() for part in triple) for path in parsed.paths for triple in path)
    assert sorted((*parsed.positions, *(r.position for r in parsed.rejected))) == list(range(parsed.candidates))
    parse_samples([text, text])


@settings(deadline=None)
@given(st.one_of(st.text(), TEXTS))
def test_the_released_parser_raises_quirks_alone(text: str) -> None:
    with contextlib.suppress(QuirkError):
        official.parse_answer(text)


@settings(deadline=None)
@given(st.lists(st.lists(st.tuples(NAMES, NAMES, NAMES), min_size=1), max_size=4))
def test_what_is_rendered_is_read_back(paths: list[list[tuple[str, str, str]]]) -> None:
    written = tuple(tuple(path) for path in paths)
    assert parse_answer(render_answer(written)).paths == written


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ('{"1": [["DNA", "r", "İ"]]}', [[["dna", "r", "i̇"]]]),
        ('```json\n{"1": [["a", "r", "b"]]}\n```', [[["a", "r", "b"]]]),
        ('```json\n{"1": [["a", "r", "b"]]}\n```\nDone.', None),
        ('```JSON\n{"1": [["a", "r", "b"]]}\n```', None),
        ('{"1": [["a", "json format", "b"]]}', None),
        ('{"1": [["a", "r", "Album (\\"Heroes\\")"]]}', [[["a", "r", 'album ("heroes"]']]]),
        ("{'1': [(\"a\", 'r', 1984)]}", None),
        ("{ }", []),
        ('{"1": ["A", "r", "B", "B", "s", "C"]}', [[["b", "s", "c"]]]),
        ('{"1": "abcdef"}', [[["d", "e", "f"]]]),
        ('{"1": ["(A, r, Los Angeles, California)"]}', [[None]]),
        ('{"1": [{"tail": "B", "head": "A"}]}', [[["b", "a"]]]),
        ('{"1": [["a", "r", "b"]], "1": [["a", "q", "b"]]}', [[["a", "q", "b"]]]),
        ('{"paths": [[["a", "r", "b"]]]}', [[[["a", "r", "b"]]]]),
        ('<answer>{"1": []}</answer><answer>{"1": [["a", "r", "b"]]}</answer></answer>', [[["a", "r", "b"]]]),
        ('x <answer>{"1": [["a", "r", "b"]]}', None),
    ],
)
def test_released_parser(text: str, paths: list[object] | None) -> None:
    assert official.parse_answer(text) == paths
