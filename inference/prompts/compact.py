"""Plain prompts of learned judges and analysts, without chat template, and the answers that analysts are taught.

The rubric is in the weights: a prompt names the scenario in one line and holds one item, or one step, or the evidence
on one dimension. Training rows and served calls are made of the functions here, so both ask the same.

Text of responses and models becomes one line, so that the layout can't be forged.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from inference.copies import LONGEST
from inference.items import item_texts
from inference.prompts.evidence import NOTHING
from inference.prompts.text import defuse
from inference.records import Sample, Score, StepEvidence
from inference.rubric import Dimension, Rubric, Step

SEPARATOR = " | "
"""Between the texts of an analyst's answer."""
SO_FAR = 5
"""Quotations of earlier items of the step that an analyst is reminded of."""
REMEMBERED, REMEMBERED_WORDS = 4, 22
"""Most quotations and words in the memory of a step: about 40 tokens."""
_QUOTED = re.compile(r'"([^"]+)"')


def one_line(text: str) -> str:
    """`text` with control tokens broken up, and line breaks and runs of blanks as one space."""
    return " ".join(defuse(text).split())


def subject(sample: Sample) -> str:
    """The scenario in one line."""
    return one_line(sample.subject or sample.scenario)


# -- judges


def compact_prompt(rubric: Rubric, step: Step, dimension: Dimension, sample: Sample, item: int | None = None) -> str:
    """Prompt of a judge of raw responses; the text that follows is the score string of `dimension`.

    With `item` (from 1) it holds that item alone. The text comes first and the names of all dimensions up to the asked
    one after it, a line each, so that the prompt of each dimension begins with that of the one before: what they share
    is computed once. A rubric with one dimension needs no names, and has all in one line.
    """
    text = one_line(sample.responses.get(step.name, "") if item is None else item_texts(step, sample)[item - 1])
    if rubric.single:
        return f"{subject(sample)}: {text}\n"
    about = (step.name, item is not None)
    names = [one.dimension.name for one in rubric.learned if (one.step.name, one.per_item) == about]
    asked = names[: names.index(dimension.name) + 1]
    return "".join(f"{line}\n" for line in (subject(sample), _place(step, item), text, *asked))


def evidence_prompt(step: Step, dimension: Dimension, text: str) -> str:
    """Prompt of a judge of evidence: what an analyst wrote on `dimension`, of the step or of one item."""
    return f"{step.name} {dimension.name}\n{one_line(text) or NOTHING}\n"


@dataclass(frozen=True)
class Question:
    """One score that a learned judge is asked for."""

    learned: int
    """Index into `Rubric.learned`."""
    item: int | None
    prompt: str


def raw_questions(rubric: Rubric, sample: Sample) -> list[Question]:
    """What is asked about a raw response; `raw_known` is not."""
    found = []
    for index, (step, dimension, per_item) in enumerate(rubric.learned):
        for item in _asked_items(step, sample) if per_item else _whole(step, sample):
            found.append(Question(index, item, compact_prompt(rubric, step, dimension, sample, item)))
    return found


def _asked_items(step: Step, sample: Sample) -> list[int]:
    texts = item_texts(step, sample)
    # Without a dimension that says whether an item counts, its other scores are needed, blank or not.
    return [number for number, text in enumerate(texts, 1) if text or not (step.items and step.items.valid)]


def _whole(step: Step, sample: Sample) -> list[None]:
    return [None] if step.items is None or _asked_items(step, sample) else []


def raw_known(rubric: Rubric, sample: Sample) -> list[Score]:
    """Scores that need no model: a blank item does not count."""
    return [
        _invalid(step, number)
        for step in rubric.answered
        if step.items and step.items.valid
        for number, text in enumerate(item_texts(step, sample), 1)
        if not text
    ]


def evidence_questions(rubric: Rubric, evidence: Iterable[StepEvidence]) -> list[Question]:
    """What is asked about evidence, of each dimension and item that has a text; `evidence_known` is not."""
    parts = {part.step: part for part in evidence}
    found = []
    for index, (step, dimension, _) in enumerate(rubric.learned):
        for item, row in _rows(step, parts.get(step.name)):
            text = row.get(dimension.name)
            if text is not None and not says_nothing(step, row):
                found.append(Question(index, item, evidence_prompt(step, dimension, text)))
    return found


def evidence_known(rubric: Rubric, evidence: Iterable[StepEvidence]) -> list[Score]:
    """Scores that need no model: items on which nothing is written don't count, and choices stand in the evidence.

    A text under a dimension with choices that is none of their names leaves it unscored.
    """
    parts = {part.step: part for part in evidence}
    found = []
    for step in rubric.answered:
        for item, row in _rows(step, parts.get(step.name)):
            if item is not None and says_nothing(step, row):
                found.append(_invalid(step, item))
                continue
            found += [_choice(step, d, item, row[d.name]) for d in step.asked if d.choices and d.name in row]
    return found


def _rows(step: Step, part: StepEvidence | None) -> list[tuple[int | None, Mapping[str, str]]]:
    if part is None:
        return []
    if step.items is None:
        return [(None, part.texts)]
    return [*enumerate(part.items[: step.items.count], 1)]


def says_nothing(step: Step, row: Mapping[str, str]) -> bool:
    """Whether the evidence on an item is that nothing is written, so that it does not count."""
    return bool(step.items and step.items.valid and row.get(step.items.valid) == NOTHING)


def _invalid(step: Step, item: int) -> Score:
    assert step.items is not None
    return Score(step=step.name, dimension=step.items.valid, item=item, value=0.0, top=0.0)


def _choice(step: Step, dimension: Dimension, item: int | None, text: str) -> Score:
    name = " ".join(text.split())
    if name in dimension.choices:
        return Score(step=step.name, dimension=dimension.name, item=item, choice=name)
    reason = f"the evidence names no {dimension.title}"
    return Score(step=step.name, dimension=dimension.name, item=item, unscored=reason)


# -- analysts


def analyst_prompt(
    sample: Sample, step: Step, item: int | None = None, memory: str = "", so_far: Sequence[str] = ()
) -> str:
    """Prompt of an analyst; the text that follows is `evidence_line` on the step, or on one of its items (from 1).

    `memory`: of an earlier step (`remembered`). `so_far`: the quotations in the evidence on earlier items of the step.
    """
    text = sample.responses.get(step.name, "") if item is None else item_texts(step, sample)[item - 1]
    quoted = "; ".join(f'"{quotation}"' for quotation in so_far[-SO_FAR:])
    lines = [
        subject(sample),
        one_line(memory),
        f"so far: {one_line(quoted)}" if quoted else "",
        _place(step, item),
        one_line(text),
    ]
    # The last line stays, empty or not.
    return "".join(f"{line}\n" for at, line in enumerate(lines) if line or at == len(lines) - 1)


def evidence_line(step: Step, texts: Mapping[str, str]) -> str:
    """What an analyst answers: the texts on the dimensions that are asked, in their order.

    `answers.read_evidence_line` reads it. Raises KeyError where one is missing.
    """
    return SEPARATOR.join(one_line(texts[d.name]).replace("|", "/") or NOTHING for d in step.asked)


def quotations(texts: Iterable[str]) -> list[str]:
    """What stands between quotation marks in pieces of evidence, each once, with at most seven words."""
    found = [" ".join(match.split()[:LONGEST]) for text in texts for match in _QUOTED.findall(text)]
    return list(dict.fromkeys(filter(None, found)))


def item_quotations(step: Step, rows: Iterable[Mapping[str, str]]) -> list[str]:
    """The quotations in the evidence on items, in their order: the `so_far` of the next item."""
    return quotations(row[d.name] for row in rows for d in step.asked if d.name in row)


def step_memory(step: Step, part: StepEvidence) -> str:
    """What is remembered of a step, from its evidence: its first quotations. Empty where it has none."""
    kept: list[str] = []
    for quotation in item_quotations(step, [part.texts, *part.items])[:REMEMBERED]:
        if sum(len(text.split()) for text in [*kept, quotation]) <= REMEMBERED_WORDS:
            kept.append(quotation)
    if not kept:
        return ""
    return f"{'Named so far' if step.items else f'From {step.name}'}: {'; '.join(kept)}."


def remembered(rubric: Rubric, step: Step, memories: Mapping[str, str]) -> str:
    """The memory, of those by step, that the analysis of `step` gets: of the latest earlier step without items, which
    sums up what came before it, else of the latest one. Empty where no earlier step has any.
    """
    earlier = rubric.answered[: rubric.answered.index(step)]
    there = [one for one in reversed(earlier) if memories.get(one.name)]
    chosen = next((one for one in there if one.items is None), there[0] if there else None)
    return memories[chosen.name] if chosen else ""


def _place(step: Step, item: int | None) -> str:
    return step.name if item is None or step.items is None else f"{step.name} {step.items.kind} {item}"
