"""Sequences that others begin with are read inside them, and no others."""

from hypothesis import given, settings
from hypothesis import strategies as st

from inference.prefixes import share_prefixes


def test_a_chain_is_one_sequence_and_a_branch_another() -> None:
    chain = [[1], [1, 2], [1, 2, 3], [1, 2, 4], [1, 2, 4], [5]]
    kept, places = share_prefixes(chain)
    assert kept == [2, 4, 5]
    assert places == [(0, 0), (0, 1), (0, 2), (1, 2), (1, 2), (2, 0)]
    assert share_prefixes(["ab", "b", "a"]) == ([0, 1], [(0, 1), (1, 0), (0, 0)])
    assert share_prefixes([[7]]) == ([0], [(0, 0)])


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=5), min_size=1, max_size=12))
def test_every_sequence_is_read_where_it_ends_and_none_is_computed_twice(sequences: list[list[int]]) -> None:
    kept, places = share_prefixes(sequences)
    for one, (position, last) in zip(sequences, places, strict=True):
        assert sequences[kept[position]][: last + 1] == one
    for index in kept:
        others = [sequences[other][: len(sequences[index])] for other in kept if other != index]
        assert sequences[index] not in others
