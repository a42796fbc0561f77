"""Names in the benchmark's files, and how they belong to the rubric's steps and dimensions."""

from collections.abc import Iterable, Mapping

from inference.errors import UserError, named_list
from inference.rubric import Dimension, Rubric, Step

CONTENT = "Content"
INVALID = "Invalid"
OVERALL = "Overall"
SUMMARY = "Score Summary"
TOTAL = "Total Score"
TOTAL_KEY = "total.total"
"""The same in the rubric, as step.dimension."""
RATERS = 2
STEPS = ("Step-1", "Step-2", "Step-3", "Step-4", "Step-5", "Step-6")
SCENARIOS = tuple(f"FS{number}" for number in range(1, 11))
"""The published scenarios."""
ITEM_KEYS = ("Category", "Originality", "Elaboration", "Correctly Written", "Relevance")
"""Order of the ratings of an item in the rating files."""
ITEM_LISTS = {"Step-1": "each_challenge", "Step-3": "each_solution", "Step-4": "each_criteria"}
"""Step → key of the list of items in the score files."""
_OFFICIAL = {"Humaneness": "Humaness"}
"""Names that the files spell in their own way."""


def official(dimension: Dimension) -> str:
    """The key of a dimension in the benchmark's files."""
    return _OFFICIAL.get(dimension.title, dimension.title)


def official_steps(rubric: Rubric) -> tuple[Step, ...]:
    """Step-1 to Step-6. Raises UserError for a rubric that has other steps."""
    found = [step.label for step in rubric.answered]
    if found != list(STEPS):
        has = named_list(step.label or step.name for step in rubric.answered)
        raise UserError(
            f"the rubric {rubric.name} has the steps {has}, the benchmark cgpst {named_list(STEPS)}; use "
            "`rubric: cgpst`, with a variant or without, or another benchmark"
        )
    return rubric.answered


def filed(step: Step) -> tuple[Dimension, ...]:
    """The dimensions whose scores of the whole step stand in the files: all but choices and Integrity."""
    return tuple(d for d in step.dimensions if not d.choices and not (d.sum_of and d.title != OVERALL))


def item_dimensions(step: Step) -> dict[str, Dimension]:
    """Key → dimension of what stands with a valid item in the rating files, in their order."""
    by_key = {official(d): d for d in step.asked if d.per_item}
    return {key: by_key[key] for key in ITEM_KEYS if key in by_key}


def keys(dimensions: Iterable[Dimension]) -> dict[str, Dimension]:
    """Every spelling that is read → dimension: the official key and the rubric's label."""
    every = tuple(dimensions)
    return {d.title: d for d in every} | {official(d): d for d in every}


TWICE = "the same dimension stands here twice, in two spellings"


def named_twice(given: Iterable[str], known: Mapping[str, Dimension]) -> tuple[str, ...]:
    """The keys of `given` whose dimension another key before them has; `known` from `keys`."""
    first: dict[str, str] = {}
    return tuple(key for key in given if key in known and first.setdefault(known[key].name, key) != key)


def counted_choice(step: Step, dimension: Dimension) -> Dimension:
    """The choice that a derived dimension counts (Flexibility → Category), else the dimension itself."""
    return step.dimension(dimension.distinct) if dimension.distinct else dimension


def scenario_of(sample_id: str) -> str:
    """``FS1`` of ``A01_FS1``; empty where the id has no such ending."""
    return sample_id.rpartition("_")[2] if "_" in sample_id else ""


def reason_word(invalid: str) -> str:
    """``Duplicate`` of ``Duplicate — too close to another one``."""
    for dash in ("—", "–", " - "):
        invalid = invalid.partition(dash)[0]
    return invalid.strip()
