"""Distances, greedy order and utility on values derived by hand."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval.create.distance import cosine_distances, path_distances, transform
from eval.create.embedding import EmbeddedStrings, Embedder, equal_batches, minilm
from eval.create.official import utility as official
from eval.create.strings import path_string
from eval.create.utility import LARGEST_OPTIMUM, greedy, optimum, utility
from inference.errors import UserError

DISTINCT = np.ones((3, 3))


def test_five_four_three_all_different() -> None:
    gains = greedy([4, 5, 3], DISTINCT).gains
    assert gains == (5, 4, 3)
    assert utility(gains, 0.9) == pytest.approx(5 + 3.6 + 2.43)
    assert official.utility(gains, 0.9) == pytest.approx(5 + 4 + 2.7)
    # s_off = u₁ + (s_paper − u₁) / γ
    assert official.utility(gains, 0.9) == pytest.approx(5 + (utility(gains, 0.9) - 5) / 0.9)
    assert utility(gains, 1) == official.utility(gains, 1) == 12
    assert (utility(gains, 0), official.utility(gains, 0)) == (5, 9)


def test_identical_paths_count_once() -> None:
    found = greedy([3, 3, 3], np.zeros((3, 3)))
    assert (found.order, found.gains, found.nearest) == ((0, 1, 2), (3, 0, 0), (1, 0, 0))


def test_one_path_none_and_500() -> None:
    assert greedy([2], np.zeros((1, 1))).gains == (2,)
    empty = greedy([], np.zeros((0, 0)))
    assert (utility(empty.gains, 0.9), official.utility(empty.gains, 0.9)) == (0, 1)
    assert official.mean_distance(np.ones((1, 1))) is None
    assert utility(greedy([1.0] * 500, np.ones((500, 500))).gains, 1) == 500


@settings(deadline=None)
@given(st.data())
def test_greedy_is_what_it_says(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 6))
    strengths = data.draw(st.lists(st.integers(0, 5), min_size=n, max_size=n))
    values = st.sampled_from([0.0, 0.25, 0.5, 1.0])
    half = np.array(data.draw(st.lists(st.lists(values, min_size=n, max_size=n), min_size=n, max_size=n)))
    distances = np.minimum(half, half.T)
    found = greedy(strengths, distances)
    assert sorted(found.order) == list(range(n))
    for place, chosen in enumerate(found.order):
        left = found.order[place:]
        gains = {
            path: strengths[path] * min((distances[path, o] for o in found.order[:place]), default=1) for path in left
        }
        assert chosen == min(path for path in left if gains[path] == max(gains.values()))
        assert found.gains[place] == gains[chosen]
    assert list(found.gains) == sorted(found.gains, reverse=True)
    orders = permutations(range(n))
    best = max(
        sum(0.9**i * strengths[p] * min((distances[p, o] for o in order[:i]), default=1) for i, p in enumerate(order))
        for order in orders
    )
    assert optimum(strengths, distances, 0.9) == pytest.approx(best)
    assert best >= utility(found.gains, 0.9) - 1e-9


def test_greedy_may_miss_the_optimum_which_has_a_limit() -> None:
    # The strongest path is near both others, which are far from one another: 4 + 4 beats 5 + 2 + …
    distances = np.array([[1, 0.1, 0.1], [0.1, 1, 1], [0.1, 1, 1]])
    assert utility(greedy([5, 4, 4], distances).gains, 1) == pytest.approx(5.8)
    assert optimum([5, 4, 4], distances, 1) == pytest.approx(8.5)
    assert optimum([], np.zeros((0, 0)), 1) == 0
    with pytest.raises(UserError, match="8 paths at most"):
        optimum([1] * (LARGEST_OPTIMUM + 1), np.ones((9, 9)), 1)


def test_opposite_paths_are_far_apart_and_in_the_released_code_near() -> None:
    vectors = np.array([[1.0, 0.0], [-1.0, 0.02], [0.0, 1.0]])
    assert cosine_distances(vectors)[0, 1] == pytest.approx(2.0, abs=1e-3)
    assert path_distances(vectors)[0, 1] == 1
    assert transform(np.array([1.4])) == 1
    assert official.transform(np.array([1.4])) == pytest.approx(0, abs=1e-9)
    assert np.all(np.diag(official.path_distances(vectors)) == 1)
    assert cosine_distances(np.zeros((2, 3)))[0, 1] == 1


def test_path_strings() -> None:
    assert path_string((("A", "r", "B"), ("B", "s", "C"), ("C", "t", "D"))) == " [r] b | b [s] c"
    assert path_string((("A", "R", "B"),)) == " [r] b"
    assert path_string((("a", "r", "B", "C"), ("x", "y", "z"))) == "('a', 'r', 'b', 'c')"
    assert path_string(()) == ""


def test_batches_hold_equal_lengths() -> None:
    batches = list(equal_batches([3, 5, 3, 3, 5], size=2))
    assert batches == [[0, 2], [3], [1, 4]]


def test_strings_are_embedded_once() -> None:
    calls: list[list[str]] = []

    def embed(strings: list[str]) -> np.ndarray:
        calls.append(strings)
        return np.arange(len(strings), dtype=np.float32)[:, None]

    embedded = EmbeddedStrings(["a", "b", "a"], lambda: embed)
    assert calls == [["a", "b"]]
    assert len(embedded) == 2
    assert embedded.of(["b", "a", "b"]).ravel().tolist() == [1, 0, 1]
    assert len(EmbeddedStrings([], minilm)) == 0  # and no model is loaded


def test_minilm_gives_unit_vectors_that_do_not_depend_on_company(embed: Embedder) -> None:
    strings = ["", " [sibling] jonathan nolan", "word " * 400, '東京 [r] "x" 😀', " [r] b"]
    together = embed(strings)
    assert together.shape == (5, 384)
    assert np.linalg.norm(together, axis=1) == pytest.approx(1, abs=1e-5)
    assert np.abs(together - np.concatenate([embed([text]) for text in strings])).max() < 1e-5
    assert embed([]).shape == (0, 384)
