"""The oracle analyst: the evidence that the properties of a simulated response imply.

It quotes three to seven words of the response, describes what the text does and what is missing, and never uses a
number or the words of a level, so that a judge has to weigh it. Both sides of a split share this analyst.
"""

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from eval.benchmarks.simulation.parts import PARAMETERS, SECTIONS, ItemPart, ProblemPart, ResponseParts
from eval.benchmarks.simulation.pools import scenario_pool
from eval.benchmarks.simulation.writer import Written
from inference.config import parse_yaml
from inference.records import StepEvidence

FEWEST, MOST = 3, 6
"""Words of a quotation."""
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")
_WORD = re.compile(r"\S+")


@cache
def phrases() -> Mapping[str, Any]:
    """The analyst's phrases by property."""
    found: Mapping[str, Any] = parse_yaml(files(__package__).joinpath("analyst.yaml").read_text(encoding="utf-8"))
    return found


def quotation(text: str, said: str) -> str:
    """The first words of `said` as they stand in `text`: three to six without digits or quotation marks."""
    at = text.lower().find(said.lower())
    passage = text[at : at + len(said)] if at >= 0 else said
    words = [match for match in _WORD.finditer(passage)]
    for start in range(len(words)):
        end = start
        while end < len(words) and end - start < MOST and not re.search(r'[\d"“”]', words[end].group()):
            end += 1
        if end - start >= FEWEST:
            return passage[words[start].start() : words[end - 1].end()].strip(".,;:!?—–- ")
    return " ".join(passage.split()[:MOST]).strip('.,;:!? "')


class Analyst:
    """Writes the evidence of one response."""

    def __init__(self, parts: ResponseParts, written: Written, rng: random.Random) -> None:
        self._parts, self._written, self._rng = parts, written, rng

    def evidence(self) -> tuple[StepEvidence, ...]:
        """Evidence for all six steps, with the memory of each."""
        parts = self._parts
        return (
            StepEvidence(
                step="step1", items=tuple(self._items("step1", parts.challenges)), memory=self._named("step1")
            ),
            StepEvidence(step="step2", texts=self._problem(parts.problem), memory=self._task()),
            StepEvidence(step="step3", items=tuple(self._items("step3", parts.solutions)), memory=self._named("step3")),
            StepEvidence(step="step4", items=tuple(self._criteria()), memory=self._named("step4")),
            StepEvidence(step="step5", texts={"correctly_used": self._grid()}, memory=self._best()),
            StepEvidence(step="step6", texts=self._plan(), memory="The plan has been read."),
        )

    def _pick(self, *path: str, **given: str) -> str:
        node: Any = phrases()
        for key in path:
            node = node[key]
        template = node if isinstance(node, str) else self._rng.choice(node)
        return re.sub(r"\{(\w+)\}", lambda slot: given[slot[1]], template)

    def _quote(self, place: str) -> str:
        """Words of the text in which the property at `place` shows."""
        said = self._written.said.get(place)
        if said is None:
            return ""
        step, _, item = place.partition(".")
        texts = self._written.steps[step]
        return quotation(texts[int(item) - 1] if item.isdigit() else texts[0], said)

    # -- steps with items

    def _items(self, step: str, items: Sequence[ItemPart]) -> Iterator[dict[str, str]]:
        for number, part in enumerate(items, 1):
            yield self._item(step, number, part, items)

    def _item(self, step: str, number: int, part: ItemPart, items: Sequence[ItemPart]) -> dict[str, str]:
        quote = self._quote(f"{step}.{number}")
        if part.kind == "valid" and step == "step3":
            first = self._pick("solution_valid", quote=quote)
        else:
            earlier = next(
                (n for n, other in enumerate(items, 1) if other.kind == "valid" and other.idea == part.idea), number
            )
            first = self._pick("item", part.kind, quote=quote, earlier=self._quote(f"{step}.{earlier}"))
        names = ("category", "elaboration", "originality")
        if part.kind != "valid":
            return {"fluency": first, **{name: self._pick("moot") for name in names}}
        kind = "challenge" if step == "step1" else "solution"
        given = "both" if part.elaboration == 2 else "detail" if part.detail else "tie" if part.tie else "none"
        texts = (
            part.category,
            self._pick(f"{kind}_elaboration", given),
            self._pick("originality", str(part.novelty)),
        )
        return {"fluency": first, **dict(zip(names, texts, strict=True))}

    def _criteria(self) -> Iterator[dict[str, str]]:
        issue = scenario_pool(self._parts.scenario).issues[self._parts.problem.issue]
        for number, part in enumerate(self._parts.criteria, 1):
            fit = str(part.relevance)
            if not part.relevance:
                fit = "repeated" if part.object == issue.object else "unrelated"
            yield {
                "correctly_written": self._pick("form", part.fault, quote=self._quote(f"step4.{number}")),
                "relevance": self._pick("fit", fit),
            }

    # -- single steps

    def _problem(self, part: ProblemPart) -> dict[str, str]:
        condition = ("absent", "wrong" if part.wrong else "untied", "right")[part.condition]
        named: list[str] = [name for name in PARAMETERS if name in part.parameters]
        missing: list[str] = [name for name in PARAMETERS if name not in part.parameters]
        lacking = [
            self._pick("lacking", name)
            for name, there in (
                ("stem", part.stem == 0),
                ("stem_many", part.stem in (1, 2)),
                ("purpose", part.purpose == 0),
                ("purpose_many", part.purpose == 1),
            )
            if there
        ]
        weight = scenario_pool(self._parts.scenario).issues[part.issue].weight
        return {
            "condition_phrase": self._pick("condition", condition, quote=self._quote("step2.condition_phrase")),
            "stem_kvp": self._pick("stem", str(part.stem), quote=self._quote("step2.stem_kvp")),
            "purpose": self._pick("purpose", str(part.purpose), quote=self._quote("step2.purpose")),
            "fs_parameters": "; ".join(
                f"{what}: {listed(names)}" for what, names in (("named", named), ("missing", missing)) if names
            ),
            "focus": f"{self._pick('scope', part.scope)}; {listed(lacking) or self._pick('lacking', 'nothing')}",
            "adequacy": f"{self._pick('weight', weight)}, {self._pick('ground', str(part.condition))}",
        }

    def _grid(self) -> str:
        grid = self._parts.grid
        rows = [number for number, text in enumerate(self._written.steps["step3"], 1) if text]
        if not rows:
            return self._pick("grid", "none")
        found = []
        if grid.columns:
            found.append(self._pick("grid", "columns", which=listed([ORDINALS[number - 1] for number in grid.columns])))
        if grid.rows:
            found.append(
                self._pick("grid", "rows", which=listed([ORDINALS[rows.index(number)] for number in grid.rows]))
            )
        return "; ".join(found) or self._pick("grid", "right")

    def _plan(self) -> dict[str, str]:
        plan = self._parts.plan
        answered = [self._pick("questions", name) for name in SECTIONS if name in plan.sections]
        open_ = [self._pick("questions", name) for name in SECTIONS if name not in plan.sections]
        told = self._pick("questions", "nothing")
        if answered:
            told = f'tells {listed(answered)} ("{self._quote("step6.development")}")'
        return {
            "relevance": self._pick("plan_relevance", str(plan.relevance), quote=self._quote("step6.relevance")),
            "effectiveness": self._pick("reach", str(plan.effectiveness), quote=self._quote("step6.effectiveness")),
            "criteria": self._pick("reflected", str(plan.criteria), quote=self._quote("step6.criteria")),
            "impact": self._pick("effect", str(plan.impact), quote=self._quote("step6.impact")),
            "humaneness": self._pick("care", str(plan.humaneness), quote=self._quote("step6.humaneness")),
            "development": told + (f"; leaves open {listed(open_)}" if open_ else ""),
        }

    # -- memories

    def _named(self, step: str) -> str:
        quotes = [self._quote(f"{step}.{number}") for number in range(1, 9) if f"{step}.{number}" in self._written.said]
        return f"Named so far: {'; '.join(quotes[:4])}." if quotes else "Nothing was named."

    def _task(self) -> str:
        aim = self._quote("step2.purpose")
        return f"Problem: {self._quote('step2.stem_kvp')}" + (f", to {aim}." if aim else ", no aim given.")

    def _best(self) -> str:
        best = self._written.steps["step5"][0].rpartition("The solution is: ")[2]
        return f"Ranked first: {' '.join(best.split()[:14])}" if best.strip() else "Nothing was ranked."


def listed(names: Sequence[str]) -> str:
    """``a, b and c``."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]])) if names else ""
