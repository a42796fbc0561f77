"""Methods: each is one coroutine, sample → answers, over `Asks` (engines behind the store and the retries)."""

from inference.methods.base import Answers, Ask, Asks, Method, Settings
from inference.methods.compact import compact, compact_creaeval
from inference.methods.creaeval import creaeval
from inference.methods.direct import direct, tat
from inference.methods.stepwise import cot, got, tot

__all__ = ["METHODS", "Answers", "Ask", "Asks", "Method", "Settings"]

METHODS: dict[str, Method] = {
    "direct": direct,
    "cot": cot,
    "tot": tot,
    "got": got,
    "tat": tat,
    "creaeval": creaeval,
    "compact": compact,
    "compact_creaeval": compact_creaeval,
}
"""Name in a config → method. `compact` and `compact_creaeval` are `direct` and `creaeval` on plain prompts of learned
models."""
