"""Methods: each is one coroutine, sample → scores, over an `Ask` (an engine behind the store and the retries)."""

from inference.methods.base import Ask, Method, Sampling
from inference.methods.direct import compact, direct

__all__ = ["METHODS", "Ask", "Method", "Sampling"]

METHODS: dict[str, Method] = {"direct": direct, "compact": compact}
"""Name in a config → method. `compact` is `direct` on the plain prompt of a learned judge."""
