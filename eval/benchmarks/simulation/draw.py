"""Drawing the properties of simulated responses: ability shows in all steps, luck in each."""

import math
import random
from collections.abc import Callable, Sequence
from typing import Literal

from eval.benchmarks.simulation.decks import Deck, chance, generator, kinship, normal
from eval.benchmarks.simulation.parts import (
    PARAMETERS,
    SECTIONS,
    CriterionPart,
    GridPart,
    ItemPart,
    Kind,
    PlanPart,
    ProblemPart,
    ResponseParts,
)
from eval.benchmarks.simulation.pools import Idea, Objective, ScenarioPool, VoicePool, neighbours

RESPONDENTS = range(1, 21)
"""Numbers of the respondents who are rated in the benchmark; more answer when asked for."""
ITEMS, CRITERIA = 8, 5
ABILITY_SHARE = 0.55
"""Correlation of what a respondent does on one step with the respondent's ability."""

MOST_ERRORS = 6
FAULTS: tuple[Literal["superlative", "objective", "direction", "question"], ...] = (
    "superlative",
    "objective",
    "direction",
    "question",
)

NOVELTIES = (0, 0, 1, 1, 2)
"""About the shares that the scenarios' ideas have, so that none comes much more often than others."""

Skill = Callable[[], float]
"""What a respondent brings to one task, a standard normal number: a new draw at every call."""
Card = tuple[int, Literal["a", "b"]]


class Respondents:
    """Draws the responses to one scenario, respondent after respondent."""

    def __init__(self, seed: int, pool: ScenarioPool, voice: VoicePool) -> None:
        self._seed, self._pool, self._voice = seed, pool, voice
        rng = generator(seed, pool.id, "decks")
        self._ideas = {"problems": self._deck(rng, pool.problems), "devices": self._deck(rng, pool.devices)}
        self._objectives = {
            1: Deck(rng, voice.generic),
            2: Deck(rng, pool.objectives),
            0: Deck(rng, voice.unrelated),
        }
        self._fitting = [Deck(rng, issue.objectives) for issue in pool.issues]
        self._issues = Deck(rng, range(len(pool.issues)))

    @staticmethod
    def _deck(rng: random.Random, ideas: Sequence[Idea]) -> Deck[Card]:
        return Deck(rng, [(number, wording) for number in range(len(ideas)) for wording in ("a", "b")])

    def response(self, number: int) -> ResponseParts:
        """The parts of the response of respondent `number` (from 1)."""
        rng = generator(self._seed, self._pool.id, number)
        ability = normal(generator(self._seed, "respondent", number))

        def skill() -> float:
            return ABILITY_SHARE * ability + math.sqrt(1 - ABILITY_SHARE * ABILITY_SHARE) * normal(rng)

        challenges = self._items(rng, skill, "problems", "")
        problem = self._problem(rng, skill, challenges)
        solutions = self._items(rng, skill, "devices", self._subject(problem.issue))
        criteria = self._criteria(rng, skill, problem)
        return ResponseParts(
            id=f"A{number:02d}_{self._pool.id}",
            scenario=self._pool.id,
            challenges=challenges,
            problem=problem,
            solutions=solutions,
            criteria=criteria,
            grid=_grid(rng, skill(), [n for n, part in enumerate(solutions, 1) if part.kind != "blank"]),
            plan=_plan(rng, skill),
        )

    def _subject(self, issue: int) -> str:
        """What an issue is about, in the words of the scenario."""
        found = self._pool.issues[issue]
        return " ".join([found.object, *found.conditions, *found.purposes, *found.outcomes])

    def _items(
        self, rng: random.Random, skill: Skill, field: Literal["problems", "devices"], subject: str
    ) -> tuple[ItemPart, ...]:
        """The items of a step, as close to `subject` as the ideas that are left allow."""
        ideas = getattr(self._pool, field)
        validity, detail, novelty = (0.74 + 0.16 * skill(), skill(), skill())
        categories = sorted({idea.c for idea in ideas})
        rng.shuffle(categories)
        allowed = set(categories[: grade(rng, skill(), 4, len(categories))])
        parts: list[ItemPart] = []
        for _ in range(ITEMS):
            kind: Kind = "valid" if chance(rng, min(0.97, max(0.2, validity))) else self._fault(rng, field, parts)
            level = NOVELTIES[grade(rng, novelty, 0, len(NOVELTIES) - 1, luck=0.8)]
            parts.append(
                self._item(rng, field, kind, parts, level, grade(rng, detail, 0, 2, luck=0.7), allowed, subject)
            )
        return tuple(parts)

    @staticmethod
    def _fault(rng: random.Random, field: str, parts: Sequence[ItemPart]) -> Kind:
        kinds: list[Kind] = ["perhaps", "why", "blank"]
        if field == "problems":
            kinds.append("solution")
        if any(part.kind == "valid" for part in parts):
            kinds += ["duplicate", "duplicate"]
        return rng.choice(kinds)

    def _item(
        self,
        rng: random.Random,
        field: Literal["problems", "devices"],
        kind: Kind,
        before: Sequence[ItemPart],
        novelty: int,
        elaboration: int,
        allowed: set[str],
        subject: str,
    ) -> ItemPart:
        ideas: Sequence[Idea] = getattr(self._pool, field)
        first = chance(rng, 0.5)
        extras = {"detail": elaboration == 2 or (elaboration == 1 and first)}
        extras["tie"] = elaboration == 2 or (elaboration == 1 and not first)
        if kind == "duplicate":
            other = rng.choice([part for part in before if part.kind == "valid"])
            assert other.idea is not None
            wording: Literal["a", "b"] = "b" if other.wording == "a" else "a"
            self._ideas[field].take((other.idea, wording))
            return other.model_copy(update={"kind": kind, "wording": wording, **extras})
        if kind == "why" and chance(rng, 0.5):
            elsewhere = rng.choice(neighbours(self._pool))
            idea = rng.randrange(len(getattr(elsewhere, field)))
            return ItemPart(kind=kind, idea=idea, stray=elsewhere.id, category="Miscellaneous", **extras)
        if kind != "valid":
            device = self._ideas["devices"].draw()[0] if kind == "solution" else None
            return ItemPart(kind=kind, idea=device, category="Miscellaneous", **extras)
        used = {part.idea for part in before}

        def unused(card: Card) -> bool:
            return card[0] not in used

        def novel(card: Card) -> bool:
            return unused(card) and ideas[card[0]].n == novelty

        # Any idea that nobody has had yet is better than one again: responses of a scenario should differ.
        number, way = self._ideas[field].draw(
            lambda card: novel(card) and ideas[card[0]].c in allowed,
            novel,
            unused,
            merit=lambda card: kinship(subject, getattr(ideas[card[0]], card[1])),
        )
        chosen = ideas[number]
        return ItemPart(kind=kind, idea=number, wording=way, category=chosen.c, novelty=chosen.n, **extras)

    def _problem(self, rng: random.Random, skill: Skill, challenges: Sequence[ItemPart]) -> ProblemPart:
        weight = ("off", "side", "suitable", "central")[grade(rng, skill(), 0, 3)]
        issue = self._issues.draw(lambda number: self._pool.issues[number].weight == weight)
        other = rng.choice([n for n in range(len(self._pool.issues)) if n != issue])
        named = [parameter for parameter in PARAMETERS if chance(rng, min(0.95, max(0.15, 0.7 + 0.2 * skill())))]
        level = grade(rng, skill(), 0, 2)
        if level == 2 and "place" not in named:  # what is sharp names a place
            named = [parameter for parameter in PARAMETERS if parameter in (*named, "place")]
        return ProblemPart(
            challenge=self._nearest(challenges, self._subject(issue)),
            issue=issue,
            other=other,
            condition=grade(rng, skill(), 0, 2),
            wrong=chance(rng, 0.5),
            stem=grade(rng, skill() + 0.4, 0, 3),
            purpose=grade(rng, skill() + 0.3, 0, 3),
            parameters=named,
            scope=("sized", "sharp")[level - 1] if level else rng.choice(("wide", "narrow")),
        )

    def _nearest(self, challenges: Sequence[ItemPart], subject: str) -> int:
        """Number of the challenge that is closest to `subject`; 1 where none is left to refer to."""

        def closeness(part: ItemPart) -> float:
            if part.kind not in ("valid", "duplicate") or part.idea is None:
                return -1.0
            return kinship(subject, getattr(self._pool.problems[part.idea], part.wording))

        return 1 + max(range(len(challenges)), key=lambda at: closeness(challenges[at]))

    def _criteria(self, rng: random.Random, skill: Skill, problem: ProblemPart) -> tuple[CriterionPart, ...]:
        form, fit = skill(), skill()
        parts = []
        for _ in range(CRITERIA):
            fault = "" if chance(rng, min(0.96, max(0.15, 0.68 + 0.2 * form))) else _form_fault(rng)
            relevance = grade(rng, fit, 0, 3, luck=0.7)
            chosen = self._objective(rng, relevance, problem)
            parts.append(CriterionPart(fault=fault, relevance=relevance, verb=chosen.v, object=chosen.o))
        return tuple(parts)

    def _objective(self, rng: random.Random, relevance: int, problem: ProblemPart) -> Objective:
        if relevance == 3:
            return self._fitting[problem.issue].draw()
        # Only what the statement says can be said over again.
        if relevance == 0 and problem.scope in ("sized", "sharp") and chance(rng, 0.5):
            issue = self._pool.issues[problem.issue]
            return Objective(v=issue.verb, o=issue.object)
        return self._objectives[relevance].draw()


def grade(rng: random.Random, skill: float, low: int, high: int, luck: float = 0.5) -> int:
    """A grade in low … high, all about equally likely for an average respondent."""
    position = 0.93 * (skill + luck * normal(rng)) / math.sqrt(1 + luck * luck)
    # Close to the normal distribution function, in operations that every machine rounds alike.
    share = 0.5 + 0.5 * position / math.sqrt(1 + position * position)
    return min(high, low + int(share * (high - low + 1)))


def _form_fault(rng: random.Random) -> Literal["superlative", "objective", "direction", "question"]:
    return rng.choice(FAULTS)


def _grid(rng: random.Random, skill: float, solutions: Sequence[int]) -> GridPart:
    wrong = MOST_ERRORS - grade(rng, skill + 0.6, 0, MOST_ERRORS)
    cells = [("column", number) for number in range(1, CRITERIA + 1)] + [("row", number) for number in solutions]
    chosen = rng.sample(cells, min(wrong, len(cells))) if len(solutions) > 1 else []
    return GridPart(
        columns=sorted(number for kind, number in chosen if kind == "column"),
        rows=sorted(number for kind, number in chosen if kind == "row"),
    )


def _plan(rng: random.Random, skill: Skill) -> PlanPart:
    grades = [grade(rng, skill(), 1, 5) for _ in range(5)]
    answered = rng.sample(SECTIONS, grade(rng, skill(), 0, len(SECTIONS)))
    return PlanPart(
        relevance=grades[0],
        effectiveness=grades[1],
        criteria=grades[2],
        impact=grades[3],
        humaneness=grades[4],
        sections=tuple(section for section in SECTIONS if section in answered),
    )
