"""What a model that is to find paths is told: rules first, so that a prefix cache can reuse them, then the query."""

import hashlib
from functools import cache
from importlib.resources import files
from typing import Literal

from eval.create.queries.records import Query
from inference.prompts import assistant, defuse, fence
from inference.prompts.text import fill
from inference.records import Message

Strategy = Literal["base", "creative", "iterate", "resample", "verbalized"]
TEMPLATES = ("again", "base", "creative", "form_paths", "form_verbalized", "guessing")


def opening(query: Query, strategy: Strategy, *, encourage_guessing: bool) -> tuple[Message, ...]:
    """The first turn."""
    extra = ["creative"] * (strategy == "creative") + ["guessing"] * encourage_guessing
    form = "form_verbalized" if strategy == "verbalized" else "form_paths"
    rules = fill(_template("base"), extra="\n".join(map(_template, extra)), form=_template(form))
    # Without an extra line its place would leave a gap.
    return Message(role="system", content=rules.replace("\n\n\n", "\n\n")), Message(role="user", content=shown(query))


def second_turn(first: tuple[Message, ...], answer: str, query: Query) -> tuple[Message, ...]:
    """The same conversation, with the model's `answer` (without its thinking) and a demand for more."""
    demand = fill(_template("again"), query=shown(query))
    return *first, assistant(answer.strip()), Message(role="user", content=demand)


def shown(query: Query) -> str:
    """The query as data, fenced."""
    lines = {
        "Question": query.query,
        "Start": query.entity_a,
        "Given relation": query.rel_b,
        "Target": query.entity_b,
    }
    return fence("\n".join(f"{name}: {' '.join(defuse(text).split())}" for name, text in lines.items()))


def templates_digest() -> str:
    """First 12 hex digits of the SHA-256 over all templates; recorded with every run."""
    return hashlib.sha256("\0".join(name + _template(name) for name in TEMPLATES).encode()).hexdigest()[:12]


@cache
def _template(name: str) -> str:
    return files(__package__).joinpath("templates", f"{name}.txt").read_text(encoding="utf-8").strip()
