"""Checks over all answers of a file: the names of the raters, the scenarios, and how many answers each has."""

from collections import Counter
from collections.abc import Mapping, Sequence

from eval.benchmarks.cgpst.findings import Findings
from eval.benchmarks.cgpst.names import RATERS, SCENARIOS
from eval.benchmarks.cgpst.ratings import Entry
from inference.errors import named, named_list

WHOLE = "the file"
"""The place of what is found of no single answer."""


def check_same_raters(entries: Sequence[Entry], findings: Findings) -> None:
    """Note answers whose raters are others than those of most answers, or the same in another order."""
    pairs = Counter(entry.raters for entry in entries if len(set(entry.raters)) == len(entry.raters) == RATERS)
    if len(pairs) < 2:
        return
    topic = "raters that differ between answers"
    usual, times = pairs.most_common(1)[0]
    if 2 * times <= pairs.total():
        # None of them is the rule, so none is the exception.
        listed = "; ".join(f"{named_list(pair)} ({count})" for pair, count in pairs.most_common(5))
        findings.note(topic, WHOLE, f"the answers have {len(pairs)} different pairs of raters: {listed}")
        return
    for entry in entries:
        if entry.raters in pairs and entry.raters != usual:
            what = "are swapped" if set(entry.raters) == set(usual) else "are others than usual"
            message = f"the raters {what}: {named_list(entry.raters)}, in {times} of the answers {named_list(usual)}"
            findings.note(topic, entry.place(), message)


def check_scenario_ids(scenario_of: Mapping[str, str], findings: Findings) -> None:
    """Note scenarios (by answer id) that are not published, and unequal numbers of answers to them."""
    counts = Counter(filter(None, scenario_of.values()))
    check_published(counts, findings)
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{named(name)} {count}" for name, count in counts.items())
        findings.note("numbers of answers", WHOLE, f"the scenarios have unequal numbers of answers: {listed}")


def check_published(counts: Mapping[str, int], findings: Findings) -> None:
    """Note scenarios that are none of the published ones; `counts` of what the file has of each."""
    for name, count in counts.items():
        if name not in SCENARIOS:
            often = f" ({count} in the file)" if count > 1 else ""
            message = f"is none of the ten published ones, {SCENARIOS[0]} to {SCENARIOS[-1]}{often}"
            findings.note("scenarios that are not published", f"scenario {named(name)}", message)
