"""Of what a simulated response consists: its properties, from which its text, its scores and its evidence follow."""

from typing import Literal

from eval.benchmarks.simulation.pools import Grade
from inference.config import StrictModel

Kind = Literal["valid", "perhaps", "why", "solution", "duplicate", "blank"]
"""An item that counts, or why it doesn't."""
Section = Literal["who", "when", "where", "how", "money", "tools", "risks", "checks", "spread"]
SECTIONS: tuple[Section, ...] = ("who", "when", "where", "how", "money", "tools", "risks", "checks", "spread")
PARAMETERS = ("time", "place", "theme")


class ItemPart(StrictModel):
    """A challenge of step 1 or a solution of step 3."""

    kind: Kind
    idea: int | None = None
    """Position in the scenario's problems or devices; a duplicate has the idea of another item."""
    stray: str = ""
    """Another scenario, from which an item is that has no relation to this one."""
    wording: Literal["a", "b"] = "a"
    category: str = ""
    """What a rater who counts the item takes it for."""
    novelty: Grade = 0
    detail: bool = False
    """A challenge says why it matters; a solution says who acts, where and when."""
    tie: bool = False
    """A challenge quotes the scenario; a solution says what it is for."""

    @property
    def elaboration(self) -> int:
        """0: left unclear; 1: one of `detail` and `tie`; 2: both."""
        return int(self.detail) + int(self.tie)


class ProblemPart(StrictModel):
    """The underlying problem of step 2."""

    challenge: int
    """Number of the challenge it refers to."""
    issue: int
    other: int
    """Another issue, from which what does not fit is taken."""
    condition: Literal[0, 1, 2]
    wrong: bool = False
    """Of a condition graded 1: the scenario says otherwise. Else it is right, but belongs to the other issue."""
    stem: Literal[0, 1, 2, 3]
    purpose: Literal[0, 1, 2, 3]
    parameters: tuple[Literal["time", "place", "theme"], ...]
    scope: Literal["wide", "narrow", "sized", "sharp"]


class CriterionPart(StrictModel):
    """A criterion of step 4."""

    fault: Literal["", "superlative", "objective", "direction", "question"] = ""
    """The one condition that it fails."""
    relevance: Literal[0, 1, 2, 3]
    verb: str
    object: str


class GridPart(StrictModel):
    """The ranking of step 5."""

    columns: tuple[int, ...] = ()
    """Criteria (from 1) whose column is no permutation of the ranks."""
    rows: tuple[int, ...] = ()
    """Solutions (by number) whose total is wrong."""

    @property
    def errors(self) -> int:
        return len(self.columns) + len(self.rows)


class PlanPart(StrictModel):
    """The plan of step 6: grades from 1 to 5, and the questions it answers."""

    relevance: int
    effectiveness: int
    criteria: int
    impact: int
    humaneness: int
    sections: tuple[Section, ...]


class ResponseParts(StrictModel):
    """A whole response."""

    id: str
    scenario: str
    challenges: tuple[ItemPart, ...]
    problem: ProblemPart
    solutions: tuple[ItemPart, ...]
    criteria: tuple[CriterionPart, ...]
    grid: GridPart
    plan: PlanPart
