"""The benchmark ``cgpst`` of an evaluation: rated answers with one split of them."""

import random
from collections.abc import Iterable, Sequence
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from eval.benchmarks.base import Benchmark
from eval.benchmarks.cgpst.layout import need, read_json
from eval.benchmarks.cgpst.ratings import Entry, read_ratings
from eval.benchmarks.cgpst.samples import to_samples
from eval.benchmarks.cgpst.scenarios import Scenario, read_scenarios
from eval.benchmarks.simulation.raters import RATERS as SIMULATED_RATERS
from inference.config import FaultAt, StrictModel, Whole
from inference.errors import UserError, named_list
from inference.records import Sample
from inference.rubric import Rubric

Part = Literal["test", "train", "all"]
Split = Literal["scenario", "sample"]
SIDES = ("train", "test")


class CgpstConfig(StrictModel):
    """``benchmark:`` of an evaluation config."""

    name: Literal["cgpst"]
    ratings: str
    """The official rating file, or one in its layout."""
    scenarios: str
    """The official scenario file."""
    splits: str | None = None
    """JSON: split → ``{"train": [ids], "test": [ids]}``. Without it every answer is in the test."""
    split: Split = "scenario"
    """Of the splits in the file: whole scenarios on one side, or answers to each scenario on both."""
    part: Part = "test"
    """Which answers are loaded. Also the name of the split in tables."""
    choose: Whole | None = Field(default=None, ge=1)
    """Take this many answers of the part, drawn with `choose_seed` and spread evenly over the scenarios."""
    choose_seed: Whole = Field(default=0, ge=0)
    """Another seed draws other answers. With the same one, fewer answers are some of the more."""
    simulated: bool | None = None
    """Whether answers or ratings were made by a program. Default: where scenarios are marked as simulated, as those of
    ``data synth-cgpst`` are, which no setting undoes, or the raters of an answer are S1 and S2, as there."""

    @model_validator(mode="after")
    def _seed_of_a_choice(self) -> "CgpstConfig":
        if self.choose_seed and self.choose is None:
            raise FaultAt("has no effect without `choose`, the number of answers; give both or neither", "choose_seed")
        return self

    @model_serializer(mode="wrap")
    def _as_before(self, written: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Without a choice no trace of it: the settings of runs that were made before there was one stay the same."""
        every: dict[str, Any] = written(self)
        return {name: value for name, value in every.items() if self.choose is not None or "choose" not in name}

    @property
    def files(self) -> dict[str, str | None]:
        """The input files, by the key that names them."""
        return {"ratings": self.ratings, "scenarios": self.scenarios, "splits": self.splits}


def load(config: CgpstConfig, rubric: Rubric) -> Benchmark:
    """Rated samples, in file order, with the one split that `config.part` names.

    Raises UserError for unreadable files, scores off the range of `rubric`, splits that name unknown answers, share
    some, or have one scenario on both sides of the split "scenario", where nothing is left, and where fewer answers are
    there than shall be chosen.
    """
    entries, scenarios = read_ratings(config.ratings), read_scenarios(config.scenarios)
    samples = to_samples(entries, rubric, scenarios)
    if config.splits is not None:
        chosen = _members(config, samples, config.splits)
        samples = [sample for sample in samples if sample.id in chosen]
    elif config.part == "train":
        raise UserError("benchmark: `part: train` needs `splits`, the file that says which answers are for training")
    if not samples:
        raise UserError(f"{config.splits or config.ratings}: no answers for `part: {config.part}`; choose another part")
    samples, how = _chosen(config, samples)
    return Benchmark(
        config.name,
        tuple(samples),
        {config.part: frozenset(sample.id for sample in samples)},
        chosen=how,
        simulated=_simulated(config, entries, [scenarios[sample.scenario_id] for sample in samples]),
    )


def _chosen(config: CgpstConfig, samples: list[Sample]) -> tuple[list[Sample], str]:
    """The samples that the config takes, and how they were chosen."""
    if config.choose is None:
        return samples, ""
    if config.choose > len(samples):
        raise UserError(
            f"benchmark: `choose: {config.choose}` is more than the {len(samples)} answers of `part: {config.part}`; "
            f"give {len(samples)} at most, or remove it for all of them"
        )
    said = f"{config.choose} of {len(samples)} samples, chosen with seed {config.choose_seed}"
    return choose_evenly(samples, config.choose, config.choose_seed), said


def choose_evenly(samples: Sequence[Sample], count: int, seed: int) -> list[Sample]:
    """`count` of `samples`, in their order, from each scenario as many as from the others, or one more; from one that
    has fewer, all. Ids, scenarios and `seed` decide, whatever the order and the ratings.
    """
    chance = random.Random(seed)
    by_scenario: dict[str, list[str]] = {}
    for sample in sorted(samples, key=lambda sample: (sample.scenario_id, sample.id)):
        by_scenario.setdefault(sample.scenario_id, []).append(sample.id)
    drawn = [chance.sample(ids, len(ids)) for ids in by_scenario.values()]
    chance.shuffle(drawn)  # which scenarios have one more
    turns = (name for turn in zip_longest(*drawn) for name in turn if name is not None)
    chosen = set(islice(turns, count))
    return [sample for sample in samples if sample.id in chosen]


def _simulated(config: CgpstConfig, entries: Sequence[Entry], scenarios: Iterable[Scenario]) -> bool:
    if config.simulated or any(scenario.simulated for scenario in scenarios):
        return True
    return config.simulated is None and any(entry.raters == SIMULATED_RATERS for entry in entries)


def _members(config: CgpstConfig, samples: list[Sample], path: str) -> frozenset[str]:
    sides = read_splits(path, config.split)
    known = {sample.id: sample.scenario_id for sample in samples}
    unknown = [name for side in SIDES for name in sides[side] if name not in known]
    need(not unknown, path, f"names answers that {config.ratings} does not have: {named_list(unknown)}")
    if config.split == "scenario":
        both = {known[name] for name in sides["train"]} & {known[name] for name in sides["test"]}
        need(not both, path, f"scenario: {named_list(sorted(both))} is on both sides, so answers leak; put it on one")
    return frozenset(known) if config.part == "all" else sides[config.part]


def read_splits(path: Path | str, split: str) -> dict[str, frozenset[str]]:
    """``train`` and ``test`` of the named split → answer ids. Raises UserError for another structure or shared ids."""
    content = read_json(path)
    need(isinstance(content, dict) and split in content, str(path), f"has no split {split}")
    found: Any = content[split]
    place = f"{path}: {split}"
    need(isinstance(found, dict) and set(SIDES) <= set(found), place, 'needs {"train": [ids], "test": [ids]}')
    for side in SIDES:
        sound = isinstance(found[side], list) and all(isinstance(name, str) for name in found[side])
        need(sound, f"{place}.{side}", "needs a list of answer ids")
    sides = {side: frozenset(found[side]) for side in SIDES}
    shared = sorted(sides["train"] & sides["test"])
    need(not shared, place, f"train and test share {named_list(shared)}")
    return sides
