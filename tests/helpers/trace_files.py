"""CGPST answers of a few words with evidence as short, for models that read little."""

import json
from pathlib import Path

from scripted_methods import CGPST

from eval.benchmarks.cgpst.exchange import write_evidence
from eval.benchmarks.cgpst.ratings import Entry, write_ratings
from eval.benchmarks.cgpst.samples import Rating, from_ratings
from eval.benchmarks.cgpst.scenarios import Scenario, write_scenarios
from eval.benchmarks.simulation.files import EVIDENCE, RATINGS, SCENARIO_FILE, SPLITS
from inference.records import Score, StepEvidence
from inference.rubric import Step

_FURTHER = {"gist": "It floats.", "simulated": True}
SCENARIOS = {"FS1": Scenario("Sea", "A town floats.", _FURTHER), "FS2": Scenario("Sea", "A town sinks.", _FURTHER)}
PHRASES = ("in the tub", "by our sea", "mud is good", "we lift logs", "mud fog hay", "no ice left")
IDS = ("A01_FS1", "A02_FS1", "A01_FS2", "A02_FS2")


def said(step: Step) -> str:
    """What the response to a step says, and the evidence on it quotes: words that tell the steps apart."""
    return PHRASES[CGPST.answered.index(step)]


def contents() -> dict[str, list[str]]:
    """Step name → texts: one for each item, else a single one."""
    return {
        step.name: [f"{n}. {said(step)}" for n in range(1, step.items.count + 1)] if step.items else [said(step)]
        for step in CGPST.answered
    }


def evidence() -> tuple[StepEvidence, ...]:
    """On each of these answers the same, grounded in it."""
    found = []
    for step in CGPST.answered:
        texts = {d.name: "Technology" if d.choices else d.short for d in step.asked}
        texts[step.asked[0].name] = f'"{said(step)}"'
        items = (texts,) * step.items.count if step.items else ()
        memory = f"Named so far: {said(step)}." if items else ""
        found.append(StepEvidence(step=step.name, texts={} if items else texts, items=items, memory=memory))
    return tuple(found)


def entry(name: str) -> Entry:
    answers = [
        Score(step=step.name, dimension=d.name, item=item, choice="Technology")
        if d.choices
        else Score(step=step.name, dimension=d.name, item=item, value=float(d.range[1]), top=float(d.range[1]))
        for step, d in CGPST.asked
        for item in (range(1, step.items.count + 1) if step.items else (None,))
    ]
    raters = [Rating("S1", answers), Rating("S2", answers)]
    return from_ratings(name, name.rpartition("_")[2], contents(), raters, CGPST)


def write_files(folder: Path) -> Path:
    """A folder like that of a simulation; scenario FS2 is the test."""
    folder.mkdir()
    write_scenarios(folder / SCENARIO_FILE, SCENARIOS)
    write_ratings(folder / RATINGS, [entry(name) for name in IDS])
    write_evidence(folder / EVIDENCE, dict.fromkeys(IDS, evidence()), CGPST)
    split = {"train": list(IDS[:2]), "test": list(IDS[2:])}
    (folder / SPLITS).write_text(json.dumps({"scenario": split}), encoding="utf-8")
    return folder


def benchmark(folder: Path) -> dict[str, str]:
    """``benchmark:`` of a config on these files."""
    return {"name": "cgpst", "ratings": str(folder / RATINGS), "scenarios": str(folder / SCENARIO_FILE)}
