"""Published utilities, which carry the released code's discount, in the paper's.

The released code does not discount the second path: s_released = u₁ + (s_paper − u₁) / γ, where u₁ is the first gain.
So s_paper = γ s_released + (1 − γ) u₁. Only means over queries are published and u₁ is not, but it lies between half
the released value at γ = 0, which is the first gain and the second, no larger one, and 5, the largest strength.
The other differences of the released code stay in the values: an answer without a usable path counts 1, not 0.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from rich.console import RenderableType

from eval.create.columns import Column, shown_text, side_by_side
from eval.tables import MISSING
from inference.errors import UserError, named_list, quoted
from inference.files import open_text, parse_json

LARGEST_GAIN = 5.0
CURVES = "website_patience_curves"
LAYOUT = f'{{"{CURVES}": {{"MODEL": {{"0.0": 5.34, …, "0.9": 9.39, "1.0": 10.5}}, …}}}}, mean utilities by patience'
CAPTION = (
    "Published tables and curves carry the released code's discount, by which the second path counts in full; “paper” "
    "is where the value lies by the paper's discount. Compare published values with "
    "`python -m eval create score --mode official --website`, not with the default mode."
)
Patience = Annotated[float, Field(ge=0, le=1)]
Utility = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Published(BaseModel):
    """Published curves: model → patience → mean utility over queries."""

    model_config = ConfigDict(extra="ignore")

    website_patience_curves: dict[str, dict[Patience, Utility]]

    @property
    def without_start(self) -> list[str]:
        """Models whose curve lacks patience 0, without which nothing is known of the first path."""
        return [model for model, curve in self.website_patience_curves.items() if 0.0 not in curve]


class Converted(NamedTuple):
    model: str
    patience: float
    published: float | None
    """None, like the ends, where the curve has no value at this patience."""
    low: float | None
    high: float | None


def read_published(path: Path) -> Published:
    """The curves of a JSON file with the key ``website_patience_curves``. Raises UserError for another layout."""
    with open_text(path) as file:
        text = file.read()
    try:
        content = parse_json(text)
    except ValueError as error:
        raise UserError(f"{path}: not JSON ({error}); needed is {LAYOUT}") from None
    if not isinstance(content, dict) or CURVES not in content:
        given = named_list(content) if isinstance(content, dict) else type(content).__name__
        raise UserError(f"{path}: no key {CURVES}, but {given or 'nothing'}; needed is {LAYOUT}")
    try:
        found = Published.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        place = ", ".join(str(part) for part in first["loc"])
        raise UserError(f"{path}: {quoted(place, 100)}: {first['msg']}; needed is {LAYOUT}") from None
    _check_start(path, found)
    return found


def _check_start(path: Path, found: Published) -> None:
    for model, curve in found.website_patience_curves.items():
        if curve.get(0.0, 0.0) > 2 * LARGEST_GAIN:
            raise UserError(
                f"{path}: {quoted(model)} has {curve[0.0]:g} at patience 0, where two paths of at most "
                f"{LARGEST_GAIN:g} count; mend the value"
            )


def paper_interval(published: float, patience: float, at_zero: float) -> tuple[float, float]:
    """Where the mean utility by the paper's discount lies.

    Args:
        published: Mean utility as published, at `patience` (0 to 1).
        at_zero: The published curve's value at patience 0.
    """
    low, high = (patience * published + (1 - patience) * first for first in (at_zero / 2, LARGEST_GAIN))
    return low, high


def convert_curves(
    curves: Mapping[str, Mapping[float, float]], patiences: Sequence[float] = (0.7, 0.9)
) -> list[Converted]:
    """Each model's published curve, patience → mean utility, at `patiences`; one that lacks 0 is left out."""
    return [
        _converted(model, curve, patience) for model, curve in curves.items() if 0.0 in curve for patience in patiences
    ]


def _converted(model: str, curve: Mapping[float, float], patience: float) -> Converted:
    value = curve.get(patience)
    ends = (None, None) if value is None else paper_interval(value, patience, curve[0.0])
    return Converted(model, patience, value, *ends)


def published_json(found: Published, converted: Sequence[Converted]) -> str:
    """One object: ``models``, a list; ``left_out``, names of curves without a value at patience 0; ``note``."""
    models = [one._asdict() for one in converted]
    return json.dumps({"models": models, "left_out": found.without_start, "note": CAPTION})


def published_tables(found: Published, converted: Sequence[Converted], width: int) -> Iterator[RenderableType]:
    """Published value and the paper's interval, patience by patience, within `width` characters."""
    models = list(dict.fromkeys(one.model for one in converted))
    columns = []
    for patience in dict.fromkeys(one.patience for one in converted):
        here = [one for one in converted if one.patience == patience]
        columns.append(Column(f"published {patience:g}", [_decimals(one.published) for one in here]))
        columns.append(Column(f"paper {patience:g}", [_ends(one) for one in here]))
    yield from side_by_side("CREATE: published mean utility at each patience", Column("model", models), columns, width)
    yield CAPTION
    if found.without_start:
        yield shown_text(f"left out, for the curve has no value at patience 0: {named_list(found.without_start)}")


def _decimals(value: float | None) -> str:
    return MISSING if value is None else f"{value:.2f}"


def _ends(one: Converted) -> str:
    return MISSING if one.low is None else f"{_decimals(one.low)} to {_decimals(one.high)}"
