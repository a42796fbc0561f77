"""Strict, shared and released validity on paths whose verdict is known by hand."""

import pytest

from eval.create.official.errors import QuirkError
from eval.create.official.validity import check_path as official
from eval.create.validity import check_path


def test_names_are_compared_without_case_width_and_spaces() -> None:
    found = check_path([("Ａda  LOVELACE", "r", "ﬁlm"), ("FILM", "s", "Straße")], "ada lovelace", "STRASSE", "S")
    assert found.strict
    assert found.final_relation is True


@pytest.mark.parametrize(
    ("path", "strict", "shared"),
    [
        ([("a", "r", "x"), ("y", "s", "b")], ("chain",), ("chain",)),
        ([("a", "r", "x"), ("b", "s", "b")], ("chain", "self_loop"), ("chain", "self_loop")),
        ([("a", "r", "x"), ("b", "s", "x"), ("b", "t", "b")], ("chain", "self_loop"), ("self_loop",)),
        ([("x", "r", "b")], ("start",), ("start",)),
        ([], ("bad_triple",), ("bad_triple",)),
        ([("a", "r", None)], ("bad_triple",), ("bad_triple",)),
        ([("a", " ", "b")], ("bad_triple",), ("bad_triple",)),
        (["a", "r", "b"], ("bad_triple",), ("bad_triple",)),
    ],
)
def test_reasons(path: list[object], strict: tuple[str, ...], shared: tuple[str, ...]) -> None:
    found = check_path(tuple(path), "a", "b")
    assert (found.reasons, found.shared_reasons) == (strict, shared)
    assert (found.strict, found.shared) == (not strict, not shared)


@pytest.mark.parametrize(
    ("path", "flag"),
    [
        ([("x", "r", "austria"), ("us", "s", "y")], 1),
        ([("x", "r", "harvard"), ("harvard university", "s", "y")], 0),
        ([("x", "r", "hub"), ("y", "s", "hub")], 1),
        ([("x", "r", "y"), ("q", "s", "z"), ("z", "t", "b")], 0),
        ([("banana", "b", "c")], 1),
        ([("a", "r", "b"), ("", "s", "c")], 1),
    ],
)
def test_released_links(path: list[tuple[str, str, str]], flag: int) -> None:
    assert official(path, "A", "B").flag == flag


def test_released_null_parts_and_junk() -> None:
    assert official([["a", None, "b"]], "a", "b").flag == 1
    assert official([None], "a", "b").stored == "null:0"
    for path, quirk in (([], "Q21"), (["x"], "Q9"), ([[["a"], ["b"], ["c"]]], "Q9")):
        with pytest.raises(QuirkError) as stop:
            official(path, "a", "b")
        assert stop.value.quirk == quirk
