"""The text of a simulated response: phrases of the scenario put into the frames of its voice."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from eval.benchmarks.simulation.decks import Deck, chance, generator, kinship, normal
from eval.benchmarks.simulation.parts import CriterionPart, ItemPart, ProblemPart, ResponseParts
from eval.benchmarks.simulation.pools import Issue, Objective, ScenarioPool, VoicePool, scenario_pool

SLOT = re.compile(r"\{(\w+)\}")
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
YEARS_AHEAD = 7
HEADERS = (("Solution ID", "Criterion {}", "Total Score"), ("Solution", "C{}", "Total"), ("No.", "Crit. {}", "Sum"))
BEST = (
    "The solution with the highest total score is: {}.",
    "Highest total: solution {}.",
    "Solution {} comes out on top.",
    "By total score the first place goes to solution {}.",
)
"""Ways to lay out the ranking: respondents differ in them."""
MERIT = 2.0
"""By how much more a solution that counts is liked than another, in units of the luck on each criterion."""
FILLER_SHARE = 0.55
"""Of the places for sentences that say nothing."""
PLAN_WORDS, PLAN_SPREAD = 500, 70
"""Mean and standard deviation of the length to which a plan is padded, whatever it says."""


@dataclass(frozen=True)
class Written:
    """A response as text."""

    steps: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Step name → its texts: one per item in steps 1, 3 and 4, else a single one."""
    said: dict[str, str] = field(default_factory=dict)
    """Where in the text a property shows: ``step1.2`` (an item), ``step2.purpose`` → words of the text."""


class Writer:
    """Writes the responses to one scenario. Every phrase is used before any comes again."""

    def __init__(self, seed: int, pool: ScenarioPool, voice: VoicePool) -> None:
        self._pool, self._voice = pool, voice
        self._rng = generator(seed, pool.id, "writer")
        self._decks: dict[str, Deck[Any]] = {}
        self._said: dict[str, str] = {}

    def response(self, parts: ResponseParts) -> Written:
        """The next response, whose properties are `parts`."""
        self._said = {}
        challenges = [self._challenge(part, f"step1.{number}") for number, part in enumerate(parts.challenges, 1)]
        kvp, purpose = self._problem_phrases(parts.problem)
        problem = self._problem(parts.problem, kvp, purpose)
        solutions = [
            self._solution(part, parts.problem.issue, f"step3.{number}")
            for number, part in enumerate(parts.solutions, 1)
        ]
        criteria = [self._criterion(part, f"step4.{number}") for number, part in enumerate(parts.criteria, 1)]
        grid, best = self._grid(parts, solutions)
        plan = self._plan(parts, best, {"kvp": kvp, "purpose": purpose})
        steps = {
            "step1": numbered(challenges),
            "step2": (problem,),
            "step3": numbered(solutions),
            "step4": numbered(criteria),
            "step5": (grid,),
            "step6": (plan,),
        }
        return Written(steps, self._said)

    def _say(self, place: str, words: str) -> str:
        """`words`, remembered as where a property shows."""
        self._said.setdefault(place, words)
        return words

    # -- slots

    def _deal(self, name: str, cards: Sequence[Any], near: str = "") -> Any:
        """The next card of the deck `name`; of the next few the one that is closest to the text `near`."""
        if name not in self._decks:
            self._decks[name] = Deck(self._rng, cards)
        return self._decks[name].draw(merit=(lambda card: kinship(near, str(card))) if near else None)

    def _fill(self, name: str, **given: str) -> str:
        """The next template of a field of the voice, its slots filled."""
        return sentence(self._filled(self._deal(name, getattr(self._voice, name)), given))

    def _graded(self, name: str, grade: int) -> str:
        return sentence(self._filled(self._deal(f"{name}.{grade}", getattr(self._voice, name)[grade - 1]), {}))

    def _filled(self, template: str, given: Mapping[str, str]) -> str:
        years = sorted(self._slot("year") for slot in SLOT.findall(template) if slot == "year")

        def value(slot: re.Match[str]) -> str:
            return years.pop(0) if slot[1] == "year" else given.get(slot[1]) or self._slot(slot[1])

        return SLOT.sub(value, template)

    def _near(self, name: str, text: str) -> str:
        """The next phrase of the scenario that speaks of what `text` does."""
        return str(self._deal(name, getattr(self._pool, name), near=text))

    def _slot(self, name: str) -> str:
        numbers: dict[str, Callable[[], str]] = {
            "n": lambda: str(self._rng.randint(2, 40)),
            "big": lambda: f"{self._rng.randint(10, 900) * 10:,}",
            "percent": lambda: str(self._rng.randint(1, 19) * 5),
            "days": lambda: str(self._rng.randint(3, 90)),
            "month": lambda: self._rng.choice(MONTHS),
            "year": lambda: str(self._pool.year + self._rng.randint(0, YEARS_AHEAD)),
            "theme": lambda: f"“{self._pool.theme}”",
        }
        if name in numbers:
            return numbers[name]()
        plural = {"cite": "cites", "stake": "stakes"}.get(name, f"{name}s")
        return str(self._deal(plural, getattr(self._pool, plural)))

    # -- steps

    def _challenge(self, part: ItemPart, place: str) -> str:
        if part.kind in ("valid", "duplicate"):
            assert part.idea is not None
            problem = self._say(place, getattr(self._pool.problems[part.idea], part.wording))
            if not part.elaboration:
                return self._joined([self._fill("thin", problem=problem)], fillers=2)
            more = [self._fill("whys", stake=self._near("stakes", problem))] if part.detail else []
            more += [self._fill("ties", cite=self._near("cites", problem))] if part.tie else []
            self._rng.shuffle(more)
            return self._joined([self._fill("openers", problem=problem), *more], fillers=2 - part.elaboration)
        if part.kind == "solution":
            assert part.idea is not None
            device = self._say(place, self._pool.devices[part.idea].a)
            return self._joined([self._fill("instead", device=device)], fillers=1)
        if part.stray and part.idea is not None:
            problem = self._say(place, getattr(scenario_pool(part.stray).problems[part.idea], part.wording))
            return self._joined([self._fill("openers", problem=problem)], fillers=2)
        fields = {"perhaps": "vague_challenges", "why": "stray_challenges"}
        return self._joined([self._say(place, self._fill(fields[part.kind]))], fillers=2) if part.kind in fields else ""

    def _solution(self, part: ItemPart, issue: int, place: str) -> str:
        if part.kind in ("valid", "duplicate"):
            assert part.idea is not None
            device = self._say(place, getattr(self._pool.devices[part.idea], part.wording))
            if not part.elaboration:
                return self._joined([self._fill("thin_solutions", device=device)], fillers=4)
            parts = (
                [self._fill("specifics", device=device), self._fill("hows")]
                if part.detail
                else [sentence(f"{device}.")]
            )
            if part.tie:
                outcome = self._deal(f"outcomes.{issue}", self._pool.issues[issue].outcomes, near=device)
                parts.append(self._fill("aims", outcome=outcome))
            return self._joined(parts, fillers=4 - len(parts))
        if part.stray and part.idea is not None:
            device = self._say(place, getattr(scenario_pool(part.stray).devices[part.idea], part.wording))
            return self._joined([self._fill("specifics", device=device)], fillers=3)
        fields = {"perhaps": "vague_solutions", "why": "stray_solutions"}
        return self._joined([self._say(place, self._fill(fields[part.kind]))], fillers=4) if part.kind in fields else ""

    def _joined(self, sentences: Sequence[str], fillers: int) -> str:
        """With up to `fillers` sentences that say nothing, so that length tells little."""
        extra = [self._fill("fillers") for _ in range(fillers) if chance(self._rng, FILLER_SHARE)]
        return " ".join([*sentences, *extra])

    def _problem_phrases(self, part: ProblemPart) -> tuple[str, str]:
        """Key verb phrase and purpose as the response has them; the plan comes back to them."""
        issue = self._pool.issues[part.issue]
        subject = issue.object
        if part.scope == "wide":
            subject = self._deal("wide", self._pool.wide)
        elif part.scope == "narrow":
            subject = issue.narrow
        kvp = f"{issue.verb} {subject}"
        number = part.other if part.purpose == 2 else part.issue
        return kvp, self._deal(f"purposes.{number}", self._pool.issues[number].purposes)

    def _problem(self, part: ProblemPart, kvp: str, purpose: str) -> str:
        issue = self._pool.issues[part.issue]
        subject = kvp.removeprefix(f"{issue.verb} ")
        phrases = {
            0: subject,
            1: f"{issue.verb} and {issue.against} {subject}",
            2: f"{kvp}, {issue.also[0]} and {issue.also[1]}",
            3: kvp,
        }
        phrase = self._say("step2.stem_kvp", phrases[part.stem])
        text = self._stem(phrase) if part.stem else f"what about {phrase}"
        if part.scope == "sharp":
            text += f" for {self._slot('group')} {self._slot('place')}"
        if part.purpose == 1:
            other = next(other for other in issue.purposes if other != purpose)
            text += f" to {self._say('step2.purpose', purpose)} and to {other}"
        elif part.purpose:
            text += f" {self._rng.choice(('to', 'in order to', 'so as to'))} {self._say('step2.purpose', purpose)}"
        if part.condition:
            text = self._given(part, issue) + text
        return self._with_parameters(part, text)

    def _stem(self, kvp: str) -> str:
        return self._filled(self._deal("stems", self._voice.stems), {"kvp": kvp})

    def _given(self, part: ProblemPart, issue: Issue) -> str:
        source = "false" if part.wrong else f"issue {part.other}"
        facts_of = self._pool.false_facts if part.wrong else self._pool.issues[part.other].conditions
        if part.condition == 2:
            source, facts_of = f"issue {part.issue}", issue.conditions
        fact = self._say("step2.condition_phrase", self._deal(f"facts.{source}", facts_of))
        return self._filled(self._deal("given", self._voice.given), {"condition": fact})

    def _with_parameters(self, part: ProblemPart, text: str) -> str:
        lines = []
        if "time" in part.parameters and chance(self._rng, 0.4):
            text = f"in {self._pool.year}, {text[0].lower()}{text[1:]}"
        elif "time" in part.parameters:
            lines.append(f"Time: {self._pool.year}")
        if "place" in part.parameters:
            lines.append(f"Location: {self._pool.place}")
        if "theme" in part.parameters:
            lines.append(f"Theme: {self._pool.theme}")
        text = self._joined([f"Challenge ID: {part.challenge}. {sentence(text)}?"], fillers=3)
        return "\n".join([text, *lines])

    def _criterion(self, part: CriterionPart, place: str) -> str:
        noun, most = self._rng.choice(self._voice.nouns), self._deal("superlatives", self._voice.superlatives)
        aim = f"{part.verb} {part.object}"
        self._say(place, f"affect {part.object}" if part.fault == "direction" else aim)
        if part.fault == "question":
            return f"The {noun} should {most} {aim}."
        if part.fault == "superlative":
            return f"Which {noun} will {aim}?"
        if part.fault == "direction":
            return f"Which {noun} will {most} affect {part.object}?"
        if part.fault == "objective":
            second = self._second(part.relevance)
            return f"Which {noun} will {most} {aim} and also {second.v} {second.o}?"
        return f"Which {noun} will {most} {aim}?"

    def _second(self, relevance: int) -> Objective:
        """Another objective, as near to the problem as the first, so that the criterion stays as relevant as it is."""
        cards = {0: self._voice.unrelated, 1: self._voice.generic}.get(relevance, self._pool.objectives)
        chosen: Objective = self._deal(f"second.{min(relevance, 2)}", cards)
        return chosen

    def _grid(self, parts: ResponseParts, solutions: Sequence[str]) -> tuple[str, str]:
        """The ranking as text, and the solution it puts first."""
        rows = [number for number, text in enumerate(solutions, 1) if text]
        if not rows:
            return "No solution was left to be ranked.", ""
        merits = [MERIT * (parts.solutions[number - 1].kind == "valid") for number in rows]
        columns = [self._ranks(merits, number in parts.grid.columns) for number in range(1, len(parts.criteria) + 1)]
        totals = [sum(column[at] for column in columns) for at in range(len(rows))]
        totals = [
            total + self._rng.choice((-3, -2, -1, 1, 2, 3)) if number in parts.grid.rows else total
            for number, total in zip(rows, totals, strict=True)
        ]
        first, name, last = self._deal("headers", HEADERS)
        names = [name.format(number) for number in range(1, len(columns) + 1)]
        lines = [" | ".join([first, *names, last])]
        for at, number in enumerate(rows):
            lines.append(" | ".join(str(cell) for cell in (number, *(column[at] for column in columns), totals[at])))
        best = max(range(len(rows)), key=lambda at: (totals[at], -at))
        winner = self._deal("best", BEST).format(rows[best])
        solution = solutions[rows[best] - 1]
        return "\n".join(
            [*lines, "", f"{winner} The solution is: {solution}"]
        ), f"{winner}\nThe solution is: {solution}"

    def _ranks(self, merits: Sequence[float], faulty: bool) -> list[int]:
        """Ranks from 1, the highest for the best; by merit with luck. A faulty column holds one of them twice."""
        judged = [merit + normal(self._rng) for merit in merits]
        ranks = [sorted(judged).index(value) + 1 for value in judged]
        if faulty:
            first, second = self._rng.sample(range(len(ranks)), 2)
            ranks[first] = ranks[second]
        return ranks

    # -- the plan

    def _plan(self, parts: ResponseParts, best: str, problem: Mapping[str, str]) -> str:
        plan = parts.plan
        ties = {
            5: ("tie_kvp", "tie_purpose", "tie_group"),
            4: ("tie_kvp", "tie_purpose"),
            3: ("tie_purpose", "tie_theme"),
            2: ("tie_theme", "tie_theme"),
            1: ("tie_none", "tie_none"),
        }
        device = self._winner(parts, best)
        recalled = [sentence(f"{device}.")] if device else []
        sections = [
            ("closure", [*recalled, *(self._tie_to(problem, name) for name in ties[plan.relevance])]),
            ("effectiveness", [self._say("step6.effectiveness", self._graded("reach", plan.effectiveness))]),
            ("care", [self._say("step6.humaneness", self._graded("care", plan.humaneness)) for _ in range(2)]),
            ("impact", [self._say("step6.impact", self._graded("effect", plan.impact))]),
        ]
        if plan.criteria > 1:
            reflected = self._reflected(plan.criteria, parts.criteria)
            sections.append(("criteria", [self._say("step6.criteria", text) for text in reflected]))
        sections += [
            (name, [self._say("step6.development", self._fill(name)), self._fill(name)]) for name in plan.sections
        ]
        first, rest = sections[0], sections[1:]
        self._rng.shuffle(rest)
        text = self._laid_out([first, *rest])
        remarks: list[str] = []
        wanted = PLAN_WORDS + PLAN_SPREAD * normal(self._rng)
        while len((best + text + " ".join(remarks)).split()) < wanted:
            remarks.append(self._fill("padding" if len(remarks) % 2 else "fillers"))
        if remarks:
            text = self._laid_out([first, *rest, ("remarks", remarks)])
        return f"{best}\n\nAction Plan:\n{text}".strip()

    def _tie_to(self, problem: Mapping[str, str], name: str) -> str:
        return self._say("step6.relevance", self._fill(name, **problem))

    def _winner(self, parts: ResponseParts, best: str) -> str:
        """The idea of the solution that the plan carries out; empty where it is none of the scenario's."""
        for part in parts.solutions:
            if part.kind in ("valid", "duplicate") and part.idea is not None:
                device = str(getattr(self._pool.devices[part.idea], part.wording))
                if device.lower() in best.lower():
                    return device
        return ""

    def _reflected(self, grade: int, criteria: Sequence[CriterionPart]) -> list[str]:
        """Sentences on the criteria: vague ones for grades 2 and 3, three clear ones for 4, all for 5."""
        if grade <= 3:
            return [self._fill("criterion_vague") for _ in range(grade - 1)]
        chosen = list(criteria) if grade == 5 else self._rng.sample(list(criteria), 3)
        return [self._fill("criterion_clear", objective=f"{part.verb} {part.object}") for part in chosen]

    def _laid_out(self, sections: Sequence[tuple[str, Sequence[str]]]) -> str:
        return "\n\n".join(
            f"{number}. {self._voice.headings[name]}\n" + "\n".join(f"   • {text}" for text in sentences)
            for number, (name, sentences) in enumerate(sections, 1)
        )


def numbered(texts: Sequence[str]) -> tuple[str, ...]:
    """``1. …``, as respondents number their items; a blank item stays empty."""
    return tuple(f"{number}. {text}" if text else "" for number, text in enumerate(texts, 1))


def sentence(text: str) -> str:
    """`text` with a capital letter at its beginning."""
    return text[:1].upper() + text[1:]
