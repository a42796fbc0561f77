"""A small made-up CGPST answer with two raters, and its file as plain JSON to be made faulty."""

import json
from pathlib import Path
from typing import Any

from eval.benchmarks.cgpst.ratings import Entry, write_ratings
from eval.benchmarks.cgpst.samples import Rating, from_ratings
from eval.benchmarks.cgpst.scenarios import Scenario, write_scenarios
from inference.records import Score
from inference.rubric import Rubric, load_rubric

RUBRIC = load_rubric("cgpst")
SCENARIOS = {f"FS{number}": Scenario(f"Theme {number}", f"In scenario {number} a town floats.") for number in (1, 2, 3)}
GRID = "Solution | C1 | C2 | C3 | C4 | C5 | Total\n" + "\n".join(f"{n} |{f' {n} |' * 5} {5 * n}" for n in range(1, 9))
CATEGORIES = ("Technology", "Environment", "Economics")
INVALID_ITEM = ("step3", 4)


def contents() -> dict[str, list[str]]:
    """Step name → contents."""
    items = {
        step.name: [f"{n}. The {step.items.kind} number {n}." for n in range(1, step.items.count + 1)]
        for step in RUBRIC.answered
        if step.items
    }
    return items | {"step2": ["One problem.\nOf two lines."], "step5": [GRID], "step6": ["A plan."]}


def answers(shift: int = 0, rubric: Rubric = RUBRIC) -> list[Score]:
    """Scores of one rater, spread over the ranges; the fourth solution doesn't count."""
    scores = []
    for step, dimension in rubric.asked:
        for item in range(1, step.items.count + 1) if step.items else (None,):
            known = {"step": step.name, "dimension": dimension.name, "item": item}
            invalid = step.items and step.items.valid and (step.name, item) == INVALID_ITEM
            if dimension.choices:
                choice = None if invalid else CATEGORIES[(item or 0) % 3]
                scores += [] if choice is None else [Score(**known, choice=choice)]
                continue
            low, high = dimension.range
            value = low + ((item or len(scores)) + shift) % (high - low + 1)
            if step.items and dimension.name == step.items.valid:
                value = 0 if invalid else 1
            elif invalid:
                continue
            scores.append(Score(**known, value=value, top=value))
    return scores


def entry(sample_id: str = "A01_FS1", scenario: str = "FS1", rubric: Rubric = RUBRIC) -> Entry:
    """An answer without fault."""
    reasons = {INVALID_ITEM: "Duplicate"}
    ratings = [Rating("H01", answers(0, rubric), reasons), Rating("H02", answers(1, rubric), reasons)]
    return from_ratings(sample_id, scenario, contents(), ratings, rubric)


def plain(tmp_path: Path, *entries: Entry) -> list[Any]:
    """The file of `entries` as JSON values."""
    write_ratings(tmp_path / "plain.json", entries or [entry()])
    return json.loads((tmp_path / "plain.json").read_text())


def save(path: Path, content: Any) -> Path:
    path.write_text(json.dumps(content))
    return path


def scenario_file(tmp_path: Path) -> Path:
    write_scenarios(tmp_path / "scenarios.json", SCENARIOS)
    return tmp_path / "scenarios.json"
