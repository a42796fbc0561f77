"""Reading YAML files into pydantic models, with ``${NAME:-default}`` expansion and one-sentence errors."""

import os
import re
from datetime import date
from pathlib import Path
from typing import Annotated, Any, TypeVar

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from inference.errors import UserError, named, quoted

_UNUSABLE = re.compile("[\0\ud800-\udfff]")
MOST_VALUES = 100_000
_VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")


class StrictModel(BaseModel):
    """Base of all records and settings: unknown keys are errors, instances don't change."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())


class FaultAt(ValueError):
    """Raised by a validator that knows where in the settings the fault is."""

    def __init__(self, message: str, *place: int | str) -> None:
        super().__init__(message)
        self.place = place
        """Keys and positions on the way from what is validated to the fault."""


def _no_truth_value(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("an unquoted yes, no, on, off, true or false is a truth value in YAML; write a number")
    return value


Whole = Annotated[int, BeforeValidator(_no_truth_value)]
"""A whole number of a config; a truth value is none."""
Number = Annotated[float, BeforeValidator(_no_truth_value), Field(allow_inf_nan=False)]
"""A finite number of a config; a truth value is none."""

M = TypeVar("M", bound=BaseModel)


def expand_variables(text: str) -> str:
    """Replace ``${NAME}`` and ``${NAME:-default}`` by the environment; UserError for an unset NAME without default."""

    def value(match: re.Match[str]) -> str:
        name, default = match.groups()
        found = os.environ.get(name) or default
        if found is None:
            raise UserError(
                f"the environment variable {name} is not set and has no default in the file: export {name}=..."
            )
        return found

    return _VARIABLE.sub(value, text)


def read_yaml(path: Path | str) -> dict[str, Any]:
    """The mapping in a UTF-8 YAML file, variables expanded in its string values (never in comments or keys)."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; check the path (it is relative to {Path.cwd()})") from None
    except IsADirectoryError:
        raise UserError(f"{path}: is a folder; name a YAML file in it") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UserError(f"{path}: cannot be read as UTF-8 text ({reason})") from None
    try:
        content = parse_yaml(text)
    except ValueError as error:
        raise UserError(f"{path}: not valid YAML: {error}") from None
    if not isinstance(content, dict):
        raise UserError(f"{path}: needs keys and values at the top level, found {type(content).__name__}")
    try:
        expanded: dict[str, Any] = _expand(content)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    return expanded


class _StrictLoader(yaml.SafeLoader):
    """Refuses repeated keys, of which PyYAML keeps the last, and merge keys, which hide them and can grow vastly."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        seen = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            if key.value in seen or key.tag == "tag:yaml.org,2002:merge":
                fault = (
                    f"the key {quoted(key.value)} is {'repeated' if key.value in seen else 'not taken, write it out'}"
                )
                raise yaml.constructor.ConstructorError(None, None, fault, key.start_mark)
            seen.add(key.value)
        return node


def parse_yaml(text: str) -> Any:
    """The plain data in a YAML text. Raises ValueError, in one sentence with the line where known, for every fault."""
    try:
        content = yaml.load(text, _StrictLoader)
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
        # PyYAML's own readers of dates and tagged values stumble in all these ways.
        raise ValueError(f"a date or tagged value cannot be read ({error}); put it in quotes") from None
    _check_size(content)
    return content


def _check_size(content: Any) -> None:
    # Aliases share values, but whoever copies or writes them gets each of them anew, or never comes to an end.
    waiting, count = [content], 0
    while waiting:
        node = waiting.pop()
        count += 1
        if count > MOST_VALUES:
            raise ValueError(f"it holds more than {MOST_VALUES:,} values, or an alias that holds itself")
        if isinstance(node, dict):
            waiting += node.values()
        elif isinstance(node, list | tuple | set):
            waiting += node


def _expand(node: Any) -> Any:
    if isinstance(node, str):
        return _sound(expand_variables(node))
    if isinstance(node, dict):
        return {_sound(key): _expand(value) for key, value in node.items()}
    if isinstance(node, list):
        return [_expand(value) for value in node]
    return node


def _sound(text: Any) -> Any:
    # Neither a path, nor a request, nor a file of the run could hold these.
    if isinstance(text, str) and _UNUSABLE.search(text):
        raise UserError(f"the text {quoted(text)} holds a NUL character or half a surrogate pair; remove it")
    return text


def validate(content: dict[str, Any], model: type[M], where: str, source: str = "") -> M:
    """`content` as an instance of `model`; every fault with its place in one UserError.

    With the YAML text of `content` as `source`, places have line numbers.
    """
    try:
        return model.model_validate(content)
    except ValidationError as error:
        items = error.errors()
        # Faulty items don't count as items, so a list of them is called too short as well.
        causes = [
            item
            for item in items
            if item["type"] != "too_short" or not any(_holds(item["loc"], i["loc"]) for i in items)
        ]
        document = yaml.compose(source, yaml.SafeLoader) if source else None
        faults = "; ".join(_fault(item, document) for item in causes)
        raise UserError(f"{where}: {faults}") from None


def _holds(outer: tuple[int | str, ...], inner: tuple[int | str, ...]) -> bool:
    return len(outer) < len(inner) and inner[: len(outer)] == outer


def _fault(item: Any, document: yaml.Node | None) -> str:
    inner = item.get("ctx", {}).get("error")
    parts = (*item["loc"], *(inner.place if isinstance(inner, FaultAt) else ()))
    is_key = parts[-1:] == ("[key]",)
    parts = parts[:-2] if is_key else parts
    place = ".".join(named(str(part)) for part in parts) or "top level"
    if document is not None:
        place = f"line {_line(document, parts)}: {place}"
    message = str(item["msg"]).removeprefix("Value error, ")
    if item["type"] == "extra_forbidden":
        message = "unknown key, remove it or correct its spelling"
    elif item["type"] in _TEXT_WANTED:
        message = f"{'for each key: ' if is_key else ''}{message}{_yaml_reading(item['input'])}"
    return f"{place}: {message}"


_TEXT_WANTED = ("string_type", "literal_error", "enum")
NO_TEXT = "an unquoted yes, no, on, off, true or false is a truth value in YAML; put it in quotes"


def _yaml_reading(value: Any) -> str:
    """What YAML makes of a value without quotes where a text is wanted; empty where that is not the fault."""
    if isinstance(value, bool):
        return f": {NO_TEXT}"
    if isinstance(value, int | float):
        return ": an unquoted number is no text in YAML; put it in quotes"
    if isinstance(value, date):
        return ": an unquoted date is no text in YAML; put it in quotes"
    return ": nothing stands there; write a text, or remove the key" if value is None else ""


def _line(node: yaml.Node, place: tuple[int | str, ...]) -> int:
    """Line in which `place` stands, or the innermost of its parts that is in the document."""
    line = node.start_mark.line + 1
    for part in place:
        if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            line = node.start_mark.line + 1
        elif isinstance(node, yaml.MappingNode):
            found = next(((key, value) for key, value in node.value if key.value == str(part)), None)
            if found is None:
                break
            line, node = found[0].start_mark.line + 1, found[1]
    return line


def validate_file(path: Path | str, content: dict[str, Any], model: type[M]) -> M:
    """`content`, read from the YAML file `path`, as an instance of `model`; faults with file and line."""
    return validate(content, model, str(path), Path(path).read_text(encoding="utf-8"))


def line_of(path: Path | str, *place: int | str) -> int:
    """Line of the YAML file `path` in which `place`, keys and positions from its top, stands; 1 where it does not."""
    document = yaml.compose(Path(path).read_text(encoding="utf-8"), yaml.SafeLoader)
    return 1 if document is None else _line(document, place)


def load_config(path: Path | str, model: type[M]) -> M:
    """Read and validate a YAML config. Raises UserError that names the file and each faulty key with its line."""
    return validate_file(path, read_yaml(path), model)
