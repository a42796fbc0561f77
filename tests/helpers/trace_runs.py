"""Evaluations of a few simulated CGPST answers by scripted judges with an analyst, for tests of what becomes of it."""

from pathlib import Path
from typing import Any

import yaml
from known_truth import KnownTruth
from scripted_methods import CGPST, simulated

from eval.benchmarks.cgpst.ratings import read_ratings, write_ratings
from eval.benchmarks.simulation.files import RATINGS, SCENARIO_FILE, write_simulation
from eval.run import evaluate
from inference.engines.base import EngineConfig
from inference.engines.scripted import ScriptedEngine
from inference.records import Completion
from training.traces.filter import FilterConfig

RESPONSES = tuple(
    response for response in simulated(20) if all(text for texts in response.texts.values() for text in texts)
)
CONFIG = FilterConfig(no_choice=("none", "does not apply"), unquoted_steps=("step5",))


def write_few(folder: Path) -> Path:
    """A simulation with a file of the ratings of `RESPONSES` alone, for runs."""
    write_simulation(folder)
    ids = {response.id for response in RESPONSES}
    write_ratings(folder / "few.json", [entry for entry in read_ratings(folder / RATINGS) if entry.id in ids])
    return folder


JUDGES: list[dict[str, Any]] = [
    {"id": "plain", "method": "direct", "model": "sound"},
    {"id": "analyst", "method": "creaeval", "model": "sound", "repeats": 2},
    {"id": "mixed", "method": "creaeval", "model": "sound", "decoupled": False},
]


def write_run(out: Path, simulation: Path, judges: list[dict[str, Any]] | None = None, broken: str = "") -> None:
    """`broken`: text in the prompts of calls that get no readable answer."""
    names = {"ratings": "few.json", "scenarios": SCENARIO_FILE}
    config = {
        "run": "small",
        "out": str(out),
        "rubric": "cgpst",
        "benchmark": {"name": "cgpst", **{key: str(simulation / name) for key, name in names.items()}},
        "judges": [{"engine": "scripted", "concurrency": 64, **judge} for judge in judges or JUDGES],
        "resamples": 100,
    }
    path = out.with_suffix(".yaml")
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    truth = KnownTruth(CGPST, RESPONSES)

    def answer(call: Any) -> Completion:
        shown = "\n".join(message.content for message in call.messages or ())
        return Completion(text="nothing") if broken and broken in shown else truth(call)

    def build(settings: EngineConfig) -> ScriptedEngine:
        return ScriptedEngine(settings, answer)

    evaluate(path, quiet=True, build=build)
