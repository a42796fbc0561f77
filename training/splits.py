"""Files of splits: training and test by sample and by scenario, and folds of a training part.

All have the form ``{name: {"train": [ids], "test": [ids]}}`` that `eval.benchmarks.cgpst.benchmark.read_splits` reads.
In a file of folds ``fold0`` trains on what is not in the fold and tests on what is.
"""

import json
import random
from collections.abc import Iterable, Sequence
from pathlib import Path

from eval.benchmarks.cgpst.benchmark import read_splits
from inference.adapters import file_digest
from inference.errors import UserError, named_list
from inference.files import write_text
from inference.records import Sample
from training.data import split
from training.traces.records import Split

TEST_SHARE = 0.3
Sides = dict[str, list[str]]


def make_splits(samples: Sequence[Sample], seed: int) -> dict[str, Sides]:
    """Splits 7:3 by sample and by scenario, ids in file order. Raises UserError where there is a single scenario."""
    if len({sample.scenario for sample in samples}) < 2:
        raise UserError("all answers are to one scenario, which cannot be on both sides of a split; give more of them")
    found = {}
    for by in ("scenario", "sample"):
        train, test = split(samples, TEST_SHARE, by, seed)
        found[by] = {"train": [sample.id for sample in train], "test": [sample.id for sample in test]}
    return found


def make_folds(samples: Sequence[Sample], count: int, by: str, seed: int) -> dict[str, Sides]:
    """``fold0`` … of about equal size; by scenario no scenario is in two folds. Raises UserError for too few units."""
    units = sorted({_unit(sample, by) for sample in samples})
    if not 2 <= count <= len(units):
        raise UserError(f"{count} folds of {len(units)} {by}s: give a number from 2 to {len(units)}")
    random.Random(seed).shuffle(units)
    fold_of = {unit: number % count for number, unit in enumerate(units)}
    sides: dict[str, Sides] = {f"fold{number}": {"train": [], "test": []} for number in range(count)}
    for sample in samples:
        own = fold_of[_unit(sample, by)]
        for number in range(count):
            sides[f"fold{number}"]["test" if number == own else "train"].append(sample.id)
    return sides


def _unit(sample: Sample, by: str) -> str:
    return sample.id if by == "sample" else sample.scenario


def write_splits(path: Path, splits: dict[str, Sides]) -> None:
    """Write a new file. Raises UserError where there is one already: a split stays fixed."""
    if path.exists():
        raise UserError(f"{path} exists, and a split stays fixed; choose another name, or delete it")
    write_text(path, json.dumps(splits, indent=2, ensure_ascii=False) + "\n")


def side_of(path: str, name: str, side: str) -> frozenset[str]:
    """The ids on one side of a split. Raises UserError where the file has no such split."""
    return read_splits(path, name)[side]


def training_part(ids: Iterable[str], path: str, name: str) -> frozenset[str]:
    """Those of `ids` that a split has for training. Raises UserError, with the reason, where it has none of them."""
    every = frozenset(ids)
    kept = every & side_of(path, name, "train")
    if kept or not every:
        return kept
    held_out = len(every & side_of(path, name, "test"))
    if not held_out:
        raise UserError(f"{path}: {name} names none of the {len(every)} answers; the file is of other data")
    others = "" if held_out == len(every) else f", the other {len(every) - held_out} in neither part"
    raise UserError(
        f"{path}: of the {len(every)} answers none is in train of {name}, {held_out} in test{others}, and nothing is "
        "learned from a test; take answers of the training part"
    )


def noted(path: str, name: str) -> Split:
    """The split as traces remember it."""
    return Split(file=path, name=name, sha256=file_digest(Path(path)))


def need_known(ids: frozenset[str], samples: Sequence[Sample], path: str) -> None:
    """Raise UserError where a split names answers that are not among `samples`: it belongs to other data."""
    unknown = sorted(ids - {sample.id for sample in samples})
    if unknown:
        raise UserError(f"{path}: names answers that the data does not have: {named_list(unknown)}")
