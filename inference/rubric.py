"""A rubric as validated data: steps, items, dimensions, ranges and levels, read from ``configs/rubrics/*.yaml``.

A dimension is asked of the judge, per step or per item of a step, or derived by code (`inference.aggregation`).
"""

import hashlib
import os
import re
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import Field, StrictInt, field_validator, model_validator

from inference.config import NO_TEXT, FaultAt, StrictModel, line_of, read_yaml, validate, validate_file
from inference.errors import UserError, named_list, quoted

NAME = r"^[a-z][a-z0-9_]*$"
FOLDER = Path("configs/rubrics")
TAKEN_KEYS = ("notes", "scores", "choice", "evidence", "memory")
"""Keys of judges' and analysts' answers beside those of dimensions (`prompts.describe`)."""
TAKEN_COLUMNS = ("id", "scenario")
"""Columns of files of responses beside those of steps."""
HIGHEST = 1_000_000
"""Highest score that a sum may reach."""


class Dimension(StrictModel):
    """One scored quality of a step or of its items."""

    name: str = Field(pattern=NAME)
    label: str = ""
    """Name for people and in the benchmark's own files. Default: the name."""
    key: str = Field(default="", pattern=r"^[a-z0-9_]*$")
    """Short name in the JSON that judges write. Default: the name."""
    description: str
    range: tuple[StrictInt, StrictInt] = (0, 0)
    """Lowest and highest score, both included; of one item where `per_item`. Of derived dimensions it is computed."""
    fractional: bool = False
    """True where human targets and scores may lie between the whole numbers of the range."""
    levels: dict[str, str] = {}
    """What a score or a band of scores means (``3`` or ``1-3``), for some or all whole numbers of the range."""
    per_item: bool = False
    """Asked for each item of the step; the step's score is the sum over its items."""
    choices: tuple[str, ...] = ()
    """Names to choose from in place of a range, for dimensions `per_item` that others are derived from."""
    sum_of: tuple[str, ...] = ()
    """Derived: sum of these dimensions of the step, or ``step.dimension``."""
    distinct: str = ""
    """Derived: number of different choices of this dimension among the step's items that count."""
    reported: bool = True
    """Whether it counts in averages over dimensions: a part of another reported dimension or an overall sum doesn't."""

    @property
    def derived(self) -> bool:
        """Whether code computes it."""
        return bool(self.sum_of or self.distinct)

    @property
    def title(self) -> str:
        return self.label or self.name

    @property
    def short(self) -> str:
        return self.key or self.name

    @model_validator(mode="after")
    def _one_kind(self) -> "Dimension":
        kinds = {
            "range": "range" in self.model_fields_set,
            "choices": bool(self.choices),
            "sum_of": bool(self.sum_of),
            "distinct": bool(self.distinct),
        }
        given = [kind for kind, there in kinds.items() if there]
        if len(given) != 1:
            raise ValueError(
                f"{self.name}: needs one of range, choices, sum_of and distinct, has {', '.join(given) or 'none'}"
            )
        if self.choices and not self.per_item:
            raise FaultAt(f"{self.name}: choices are for dimensions with `per_item: true`", "choices")
        if self.derived and (self.per_item or self.levels):
            fault = "levels" if self.levels else "per_item"
            raise FaultAt(f"{self.name}: is derived, so it has neither levels nor `per_item`", fault)
        if any(not choice.strip() for choice in self.choices):
            raise FaultAt(f"{self.name}: a choice is blank; give each a name", "choices")
        repeated = sorted({choice for choice in self.choices if self.choices.count(choice) > 1})
        if repeated or len(self.choices) == 1:
            raise FaultAt(f"{self.name}: needs two different choices or more, repeated: {repeated}", "choices")
        return self

    @field_validator("levels", mode="before")
    @classmethod
    def _keys_as_text(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        if any(isinstance(key, bool) for key in value):
            raise ValueError(f"a level is a score, or a band of them: {NO_TEXT}")
        return {str(key): meaning for key, meaning in value.items()}

    @model_validator(mode="after")
    def _levels_in_range(self) -> "Dimension":
        odd = [level for level in self.levels if not re.fullmatch(r"[0-9]{1,2}(-[0-9]{1,2})?", level)]
        if odd:
            raise FaultAt(f"{self.name}: levels {odd} are neither a whole number nor a band like 1-3", "levels", odd[0])
        described = [score for level in self.levels for score in band(level)]
        outside = [score for score in described if not self.range[0] <= score <= self.range[1]]
        if outside and "range" in self.model_fields_set:
            first = next(level for level in self.levels if set(band(level)) & set(outside))
            raise FaultAt(f"{self.name}: levels {outside} lie outside the range {list(self.range)}", "levels", first)
        if len(set(described)) < len(described) or not all(band(level) for level in self.levels):
            raise FaultAt(
                f"{self.name}: levels overlap, or a band is written high-low, in {list(self.levels)}", "levels"
            )
        return self

    @field_validator("range")
    @classmethod
    def _ordered(cls, value: tuple[int, int]) -> tuple[int, int]:
        low, high = value
        if low >= high:
            raise ValueError(f"the range [{low}, {high}] is inverted or empty: write [lowest, highest]")
        if low < 0 or high > 99:
            raise ValueError(f"the range [{low}, {high}] leaves 0..99, where a score is one or two digits")
        return value

    @property
    def grid(self) -> tuple[str, ...]:
        """The score strings a judge may put out, ascending: for 1..5 ("1", "2", "3", "4", "5")."""
        return tuple(str(score) for score in range(self.range[0], self.range[1] + 1))

    def contains(self, value: float) -> bool:
        """Whether `value` is a score of this dimension (in range, and whole unless fractional)."""
        low, high = self.range
        return low <= value <= high and (self.fractional or float(value).is_integer())


def band(level: str) -> range:
    """The scores that a key of `levels` is about."""
    low, _, high = level.partition("-")
    return range(int(low), int(high or low) + 1)


class Items(StrictModel):
    """The parts of which the response to a step consists."""

    kind: str
    """What one is called: a challenge, a solution."""
    count: int = Field(ge=1, le=50, strict=True)
    """How many are judged; further ones are left out, missing ones count as blank."""
    valid: str = ""
    """The dimension, with range [0, 1], that says whether an item counts at all. Empty: every item does."""
    invalid: dict[str, str] = {}
    """Reasons for which an item does not count, by name."""


class Step(StrictModel):
    """One part of the response, with the dimensions it is judged on."""

    name: str = Field(pattern=NAME)
    label: str = ""
    """Name for people and in the benchmark's own files. Default: the name."""
    title: str = ""
    task: str = ""
    """What the respondent was asked to do in this step. Needed where the judge is asked about it."""
    items: Items | None = None
    dimensions: tuple[Dimension, ...] = Field(min_length=1)

    @property
    def asked(self) -> tuple[Dimension, ...]:
        """What judges answer."""
        return tuple(dimension for dimension in self.dimensions if not dimension.derived)

    def dimension(self, name: str) -> Dimension:
        """Raises KeyError for an unknown name."""
        return {dimension.name: dimension for dimension in self.dimensions}[name]

    @model_validator(mode="after")
    def _unique(self) -> "Step":
        for what, names in (
            ("name", {number: d.name for number, d in enumerate(self.dimensions)}),
            ("key", {number: d.short for number, d in enumerate(self.dimensions) if not d.derived}),
        ):
            every = list(names.values())
            second = next((n for n, name in names.items() if name in [names[i] for i in names if i < n]), None)
            if second is not None:
                fault = f"step {self.name}: two dimensions have the same {what} in {every}"
                raise FaultAt(fault, "dimensions", second, what)
        taken = next((n for n, d in enumerate(self.dimensions) if not d.derived and d.short in TAKEN_KEYS), None)
        if taken is not None:
            fault = f"step {self.name}: {self.dimensions[taken].short} is a key of every answer; give the dimension"
            raise FaultAt(
                f"{fault} another `key`", "dimensions", taken, "key" if self.dimensions[taken].key else "name"
            )
        for field, column in (("name", self.name), ("label", self.label)):
            if column in TAKEN_COLUMNS:
                raise FaultAt(f"{column} is a column of every file of responses; give the step another {field}", field)
        if self.asked and not self.task:
            raise ValueError(f"step {self.name}: needs a task, what the respondent was asked to do")
        return self

    @model_validator(mode="after")
    def _items_fit(self) -> "Step":
        per_item = [dimension for dimension in self.dimensions if dimension.per_item]
        position = {dimension.name: number for number, dimension in enumerate(self.dimensions)}
        if self.items is None:
            if per_item:
                name = per_item[0].name
                fault = f"step {self.name}: {name} is per item, but the step has no `items`"
                raise FaultAt(fault, "dimensions", position[name], "per_item")
        elif len(per_item) < len(self.asked) or not per_item:
            whole = next((position[d.name] for d in self.asked if not d.per_item), 0)
            fault = f"step {self.name}: has `items`, so what is asked has to be `per_item: true`"
            raise FaultAt(fault, "dimensions", whole)
        elif self.items.valid and not any(d.name == self.items.valid and d.range == (0, 1) for d in per_item):
            fault = f"step {self.name}: items.valid names {self.items.valid!r}, no dimension per item with range [0, 1]"
            raise FaultAt(fault, "items", "valid")
        for dimension in self.dimensions:
            if dimension.distinct and not any(d.name == dimension.distinct and d.choices for d in per_item):
                fault = f"step {self.name}: {dimension.name} counts {dimension.distinct!r}, no dimension with choices"
                raise FaultAt(fault, "dimensions", position[dimension.name], "distinct")
        return self


class Learned(NamedTuple):
    """One kind of question to a learned judge."""

    step: Step
    dimension: Dimension
    """With the range of the answer: of one item where `per_item`, else of the step."""
    per_item: bool


class Rubric(StrictModel):
    """Everything a judge is told about what to score, and everything a parser needs to read the scores."""

    name: str = Field(pattern=NAME)
    description: str
    """What is judged and from which point of view; the opening of every judge's instructions."""
    scenario_label: str = "scenario"
    """What the field is called that the response answers to: an object, a scenario, a plot."""
    steps: tuple[Step, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _unique(self) -> "Rubric":
        names = [step.name for step in self.steps]
        second = next((number for number, name in enumerate(names) if name in names[:number]), None)
        if second is not None:
            raise FaultAt(f"two steps have the same name in {names}", "steps", second, "name")
        if not self.asked:
            raise ValueError("every dimension is derived, so a judge has nothing to answer")
        return self

    @model_validator(mode="after")
    def _sums_known(self) -> "Rubric":
        known: dict[str, tuple[int, int]] = {}
        choices = {f"{s.name}.{d.name}" for s in self.steps for d in s.dimensions if d.choices}
        for step in self.steps:
            # Sums may use what stands before them, sums included, so that there are no circles.
            for dimension in sorted(step.dimensions, key=lambda d: bool(d.sum_of)):
                unknown = [part for part in terms(step, dimension) if part not in known or part in choices]
                where = ("steps", self.steps.index(step), "dimensions", step.dimensions.index(dimension))
                if unknown:
                    fault = (
                        f"step {step.name}: {dimension.name} sums {named_list(unknown)}, no scored dimension before it"
                    )
                    raise FaultAt(fault, *where, "sum_of")
                reached = _step_range(step, dimension, known)
                if reached[1] > HIGHEST:
                    fault = f"step {step.name}: {dimension.name} reaches more than {HIGHEST:,}; sum up less"
                    raise FaultAt(fault, *where, "sum_of")
                known[f"{step.name}.{dimension.name}"] = reached
        return self

    @cached_property
    def answered(self) -> tuple[Step, ...]:
        """The steps that have a response, all but those that only sum up others."""
        return tuple(step for step in self.steps if step.asked)

    @cached_property
    def asked(self) -> tuple[tuple[Step, Dimension], ...]:
        """All (step, dimension) pairs that a judge answers, once or per item, in order."""
        return tuple((step, dimension) for step in self.steps for dimension in step.asked)

    @cached_property
    def scored(self) -> tuple[tuple[Step, Dimension], ...]:
        """All (step, dimension) pairs that have a score, in order; the dimension with the range of the whole step."""
        ranges: dict[str, tuple[int, int]] = {}
        found: dict[str, tuple[Step, Dimension]] = {}
        for step in self.steps:
            for dimension in sorted(step.dimensions, key=lambda d: bool(d.sum_of)):
                if dimension.choices:
                    continue
                key = f"{step.name}.{dimension.name}"
                ranges[key] = _step_range(step, dimension, ranges)
                whole = dimension.model_copy(
                    update={"range": ranges[key], "levels": {} if dimension.per_item else dimension.levels}
                )
                found[key] = (step, whole)
        keys = [f"{step.name}.{d.name}" for step in self.steps for d in step.dimensions if not d.choices]
        return tuple(found[key] for key in keys)

    @cached_property
    def reported(self) -> tuple[tuple[Step, Dimension], ...]:
        """The pairs of `scored` that averages over dimensions are taken of."""
        return tuple((step, dimension) for step, dimension in self.scored if dimension.reported)

    @cached_property
    def unsummed(self) -> tuple[tuple[Step, Dimension], ...]:
        """The pairs of `scored` that are not sums of others: what a file of whole scores has to hold."""
        return tuple((step, dimension) for step, dimension in self.scored if not dimension.sum_of)

    @cached_property
    def learned(self) -> tuple[Learned, ...]:
        """What a learned judge is asked, one number a time, in order.

        Of steps with items each number per item, and each count of different choices for the step as a whole: a choice
        is no number. Of other steps each dimension asked.
        """
        whole = {(step.name, dimension.name): dimension for step, dimension in self.unsummed}
        return tuple(
            Learned(step, d if d.per_item else whole[step.name, d.name], d.per_item)
            for step in self.steps
            for d in step.dimensions
            if not d.sum_of and not d.choices
        )

    @cached_property
    def has_items(self) -> bool:
        return any(step.items for step in self.steps)

    @property
    def single(self) -> bool:
        """Whether a judge's answer is one number."""
        return len(self.asked) == 1 and not self.has_items

    @cached_property
    def digest(self) -> str:
        """First 12 hex digits of the SHA-256 of the rubric's canonical JSON."""
        return hashlib.sha256(self.model_dump_json(exclude_defaults=True).encode()).hexdigest()[:12]


def terms(step: Step, dimension: Dimension) -> tuple[str, ...]:
    """What `sum_of` names, as ``step.dimension``."""
    return tuple(part if "." in part else f"{step.name}.{part}" for part in dimension.sum_of)


def _step_range(step: Step, dimension: Dimension, ranges: dict[str, tuple[int, int]]) -> tuple[int, int]:
    if dimension.sum_of:
        parts = [ranges[part] for part in terms(step, dimension)]
        return sum(low for low, _ in parts), sum(high for _, high in parts)
    if step.items is None:
        return dimension.range
    # Blank items count nothing, whatever the lowest score of an item is.
    return 0, step.items.count * (1 if dimension.distinct else dimension.range[1])


def load_rubric(path: Path | str) -> Rubric:
    """The rubric in a YAML file, or of that name in ``configs/rubrics``; ``FILE#variant,variant`` applies variants.

    A file's ``variants`` hold, by name, replacements of settings of single dimensions (``step.dimension``). A path that
    exists as written is taken as it is, whatever its name holds.
    Raises UserError naming the file, the variant or the line, and each fault.
    """
    file, (_, chosen) = rubric_file(path), split_variants(path)
    content = read_yaml(file)
    variants = content.pop("variants", {})
    _check_variants(file, variants)
    unknown = [variant for variant in chosen if variant not in variants]
    if unknown:
        raise UserError(f"{file}: has no variant {named_list(unknown)}; it has {named_list(variants) or 'none'}")
    rubric = validate_file(file, content, Rubric)
    for variant in chosen:
        _apply(file, content, variant, variants[variant])
        try:
            rubric = validate(content, Rubric, f"variant {variant}")
        except UserError as error:
            raise UserError(f"{file}: line {line_of(file, 'variants', variant)}: {error}") from None
    return rubric


def variants_of(path: Path | str) -> tuple[str, ...]:
    """The variants that a rubric file offers."""
    file = rubric_file(path)
    variants = read_yaml(file).get("variants", {})
    _check_variants(file, variants)
    return tuple(variants)


def split_variants(path: Path | str) -> tuple[str, tuple[str, ...]]:
    """File, or name of a rubric, and the chosen variants: ``FILE#one,two`` → ``FILE``, ``("one", "two")``."""
    name, _, chosen = str(path).rpartition("#")
    # What follows a # in the name of a folder is no variant.
    if not name or {"/", os.sep} & set(chosen) or _exists(Path(path)):
        return str(path), ()
    return name, tuple(variant for variant in chosen.split(",") if variant)


def rubric_file(path: Path | str) -> Path:
    """The file in which the rubric stands that is named as `load_rubric` takes it."""
    name, _ = split_variants(path)
    if re.fullmatch(NAME, name) and not _exists(Path(name)):
        for folder in (FOLDER, Path(__file__).parents[1] / FOLDER):
            if _exists(folder / f"{name}.yaml"):
                return folder / f"{name}.yaml"
    return Path(name)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a name too long for the file system
        return False


def _check_variants(file: Path, variants: Any) -> None:
    sound = isinstance(variants, dict) and all(
        isinstance(changes, dict) and all(isinstance(change, dict) for change in changes.values())
        for changes in variants.values()
    )
    if not sound:
        raise UserError(f"{file}: variants: write `variants: {{NAME: {{step.dimension: {{range: [0, 2]}}}}}}`")
    odd = [name for name in variants if not isinstance(name, str) or not re.fullmatch(NAME, name)]
    if odd:
        raise UserError(
            f"{file}: variants: {quoted(str(odd[0]), 40)} is no name of a variant; those have small letters, digits "
            "and underscores, a letter first"
        )


def _apply(file: Path, content: dict[str, Any], variant: str, changes: dict[str, dict[str, Any]]) -> None:
    """Replace settings of the named dimensions in `content`."""
    dimensions = {f"{step}.{dimension.get('name')}": dimension for step, dimension in _dimensions(content)}
    for key, change in changes.items():
        if key not in dimensions:
            raise UserError(f"{file}: variants.{variant}: the rubric has no {quoted(str(key))}")
        dimensions[key].update(change)


def _dimensions(content: dict[str, Any]) -> Iterable[tuple[Any, dict[str, Any]]]:
    steps = content.get("steps")
    for step in steps if isinstance(steps, list) else []:
        found = step.get("dimensions") if isinstance(step, dict) else None
        entries = found if isinstance(found, list) else []
        yield from ((step.get("name"), entry) for entry in entries if isinstance(entry, dict))
