"""From the properties of a simulated response to its true scores, by the levels of ``configs/rubrics/cgpst.yaml``.

Only what is asked of a judge is scored here; sums and derived dimensions are left to `inference.aggregation`.
"""

from collections.abc import Iterator

from eval.benchmarks.simulation.parts import ItemPart, PlanPart, ProblemPart, ResponseParts
from eval.benchmarks.simulation.pools import scenario_pool
from inference.records import Score

ADEQUACY = {"off": 1, "side": 4, "suitable": 7, "central": 9}
"""Lowest score of the band of each weight of an issue."""


def true_scores(parts: ResponseParts) -> tuple[Score, ...]:
    """Scores of every dimension that is asked, per item where the step has items."""
    return tuple(
        [
            *_items("step1", parts.challenges),
            *_problem(parts.problem, scenario_pool(parts.scenario).issues[parts.problem.issue].weight),
            *_items("step3", parts.solutions),
            *(score for number, part in enumerate(parts.criteria, 1) for score in (
                _score("step4", "correctly_written", int(not part.fault), number),
                _score("step4", "relevance", part.relevance, number),
            )),
            _score("step5", "correctly_used", max(1, 5 - parts.grid.errors)),
            *_plan(parts.plan),
        ]
    )  # fmt: skip


def _score(step: str, dimension: str, value: int, item: int | None = None) -> Score:
    return Score(step=step, dimension=dimension, item=item, value=float(value), top=float(value))


def _items(step: str, items: tuple[ItemPart, ...]) -> Iterator[Score]:
    for number, part in enumerate(items, 1):
        counts = part.kind == "valid"
        yield _score(step, "fluency", int(counts), number)
        if counts:
            yield _score(step, "elaboration", part.elaboration, number)
            yield _score(step, "originality", part.novelty, number)
            yield Score(step=step, dimension="category", item=number, choice=part.category)


def _problem(part: ProblemPart, weight: str) -> Iterator[Score]:
    yield _score("step2", "condition_phrase", part.condition)
    yield _score("step2", "stem_kvp", part.stem)
    yield _score("step2", "purpose", part.purpose)
    yield _score("step2", "fs_parameters", max(0, len(part.parameters) - 1))
    yield _score("step2", "focus", focus(part))
    best = 2 if weight in ("off", "side") else 1
    yield _score("step2", "adequacy", ADEQUACY[weight] + (part.condition if best == 2 else int(part.condition == 2)))


def focus(part: ProblemPart) -> int:
    """1–3 without key verb phrase or purpose, 4–6 with one fault of size or number, 7–8 sound, 9–10 sharp."""
    sized = part.scope in ("sized", "sharp")
    if not part.stem or not part.purpose:
        return 1 + int(sized) + int(part.condition == 2 and bool(part.stem or part.purpose))
    if not sized or part.stem < 3 or part.purpose == 1:
        return 4 + int(sized) + int(part.stem == 3)
    return (9 if part.scope == "sharp" else 7) + int(part.purpose == 3)


def _plan(part: PlanPart) -> Iterator[Score]:
    for dimension in ("relevance", "effectiveness", "criteria", "impact", "humaneness"):
        yield _score("step6", dimension, getattr(part, dimension))
    yield _score("step6", "development", 1 + len(part.sections))
