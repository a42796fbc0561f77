"""A rubric as validated data: steps, dimensions, ranges and levels, read from ``configs/rubrics/*.yaml``."""

import hashlib
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import Field, field_validator, model_validator

from inference.config import StrictModel, load_config


class Dimension(StrictModel):
    """One scored quality of a step."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    description: str
    range: tuple[int, int]
    """Lowest and highest score, both included."""
    fractional: bool = False
    """True where human targets and scores may lie between the whole numbers of the range."""
    levels: dict[int, str] = {}
    """What a score means, for some or all whole numbers of the range."""

    @field_validator("range")
    @classmethod
    def _ordered(cls, value: tuple[int, int]) -> tuple[int, int]:
        low, high = value
        if low >= high:
            raise ValueError(f"the range [{low}, {high}] is inverted or empty: write [lowest, highest]")
        if low < 0 or high > 99:
            raise ValueError(f"the range [{low}, {high}] leaves 0..99, where a score is one or two digits")
        return value

    @model_validator(mode="after")
    def _levels_in_range(self) -> "Dimension":
        outside = [level for level in self.levels if not self.range[0] <= level <= self.range[1]]
        if outside:
            raise ValueError(f"{self.name}: levels {outside} lie outside the range {list(self.range)}")
        return self

    @property
    def grid(self) -> tuple[str, ...]:
        """The score strings a judge may put out, ascending: for 1..5 ("1", "2", "3", "4", "5")."""
        return tuple(str(score) for score in range(self.range[0], self.range[1] + 1))

    def contains(self, value: float) -> bool:
        """Whether `value` is a score of this dimension (in range, and whole unless fractional)."""
        low, high = self.range
        return low <= value <= high and (self.fractional or float(value).is_integer())


class Step(StrictModel):
    """One part of the response, with the dimensions it is judged on."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    task: str
    """What the respondent was asked to do in this step."""
    dimensions: tuple[Dimension, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _unique(self) -> "Step":
        names = [dimension.name for dimension in self.dimensions]
        if len(set(names)) < len(names):
            raise ValueError(f"step {self.name}: two dimensions have the same name in {names}")
        return self


class Rubric(StrictModel):
    """Everything a judge is told about what to score, and everything a parser needs to read the scores."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    description: str
    """What is judged and from which point of view; the opening of every judge's instructions."""
    scenario_label: str = "scenario"
    """What the field is called that the response answers to: an object, a scenario, a plot."""
    steps: tuple[Step, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _unique(self) -> "Rubric":
        names = [step.name for step in self.steps]
        if len(set(names)) < len(names):
            raise ValueError(f"two steps have the same name in {names}")
        return self

    @cached_property
    def scored(self) -> tuple[tuple[Step, Dimension], ...]:
        """All (step, dimension) pairs in order."""
        return tuple((step, dimension) for step in self.steps for dimension in step.dimensions)

    @cached_property
    def digest(self) -> str:
        """First 12 hex digits of the SHA-256 of the rubric's canonical JSON."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:12]

    def json_schema(self) -> dict[str, Any]:
        """JSON schema of a judge's whole answer: ``{step: {dimension: number}}``, every key required, none added."""
        return _closed_object(
            {step.name: _closed_object({d.name: _number(d) for d in step.dimensions}) for step in self.steps}
        )


def _closed_object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _number(dimension: Dimension) -> dict[str, Any]:
    # Engines enforce an enumeration of whole scores more reliably than numeric bounds.
    return {"type": "integer", "enum": [int(score) for score in dimension.grid]}


def load_rubric(path: Path | str) -> Rubric:
    """The rubric in a YAML file. Raises UserError naming the file and each fault."""
    return load_config(path, Rubric)
