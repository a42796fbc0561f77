"""Reading YAML files into pydantic models, with ``${NAME:-default}`` expansion and one-sentence errors."""

import os
import re
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from inference.errors import UserError

_VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")


class StrictModel(BaseModel):
    """Base of all records and settings: unknown keys are errors, instances don't change."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())


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
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; check the path (it is relative to {Path.cwd()})") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read as UTF-8 text ({error})") from None
    except yaml.YAMLError as error:
        raise UserError(f"{path}: not valid YAML: {' '.join(str(error).split())}") from None
    if not isinstance(content, dict):
        raise UserError(f"{path}: needs keys and values at the top level, found {type(content).__name__}")
    expanded: dict[str, Any] = _expand(content)
    return expanded


def _expand(node: Any) -> Any:
    if isinstance(node, str):
        return expand_variables(node)
    if isinstance(node, dict):
        return {key: _expand(value) for key, value in node.items()}
    if isinstance(node, list):
        return [_expand(value) for value in node]
    return node


def validate(content: dict[str, Any], model: type[M], where: str) -> M:
    """`content` as an instance of `model`; every fault with its place in one UserError."""
    try:
        return model.model_validate(content)
    except ValidationError as error:
        faults = "; ".join(_fault(item) for item in error.errors())
        raise UserError(f"{where}: {faults}") from None


def _fault(item: Any) -> str:
    place = ".".join(str(part) for part in item["loc"]) or "top level"
    message = str(item["msg"]).removeprefix("Value error, ")
    if item["type"] == "extra_forbidden":
        message = "unknown key, remove it or correct its spelling"
    return f"{place}: {message}"


def load_config(path: Path | str, model: type[M]) -> M:
    """Read and validate a YAML config. Raises UserError that names the file and each faulty key."""
    return validate(read_yaml(path), model, str(path))
