"""Evaluators' replies: every stored one, and odd ones, by the paper's rules and as released."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from eval.create.factuality import read_labels
from eval.create.official import parsing as official_parsing
from eval.create.official.errors import QuirkError
from eval.create.official.replies import is_factual, label_scores, size_scores
from eval.create.official.validity import check_path as official_check
from eval.create.parsing import parse_answer
from eval.create.specificity import path_score, read_sizes
from eval.create.validity import check_path

ReadLines = Callable[[str], list[dict[str, Any]]]


def test_stored_replies_give_the_stored_labels_and_sizes(read_lines: ReadLines) -> None:
    rows = read_lines("evaluator_replies.jsonl")
    assert len(rows) == 2790
    for row in rows:
        n = len(row["path"])
        labels, sizes = read_labels(row["factuality_reply"], n), read_sizes(row["class_size_reply"], n)
        assert (labels.status, sizes.status) == ("ok", "ok")
        assert list(labels.labels) == row["factuality_labels"] == label_scores(row["factuality_reply"])
        assert list(sizes.scores) == row["class_size_scores"] == size_scores(row["class_size_reply"])


def test_published_validity_is_the_released_one_but_for_three_paths(read_lines: ReadLines) -> None:
    queries = {row["query_id"]: row for row in read_lines("queries.jsonl")}
    apart, valid = [], Counter[str]()
    for row in read_lines("evaluator_replies.jsonl"):
        query = queries[row["query_id"]]
        ends = (query["entity_a"], query["entity_b"])
        stored = official_check(row["path"], *ends).stored
        if stored != row["valid_published"]:
            apart.append((stored, row["valid_published"]))
        found = check_path(row["path"], *ends)
        valid.update(strict=found.strict, shared=found.shared, published=row["valid_published"] == 1)
    # Where a triple has not three parts the released code keeps a text, and the published flag is 0.
    assert sorted(apart) == [("bad_length:0", 0), ("bad_length:0", 0), ("bad_length:2", 0)]
    assert valid == {"strict": 2466, "shared": 2601, "published": 2744}


def test_stored_answers_give_the_stored_paths(read_lines: ReadLines) -> None:
    stored: dict[tuple[str, str], list[Any]] = {}
    for row in read_lines("evaluator_replies.jsonl"):
        stored.setdefault((row["query_id"], row["model"]), []).append(row["path"])
    for row in read_lines("answers.jsonl"):
        want = stored.get((row["query_id"], row["model"]), [])
        assert (official_parsing.parse_answer(row["answer"]) or []) == want
        parsed = parse_answer(row["answer"])
        assert parsed.candidates == len(want)
        lower = [[[part.lower() for part in triple] for triple in path] for path in parsed.paths]
        assert lower == [want[position] for position in parsed.positions]
        assert {rejected.reason for rejected in parsed.rejected} <= {"bad_triple"}


@pytest.mark.parametrize(
    ("written", "size"),
    [
        ("7", 7),
        ('"1,500"', 1500),
        ("1,500", 1500),
        ("1_000", 1000),
        ("1e6", 1_000_000),
        ('"~500"', 500),
        ("2 million", 2_000_000),
        ('"2.5k"', 2500),
        ('"3 Billion"', 3_000_000_000),
        ("12.0", 12),
        ("0", 1),
        ("-5", None),
        ("null", None),
        ('"100-200"', None),
        ('"many"', None),
        ("12.5", None),
        ("true", None),
        ("[3]", None),
        ("1e999999", None),
        ("9" * 5000, None),
    ],
)
def test_sizes(written: str, size: int | None) -> None:
    found = read_sizes(f'[{{"explanation": "e, \\"5\\"", "Judgment": {written}}}]', 1)
    assert found.sizes == (size,)
    assert found.status == ("ok" if size else "unreadable")
    assert found.flags == (("zero",) if written == "0" else ())


@pytest.mark.parametrize(
    ("reply", "sizes", "status"),
    [
        ("[3, 40]", (3, 40), "ok"),
        ('Sizes:\n```json\n[{"judgment": 3}, {"judgment": 40}]\n```\nDone [1].', (3, 40), "ok"),
        ('{"judgments": [3, 40]}', (3, 40), "ok"),
        ('{"results": [{"judgment": 3}, {"judgment": 40}]}', (3, 40), "ok"),
        ('<think>[1, 2]</think>[{"explanation": "two\nlines", "judgment": 3}, {"judgment": 40}]', (3, 40), "ok"),
        ('{"judgment": 3}', (3,), "count_mismatch"),
        ('[{"judgment": 3}, {"judgment": 40}', (3, 40), "ok"),
        ('[{"judgment": 3}, {"judgment": 40', (3,), "count_mismatch"),  # it may have been 4,000
        ('[{"judgment": 3}, {"explanation": "cut', (3,), "count_mismatch"),
        ("about fifty", (), "empty"),
        ("", (), "empty"),
    ],
)
def test_replies_in_other_forms(reply: str, sizes: tuple[int, ...], status: str) -> None:
    found = read_sizes(reply, 2)
    assert (found.sizes, found.status) == (sizes, status)
    assert read_sizes(None, 2).status == "empty"


def test_the_final_triple_counts_only_when_asked() -> None:
    assert path_score([4, 5, 1]) == 4
    assert path_score([4, 5, 1], include_final=True) == 1
    assert path_score([2]) == 2
    assert path_score([4, None]) == 4
    assert path_score([None, 4]) is None
    assert path_score([]) is None


@pytest.mark.parametrize(
    ("written", "label"),
    [
        ('"Not hallucinated"', 1),
        ('"not_hallucinated"', 1),
        ('"factual"', 1),
        ("true", 1),
        ('"hallucinated - another person"', 0),
        ('"FALSE"', 0),
        ('"incorrect: no such film"', 0),
        ('"not sure"', None),
        ("null", None),
        ("1", None),
    ],
)
def test_labels(written: str, label: int | None) -> None:
    found = read_labels(f'{{"explanation": "e", "judgments": [{written}]}}', 1)
    assert (found.labels, found.q) == ((label,), label)
    assert read_labels(f"[{written}]", 1).labels == (label,)
    assert read_labels(f'[{{"label": {written}}}]', 1).labels == (label,)


def test_a_single_quoted_label_and_lists_that_are_too_short() -> None:
    assert read_labels('"not hallucinated"', 1).q == 1
    assert read_labels('["factual", "factual"]', 3).status == "count_mismatch"
    assert read_labels('["factual", "false", "true"]', 3).share == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("reply", "scores"),
    [
        ('[{"judgment": -5}, {"judgment": null}, {"judgment": "1,000"}, {"judgment": "500"}]', [5, 0, 0, 2]),
        ('[{"judgment": 1,500}, {"judgment": 2 million}]', [5, 5]),
        ('{"judgment": 700}', [2]),
        ('{"judgment": ' + "9" * 5000 + "}", [1]),
        ("", []),
    ],
)
def test_released_sizes(reply: str, scores: list[int]) -> None:
    assert size_scores(reply) == scores


def test_released_labels() -> None:
    assert label_scores('{"judgments": ["cannot verify", "factual", true, 1]}') == [1, 0, 0, 0]
    assert label_scores('{"judgments": ["not halluc') == label_scores("") == []
    assert not is_factual([], 0.0)
    assert is_factual([1.0, 0.0], 0.5)
    for reply, quirk in (('"factual"', "Q26"), ("5", "Q26"), (None, "Q16")):
        with pytest.raises(QuirkError) as stop:
            label_scores(reply)
        assert stop.value.quirk == quirk
    with pytest.raises(QuirkError, match="plain values"):
        size_scores("[1, 2]")
