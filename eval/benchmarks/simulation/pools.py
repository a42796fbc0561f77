"""What simulated responses are composed of: one file of phrases per scenario, and one per voice.

Scenario files hold what is about the scenario, voice files the frames into which it is put. A voice belongs either to
training or to test scenarios, so the two share no phrase.
"""

from functools import cache
from importlib.resources import files
from typing import Literal

from pydantic import Field

from inference.config import StrictModel, parse_yaml, validate

Grade = Literal[0, 1, 2]
Phrases = tuple[str, ...]
SCENARIOS = tuple(f"FS{number}" for number in range(1, 11))


class Idea(StrictModel):
    """A challenge (a clause with may, could or might) or a solution (a verb phrase in its base form)."""

    c: str
    """FPSPI category."""
    n: Grade
    """Novelty."""
    a: str
    b: str
    """Says the same as `a` in other words: what a duplicate is made of."""


class Objective(StrictModel):
    """What a criterion asks for: a verb with a direction, and its object."""

    v: str
    o: str


class Issue(StrictModel):
    """An underlying problem that a respondent may choose."""

    weight: Literal["central", "suitable", "side", "off"]
    """How much the scenario turns on it."""
    conditions: Phrases
    """Clauses with facts of the scenario from which the problem arises."""
    verb: str
    against: str
    """A verb that pulls the other way."""
    object: str
    also: Phrases
    """Further objects, which make a key verb phrase too many."""
    narrow: str
    """The object, sized too small."""
    purposes: Phrases
    """Verb phrases in their base form."""
    outcomes: Phrases
    """Clauses: what is the case once a solution works."""
    objectives: tuple[Objective, ...]
    """Criteria that fit this problem alone."""


class ScenarioPool(StrictModel):
    """A file of ``scenarios/``."""

    id: str = Field(pattern=r"^FS\d+$")
    theme: str
    voice: Literal["train", "test"]
    year: int
    place: str
    gist: str
    """The scenario in one sentence."""
    text: str
    cites: Phrases
    """Verbatim from `text`."""
    false_facts: Phrases
    """Clauses that the scenario contradicts."""
    objects: Phrases
    groups: Phrases
    actors: Phrases
    places: Phrases
    stakes: Phrases
    """Clauses: why a challenge matters."""
    problems: tuple[Idea, ...]
    devices: tuple[Idea, ...]
    wide: Phrases
    """Objects of a key verb phrase, sized too large."""
    objectives: tuple[Objective, ...]
    """Criteria that fit the scenario, but no single problem of it."""
    issues: tuple[Issue, ...]


class VoicePool(StrictModel):
    """A file of ``voices/``: templates with ``{slots}``."""

    # Step 1 and step 3: items
    openers: Phrases
    ties: Phrases
    whys: Phrases
    thin: Phrases
    vague_challenges: Phrases
    stray_challenges: Phrases
    instead: Phrases
    specifics: Phrases
    hows: Phrases
    aims: Phrases
    thin_solutions: Phrases
    vague_solutions: Phrases
    stray_solutions: Phrases
    fillers: Phrases
    # Step 2: stems; step 4: criteria
    stems: Phrases
    given: Phrases
    superlatives: Phrases
    nouns: Phrases
    generic: tuple[Objective, ...]
    unrelated: tuple[Objective, ...]
    # Step 6: the plan
    tie_kvp: Phrases
    tie_purpose: Phrases
    tie_group: Phrases
    tie_theme: Phrases
    tie_none: Phrases
    reach: tuple[Phrases, Phrases, Phrases, Phrases, Phrases]
    """By grade, lowest first."""
    effect: tuple[Phrases, Phrases, Phrases, Phrases, Phrases]
    care: tuple[Phrases, Phrases, Phrases, Phrases, Phrases]
    criterion_clear: Phrases
    criterion_vague: Phrases
    who: Phrases
    when: Phrases
    where: Phrases
    how: Phrases
    money: Phrases
    tools: Phrases
    risks: Phrases
    checks: Phrases
    spread: Phrases
    padding: Phrases
    headings: dict[str, str]


def neighbours(pool: ScenarioPool) -> list[ScenarioPool]:
    """The other scenarios on the same side of the split."""
    return [other for name in SCENARIOS if (other := scenario_pool(name)).voice == pool.voice and other.id != pool.id]


@cache
def scenario_pool(identifier: str) -> ScenarioPool:
    """The phrases of a scenario. Raises UserError for a damaged file."""
    name = f"scenarios/{identifier.lower()}.yaml"
    return validate(parse_yaml(_text(name)), ScenarioPool, name)


@cache
def voice_pool(name: str) -> VoicePool:
    """The frames of a voice, ``train`` or ``test``."""
    return validate(parse_yaml(_text(f"voices/{name}.yaml")), VoicePool, f"voices/{name}.yaml")


def _text(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
