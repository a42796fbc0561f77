"""Methods: each is one coroutine, sample → answers, over `Asks` (engines behind the store and the retries)."""

from inference.methods.base import Answers, Ask, Asks, Method, Settings
from inference.methods.creaeval import creaeval
from inference.methods.direct import compact, direct, tat
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
}
"""Name in a config → method. `compact` is `direct` on the plain prompt of a learned judge."""
