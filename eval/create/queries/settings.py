"""``python -m eval create queries build``: its settings."""

import re
from typing import Any, Literal

from pydantic import Field, model_validator

from eval.create.queries.sparql import IRI
from inference.config import StrictModel, Whole
from inference.judges import Budget, ModelConfig

_CURIE = re.compile(r"([A-Za-z][\w-]*):([\w.-]+)")
Iri = Field(pattern=f"^{IRI}$")


class Relation(StrictModel):
    """A relation whose classes give pairs of entities."""

    relation: str = Iri
    """The direct property, such as ``wdt:P166``."""
    members: Literal["subjects", "objects"] = "subjects"
    """Which end of the facts the pair stands at: subjects that share an object (two winners of an award), or objects
    of one subject (two actors of a film)."""
    classes: tuple[str, ...] = ()
    """What the pair shares. Default: drawn from everything with enough members; a large endpoint needs names."""
    middle: str = Field(default="something for which", min_length=1)
    """What the template calls the entity between: ``someone for whom``."""


class BuildConfig(StrictModel):
    """What queries are built from. IRIs may be shortened by `prefixes`."""

    prefixes: dict[str, str] = {}
    relations: tuple[Relation, ...] = Field(min_length=1)
    language: str = Field(default="en", pattern=r"^[a-z]{2,3}(-[A-Za-z0-9]+)*$")
    seed: Whole = Field(default=0, ge=0)
    """Same facts, same settings, same seed: same queries."""
    per_class: Whole = Field(default=2, ge=1)
    """Queries of each relation and class, at most."""
    classes_per_relation: Whole = Field(default=5, ge=1)
    """Classes that are drawn where a relation names none."""
    max_members: Whole = Field(default=500, ge=2)
    """Members of a class that are looked at; classes with more are not drawn."""
    max_hops: Whole = Field(default=500, ge=1)
    """Outgoing facts of an entity that are looked at."""
    max_target_class: Whole = Field(default=1000, ge=1)
    """A target that more things than these lead to by the same relation is too easy."""
    blocked: tuple[str, ...] = ()
    """Relations that never lead to the target: what everything has, such as its kind, sex, native language."""
    rewrite: ModelConfig | None = None
    """The model that words the questions. Default: a plain template."""
    budget: Budget | None = None

    @model_validator(mode="before")
    @classmethod
    def _expand(cls, value: Any) -> Any:
        """Shortened IRIs, written out."""
        if not isinstance(value, dict) or not isinstance(prefixes := value.get("prefixes", {}), dict):
            return value

        def long(text: Any) -> Any:
            match = _CURIE.fullmatch(text) if isinstance(text, str) else None
            return f"{prefixes[match[1]]}{match[2]}" if match and match[1] in prefixes else text

        def listed(items: Any) -> Any:
            return [long(item) for item in items] if isinstance(items, list) else items

        def relation(item: Any) -> Any:
            if not isinstance(item, dict):
                return item
            return {**item, "relation": long(item.get("relation")), "classes": listed(item.get("classes", []))}

        found = {**value, "blocked": listed(value.get("blocked", []))}
        if isinstance(value.get("relations"), list):
            found["relations"] = [relation(item) for item in value["relations"]]
        return found

    @model_validator(mode="after")
    def _are_iris(self) -> "BuildConfig":
        named = [*self.blocked, *(name for relation in self.relations for name in relation.classes)]
        wrong = [name for name in named if not re.fullmatch(IRI, name)]
        if wrong:
            raise ValueError(f"{wrong[0]!r} is no http(s) IRI; write it out, or give its prefix under `prefixes`")
        return self
