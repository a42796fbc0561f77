"""Split, choice, overlap and audit of training data."""

import pytest

from inference.errors import UserError
from inference.records import Sample
from inference.rubric import Rubric
from training.data import Row, audit, choose, refuse_overlap, split


def samples(count: int) -> list[Sample]:
    return [
        Sample(
            id=f"s{i}",
            scenario=f"object {i % 4}",
            responses={"use": f"use {i}"},
            human={"human": {"use.originality": 2}},
        )
        for i in range(count)
    ]


def test_split_is_seeded_and_independent_of_the_order() -> None:
    train, validation = split(samples(100), 0.3, "sample", 0)
    assert (len(train), len(validation)) == (70, 30)
    again = split(list(reversed(samples(100))), 0.3, "sample", 0)[1]
    assert {sample.id for sample in again} == {sample.id for sample in validation}
    assert {sample.id for sample in split(samples(100), 0.3, "sample", 1)[1]} != {sample.id for sample in validation}


def test_split_by_scenario_holds_out_whole_scenarios() -> None:
    train, validation = split(samples(40), 0.25, "scenario", 0)
    assert len({sample.scenario for sample in validation}) == 1
    assert not {sample.scenario for sample in train} & {sample.scenario for sample in validation}


@pytest.mark.parametrize(("share", "by"), [(0.0, "sample"), (1.0, "sample"), (0.3, "person")])
def test_split_refuses_what_it_cannot_do(share: float, by: str) -> None:
    with pytest.raises(UserError):
        split(samples(10), share, by, 0)


def test_split_refuses_to_leave_nothing_for_training() -> None:
    with pytest.raises(UserError, match="nothing is left"):
        split(samples(1), 0.5, "sample", 0)


def test_choose_draws_without_replacement_in_file_order() -> None:
    drawn = choose(samples(50), 10, 3)
    positions = [int(sample.id[1:]) for sample in drawn]
    assert len(set(positions)) == 10
    assert positions == sorted(positions)
    assert choose(samples(50), None, 3) == samples(50)


def test_overlap_names_the_first_id() -> None:
    with pytest.raises(UserError, match=r"2 test ids are in the train data, the first is s3"):
        refuse_overlap(samples(10), {"s3", "s7", "other"}, "test", "train")


def test_audit_leaves_long_rows_out_and_counts_them(aut_rubric: Rubric) -> None:
    rows = [Row(sample=i, input_ids=[1] * length, reader=0, target=2.0) for i, length in enumerate([3, 5, 200])]
    kept, count = audit(rows, 128, "train", aut_rubric)
    assert kept == rows[:2]
    assert (count["rows"], count["too_long"], count["tokens"], count["max"]) == (2, 1, 8, 5)
    with pytest.raises(UserError, match="max_prompt_tokens"):
        audit(rows, 2, "train", aut_rubric)


def test_audit_counts_what_is_computed(plan_rubric: Rubric) -> None:
    """Two questions on one text are one sequence; the range 1 to 16 is read once more, after a 1."""
    rows = [Row(sample=0, input_ids=[4] * length, reader=reader, target=2.0) for reader, length in enumerate([3, 5])]
    _, count = audit(rows, 128, "train", plan_rubric)
    assert (count["rows"], count["sequences"], count["tokens"], count["supervised"]) == (2, 2, 5 + 4, 2)
