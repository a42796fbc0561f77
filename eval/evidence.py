"""What evidence is worth as text: whether it has the form asked for, and whether it stands on the response.

A quotation counts where it has three to seven words that stand in the response in a row; words are compared without
case and punctuation, as in `inference.copies`. Names are capitalised words inside a sentence, numbers are digits.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from inference.copies import LONGEST, runs
from inference.errors import quoted
from inference.items import item_texts
from inference.prompts import describe
from inference.records import Sample, StepEvidence
from inference.rubric import Rubric, Step
from inference.schemas import NO_CHOICE

SHORTEST = 3
"""Words of a quotation."""
_QUOTATION = re.compile(r'"([^"]*)"|“([^”]*)”|„([^“”]*)[“”]|«([^»]*)»')
_JOINT = re.compile(r"(?<=\w)['’-](?=\w)")
"""Inside a word, which it does not divide here: ``dog's`` and ``up-to-date`` are one word each."""
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_NAME = re.compile(r"(?<![\w'’-])[A-Z][^\W\d_]*(?:['’-][^\W\d_]+)*")
_NUMBER = re.compile(r"(?<![\w.])\d+(?:[.,]\d+)*")
_OPENS = re.compile(r"(?:^|[.!?:;…\"“„«(\[|–—-])\s*$")


def quotations(text: str) -> list[str]:
    """The passages of `text` in double quotation marks, in order."""
    return [next(filter(None, match.groups()), "") for match in _QUOTATION.finditer(text)]


def rows(part: StepEvidence) -> tuple[dict[str, str], ...]:
    """The texts by item, or those of the whole step as a single row."""
    return part.items or (part.texts,)


def form_fault(step: Step, row: dict[str, str], no_choice: Sequence[str] = (NO_CHOICE,)) -> str | None:
    """What the evidence on one item, or on a step without items, lacks: a text, or a name that is to be chosen."""
    for dimension in step.asked:
        text = row.get(dimension.name, "")
        if not text.strip():
            return f"nothing on {dimension.name}"
        if dimension.choices and text not in (*dimension.choices, *no_choice):
            return f"{quoted(text)} is none of the names of {dimension.name}"
    unknown = sorted(set(row) - {dimension.name for dimension in step.asked})
    return f"{unknown[0]} is not asked of {step.name}" if unknown else None


def step_fault(step: Step, part: StepEvidence) -> str | None:
    """What is wrong with the evidence on a step as a whole: too few items, too many, or the other form."""
    if step.items is None:
        return "items on a step that has none" if part.items else None
    if part.texts or len(part.items) != step.items.count:
        return f"{len(part.items)} items in place of {step.items.count}"
    return None


def has_quotation(texts: Iterable[str], response: str) -> bool:
    """Whether one of the quotations in `texts` has three to seven words that stand in `response` in a row."""
    said_there = _JOINT.sub("", response)
    for passage in (_JOINT.sub("", passage) for text in texts for passage in quotations(text)):
        for length in range(SHORTEST, LONGEST + 1):
            said = runs(passage, length)
            # The passage has as many words, where it has no longer run.
            if said and not runs(passage, length + 1) and said <= runs(said_there, length):
                return True
    return False


def unfounded(texts: Iterable[str], known: Iterable[str], step: Step, rubric: Rubric) -> list[str]:
    """Names and numbers in `texts` that are in none of the `known` texts (response, scenario, earlier memories).

    Words of the rubric are known, its numbers are not, but for those that only count: ``item 3``, ``step 2``.
    """
    sources = tuple(known)
    words = _words(_rubric_text(rubric)).union(*map(_words, sources))
    numbers = frozenset[str]().union(*map(_numbers, sources))
    counted = "|".join(["item", "step", *([re.escape(step.items.kind)] if step.items else [])])
    found: list[str] = []
    for text in texts:
        plain = re.sub(rf"\b(?:{counted})s? ?\d+", " ", text, flags=re.IGNORECASE)
        found += [number for number in _NUMBER.findall(plain) if number not in numbers]
        for match in _NAME.finditer(plain):
            opens = _OPENS.search(plain[: match.start()])
            if not opens and not set(_pieces(match.group().lower())) & words:
                found.append(match.group())
    return list(dict.fromkeys(found))


def _rubric_text(rubric: Rubric) -> str:
    return "\n".join([describe(rubric), *(choice for _, d in rubric.asked for choice in d.choices)])


# The scenario is the same for many responses, the rubric for all.
@lru_cache(maxsize=64)
def _words(text: str) -> frozenset[str]:
    return frozenset(piece for word in _WORD.findall(text.lower()) for piece in _pieces(word))


@lru_cache(maxsize=64)
def _numbers(text: str) -> frozenset[str]:
    return frozenset(_NUMBER.findall(text))


def _pieces(word: str) -> Sequence[str]:
    """A word and what it is without a genitive: ``orrery's`` is ``orrery``, too."""
    return word, re.sub(r"['’]s$", "", word)


@dataclass(frozen=True)
class Quality:
    """How the evidence on one step, over many responses, does; in items, or steps without items, that have a text."""

    asked: int
    valid: int
    """Of those asked, in the form asked for."""
    quotable: int
    """Of the valid ones, those that need a quotation."""
    grounded: int
    """Of the quotable ones, those with a quotation that stands in the response."""
    founded: int
    """Of the valid ones, those without a name or number that is made up."""


def quality(
    rubric: Rubric,
    samples: Iterable[Sample],
    evidence: Mapping[str, Sequence[StepEvidence]],
    *,
    no_choice: Sequence[str] = (NO_CHOICE,),
    unquoted_steps: Sequence[str] = (),
) -> dict[str, Quality]:
    """Step → quality of the evidence by sample id. A step or an item that lacks evidence counts as not valid."""
    found = {step.name: [0, 0, 0, 0, 0] for step in rubric.answered}
    for sample in samples:
        parts = {part.step: part for part in evidence.get(sample.id, ())}
        memories = [part.memory for part in parts.values()]
        known = [sample.scenario, sample.subject, *sample.responses.values(), *memories]
        for step in rubric.answered:
            for row in _asked_rows(step, sample, parts.get(step.name)):
                valid = form_fault(step, row, no_choice) is None
                said = [row[d.name] for d in step.asked if not d.choices] if valid else []
                quotable = valid and step.name not in unquoted_steps
                marks = (
                    True,
                    valid,
                    quotable,
                    quotable and has_quotation(said, sample.responses[step.name]),
                    valid and not unfounded(said, known, step, rubric),
                )
                found[step.name] = [count + mark for count, mark in zip(found[step.name], marks, strict=True)]
    return {name: Quality(*numbers) for name, numbers in found.items()}


def _asked_rows(step: Step, sample: Sample, part: StepEvidence | None) -> list[dict[str, str]]:
    """The texts on each item, or on the step, that has a response; empty where there is no evidence on it."""
    if not sample.responses.get(step.name, "").strip():
        return []
    if step.items is None:
        return [part.texts if part else {}]
    there = part.items if part else ()
    numbers = [number for number, text in enumerate(item_texts(step, sample)) if text]
    return [there[number] if number < len(there) else {} for number in numbers]
