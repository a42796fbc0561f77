"""The SPARQL that building asks, one text for an endpoint and a local store alike.

Facts stand as in Wikidata: ``item direct-property item``, labels as ``rdfs:label`` with a language, and the label of a
relation at the property whose ``wikibase:directClaim`` it is. Results are ordered, so that equal data gives equal rows.
"""

import re

IRI = r"https?://[^\s<>\"{}|\\^`]+"
_PREFIXES = """\
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
PREFIX schema: <http://schema.org/>
PREFIX wikibase: <http://wikiba.se/ontology#>
"""


def iri(text: str) -> str:
    """`text` as a term. Raises ValueError for what is no IRI: it could carry on the query."""
    if not re.fullmatch(IRI, text):
        raise ValueError(f"{text!r} is no http(s) IRI")
    return f"<{text}>"


def classes(relation: str, *, objects: bool, language: str, least: int, most: int, limit: int) -> str:
    """?item, with a label: what `least` to `most` others share by `relation`; with `objects` those are its objects."""
    fact = f"?item {iri(relation)} ?member" if objects else f"?member {iri(relation)} ?item"
    return f"""{_PREFIXES}SELECT ?item WHERE {{ {fact} . {_labelled("?item", "?label", language)} }}
GROUP BY ?item HAVING (COUNT(DISTINCT ?member) >= {least} && COUNT(DISTINCT ?member) <= {most})
ORDER BY ?item LIMIT {limit}"""


def members(relation: str, shared: str, *, objects: bool, language: str, limit: int) -> str:
    """?item ?label: the members of the class of all ``?item relation shared``, or ``shared relation ?item``."""
    fact = f"{iri(shared)} {iri(relation)} ?item" if objects else f"?item {iri(relation)} {iri(shared)}"
    return f"""{_PREFIXES}SELECT DISTINCT ?item ?label WHERE {{ {fact} . {_labelled("?item", "?label", language)} }}
ORDER BY ?item ?label LIMIT {limit}"""


def hops(item: str, *, language: str, limit: int) -> str:
    """?relation ?name ?item ?label: the facts that lead from `item` to something with a label."""
    return f"""{_PREFIXES}SELECT DISTINCT ?relation ?name ?item ?label WHERE {{
  {iri(item)} ?relation ?item . ?property wikibase:directClaim ?relation .
  {_labelled("?property", "?name", language)} {_labelled("?item", "?label", language)}
}} ORDER BY ?relation ?item ?name ?label LIMIT {limit}"""


def sharing(relation: str, item: str, *, limit: int) -> str:
    """?item: up to `limit` things that stand in `relation` to `item`."""
    return f"SELECT DISTINCT ?item WHERE {{ ?item {iri(relation)} {iri(item)} }} LIMIT {limit}"


def label(item: str, *, language: str) -> str:
    """?label of an item."""
    return f"{_PREFIXES}SELECT ?label WHERE {{ {_labelled(iri(item), '?label', language)} }} ORDER BY ?label LIMIT 1"


def relation_label(relation: str, *, language: str) -> str:
    """?label of a relation."""
    return f"""{_PREFIXES}SELECT ?label WHERE {{ ?property wikibase:directClaim {iri(relation)} .
  {_labelled("?property", "?label", language)} }} ORDER BY ?label LIMIT 1"""


def description(item: str, *, language: str) -> str:
    """?label: what an item is, in a few words."""
    return f"""{_PREFIXES}SELECT ?label WHERE {{ {iri(item)} schema:description ?label .
  FILTER(LANG(?label) = "{language}") }} ORDER BY ?label LIMIT 1"""


def _labelled(item: str, name: str, language: str) -> str:
    return f'{item} rdfs:label {name} . FILTER(LANG({name}) = "{language}")'
