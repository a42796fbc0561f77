"""Queries built from facts: two members of one class, one of them extended by one outgoing fact.

Of the class of all things that share a relation with something, a pair is drawn; one of the two, the start, is given,
the other, the middle, stays hidden, and a fact that leads on from the middle gives relation and target. Draws are
seeded; a pair that makes no good query is dropped with a reason, and the next one is tried.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import combinations
from typing import NamedTuple

from eval.create.queries import sparql
from eval.create.queries.graph import Graph, Row
from eval.create.queries.records import Query, query_id
from eval.create.queries.settings import BuildConfig, Relation
from inference.errors import UserError

TRIES_PER_QUERY = 25
"""Pairs that are tried for each query that is wanted."""
MOST_CLASSES = 10_000
"""Classes from which is drawn."""


class Entity(NamedTuple):
    iri: str
    label: str


class Hop(NamedTuple):
    """An outgoing fact."""

    relation: Entity
    target: Entity


@dataclass(frozen=True)
class Draft:
    """A query without its question."""

    shared: Entity
    relation: Entity
    start: Entity
    middle: Entity
    hop: Hop
    setting: Relation

    @property
    def path(self) -> tuple[tuple[Entity, Entity, Entity], ...]:
        """The source path."""

        def shares(member: Entity) -> tuple[Entity, Entity, Entity]:
            ends = (self.shared, member) if self.setting.members == "objects" else (member, self.shared)
            return ends[0], self.relation, ends[1]

        return shares(self.start), shares(self.middle), (self.middle, self.hop.relation, self.hop.target)

    def query(self, question: str, phrasing: str) -> Query:
        ids = tuple((head.iri, relation.iri, tail.iri) for head, relation, tail in self.path)
        return Query(
            id=query_id(*(part for triple in ids for part in triple)),
            query=question,
            entity_a=self.start.label,
            rel_b=self.hop.relation.label,
            entity_b=self.hop.target.label,
            description=f"{_local_name(self.shared.iri)}__{_local_name(self.relation.iri)}",
            triples=tuple([part.label for part in triple] for triple in self.path),
            ids=ids,
            phrasing=phrasing,
        )


@dataclass
class Drafts:
    """What was drawn from a graph."""

    kept: list[Draft] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)
    """Reason → pairs: ``no_hop`` (from the middle nothing leads on to something new), ``start_satisfies`` (the start
    has the target's relation itself), ``huge_class``, ``repeated``."""


def draft_queries(graph: Graph, config: BuildConfig) -> Drafts:
    """Draw queries from `graph`, relation by relation, class by class.

    Raises UserError for a relation without a label in the graph, a graph that doesn't answer, and where nothing comes
    of it.
    """
    facts, drafts = _Facts(graph, config), Drafts()
    for setting in config.relations:
        relation = facts.relation(setting.relation)
        for shared in _classes(facts, setting, config):
            _draw(facts, config, setting, relation, shared, drafts)
    if not drafts.kept:
        reasons = ", ".join(f"{reason} {count}" for reason, count in drafts.dropped.items()) or "no pair was found"
        raise UserError(
            f"{graph.name}: no query could be built ({reasons}); name other relations or classes, or raise the limits"
        )
    return drafts


class _Facts:
    """A graph's answers, each asked for once."""

    def __init__(self, graph: Graph, config: BuildConfig) -> None:
        self._graph, self._config = graph, config
        self._known: dict[str, list[Row]] = {}
        self._blocked = frozenset(config.blocked)

    def relation(self, iri: str) -> Entity:
        return self._named(iri, sparql.relation_label, "relation")

    def item(self, iri: str) -> Entity:
        return self._named(iri, sparql.label, "class")

    def classes(self, setting: Relation) -> list[str]:
        query = sparql.classes(
            setting.relation,
            objects=setting.members == "objects",
            language=self._config.language,
            least=2,
            most=self._config.max_members,
            limit=MOST_CLASSES,
        )
        return [row["item"] for row in self._ask(query)]

    def members(self, setting: Relation, shared: str) -> list[Entity]:
        config, objects = self._config, setting.members == "objects"
        query = sparql.members(
            setting.relation, shared, objects=objects, language=config.language, limit=config.max_members
        )
        # An item with two labels counts once.
        return [Entity(iri, label) for iri, label in {row["item"]: row["label"] for row in self._ask(query)}.items()]

    def hops(self, item: Entity) -> list[Hop]:
        """What leads on from `item` by relations that are not blocked."""
        rows = self._ask(sparql.hops(item.iri, language=self._config.language, limit=self._config.max_hops))
        every = {
            (row["relation"], row["item"]): Hop(Entity(row["relation"], row["name"]), Entity(row["item"], row["label"]))
            for row in rows
            if row["relation"] not in self._blocked
        }
        return list(every.values())

    def is_huge(self, hop: Hop) -> bool:
        most = self._config.max_target_class
        return len(self._ask(sparql.sharing(hop.relation.iri, hop.target.iri, limit=most + 1))) > most

    def _named(self, iri: str, query: Callable[..., str], kind: str) -> Entity:
        rows = self._ask(query(iri, language=self._config.language))
        if not rows:
            raise UserError(
                f"{self._graph.name}: the {kind} {iri} has no label in the language {self._config.language}; "
                "correct its IRI, or choose another language"
            )
        return Entity(iri, rows[0]["label"])

    def _ask(self, query: str) -> list[Row]:
        if query not in self._known:
            self._known[query] = self._graph.select(query)
        return self._known[query]


def _classes(facts: _Facts, setting: Relation, config: BuildConfig) -> list[Entity]:
    """The classes that a relation names, or as many as are to be drawn."""
    names = list(setting.classes)
    if not names:
        every = facts.classes(setting)
        chosen = random.Random(f"{config.seed} {setting.relation}")
        names = sorted(chosen.sample(every, min(config.classes_per_relation, len(every))))
    return [facts.item(name) for name in names]


def _draw(
    facts: _Facts, config: BuildConfig, setting: Relation, relation: Entity, shared: Entity, drafts: Drafts
) -> None:
    """Add up to `per_class` drafts of one class."""
    chance = random.Random(f"{config.seed} {relation.iri} {shared.iri}")
    wanted = len(drafts.kept) + config.per_class
    for start, middle in _pairs(facts.members(setting, shared.iri), chance, TRIES_PER_QUERY * config.per_class):
        known = {start.iri, middle.iri, shared.iri}
        hops = [hop for hop in facts.hops(middle) if hop.target.iri not in known]
        if not hops:
            drafts.dropped["no_hop"] += 1
            continue
        draft = Draft(shared, relation, start, middle, chance.choice(hops), setting)
        if reason := _fault(facts, draft, drafts.kept):
            drafts.dropped[reason] += 1
            continue
        drafts.kept.append(draft)
        if len(drafts.kept) == wanted:
            return


def _pairs(members: list[Entity], chance: random.Random, count: int) -> Iterator[tuple[Entity, Entity]]:
    """Up to `count` different pairs in a drawn order, each the way round that was drawn."""
    every = list(combinations(members, 2))
    for first, second in chance.sample(every, min(count, len(every))):
        yield (first, second) if chance.random() < 0.5 else (second, first)


def _fault(facts: _Facts, draft: Draft, kept: list[Draft]) -> str | None:
    hop = draft.hop
    pairs = {(known.relation.iri, known.target.iri) for known in facts.hops(draft.start)}
    if (hop.relation.iri, hop.target.iri) in pairs:
        return "start_satisfies"
    if any((other.start, other.hop) == (draft.start, hop) for other in kept):
        return "repeated"
    return "huge_class" if facts.is_huge(hop) else None


def _local_name(iri: str) -> str:
    return iri.rstrip("/#").replace("#", "/").rsplit("/", 1)[-1]
