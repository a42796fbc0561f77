"""What a query is."""

import hashlib
from typing import Any

from inference.config import StrictModel


class Query(StrictModel):
    """Connect `entity_a` with something that stands in the relation `rel_b` to `entity_b`."""

    id: str
    query: str
    """The question, in words."""
    entity_a: str
    rel_b: str
    entity_b: str
    description: str = ""
    """``<class>__<relation>`` behind the query; the relation groups queries in tables."""
    triples: tuple[Any, ...] = ()
    """The source path, which proves that one connection exists. Never used for scoring."""
    ids: tuple[tuple[str, str, str], ...] = ()
    """The same path in IRIs, for queries that were built here."""
    phrasing: str = ""
    """Of built queries: ``template`` or ``model``."""


def query_id(*parts: str) -> str:
    """``q`` and eight hex digits that follow from `parts`."""
    return "q" + hashlib.sha256("\0".join(parts).encode("utf-8", "backslashreplace")).hexdigest()[:8]
