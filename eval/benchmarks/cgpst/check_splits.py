"""Checks of a file of splits, and of the properties of a simulation."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, get_args

from eval.benchmarks.cgpst.benchmark import SIDES, Split
from eval.benchmarks.cgpst.check_whole import check_published
from eval.benchmarks.cgpst.findings import Findings
from eval.benchmarks.cgpst.names import scenario_of
from eval.benchmarks.simulation.parts import ResponseParts
from inference.config import validate
from inference.errors import UserError, named, named_list


def check_splits(content: Mapping[str, Any], findings: Findings) -> int:
    """Check each split of a file, and return how many different answers they name."""
    found: dict[str, set[str]] = {}
    for split, sides in content.items():
        if split not in get_args(Split):
            findings.note("unknown keys", named(split), f"is not read; the splits are {named_list(get_args(Split))}")
        if not isinstance(sides, dict) or not set(SIDES) <= set(sides):
            findings.error(named(split), 'needs {"train": [ids], "test": [ids]}')
            continue
        findings.unread_keys(named(split), sides, (), SIDES)
        found[split] = set(_check_sides(split, sides, findings))
    every = set[str]().union(*found.values())
    for split, ids in found.items():
        if ids < every:
            missing = named_list(sorted(every - ids))
            findings.note("answers of other splits", named(split), f"lacks answers that another split has: {missing}")
    check_published(Counter(filter(None, map(scenario_of, sorted(every)))), findings)
    return len(every)


def _check_sides(split: str, sides: Mapping[str, Any], findings: Findings) -> list[str]:
    """The ids of both sides."""
    ids: dict[str, list[str]] = {}
    for side in SIDES:
        place, given = f"{named(split)}, {side}", sides[side]
        if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
            findings.error(place, "needs a list of answer ids")
            continue
        ids[side] = given
        repeated = [name for name, count in Counter(given).items() if count > 1]
        if not given:
            findings.error(place, "names no answer")
        if repeated:
            findings.error(place, f"names answers more than once: {named_list(repeated)}")
        odd = [name for name in given if not scenario_of(name)]
        if odd:
            findings.error(place, f"ids that do not end in a scenario, as A01_FS1 does: {named_list(odd)}")
    train, test = (set(ids.get(side, ())) for side in SIDES)
    if train & test:
        findings.error(named(split), f"train and test share {named_list(sorted(train & test))}")
    both = {scenario_of(name) for name in train} & {scenario_of(name) for name in test}
    if split == "scenario" and both:
        findings.error(named(split), f"{named_list(sorted(both))} is on both sides, so answers leak; put it on one")
    return [name for side in ids.values() for name in side]


def check_properties(rows: list[tuple[int, dict[str, Any]]], findings: Findings) -> None:
    """Properties of simulated responses, one a line."""
    seen: set[str] = set()
    for number, row in rows:
        try:
            parts = validate(row, ResponseParts, f"line {number}")
        except UserError as error:
            findings.error(f"line {number}", str(error).removeprefix(f"line {number}: "))
            continue
        if parts.id in seen:
            findings.error(f"line {number}", f"the id {named(parts.id)} occurs more than once")
        seen.add(parts.id)
        if scenario_of(parts.id) != parts.scenario:
            message = f"the id {named(parts.id)} does not end in the scenario, which is {named(parts.scenario)}"
            findings.error(f"line {number}", message)
