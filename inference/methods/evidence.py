"""Evidence that no analyst is asked for: on what a response leaves blank, and what exists already."""

from collections.abc import Iterable, Mapping, Sequence

from inference import prompts
from inference.answers import item_numbers
from inference.items import item_texts
from inference.records import Sample, Score, StepEvidence
from inference.rubric import Rubric, Step
from inference.schemas import NO_CHOICE
from inference.scoring import unscored

Evidence = Mapping[str, Sequence[StepEvidence]]
"""Sample id → evidence by step, that exists already."""
MISSING = "no evidence: none is given on it"
"""Why a score is missing that would be made from given evidence."""


def nothing(step: Step) -> StepEvidence:
    """The evidence on an empty response to `step`."""
    texts = {d.name: NO_CHOICE if d.choices else prompts.NOTHING for d in step.asked}
    if step.items is None:
        return StepEvidence(step=step.name, texts=texts)
    return StepEvidence(step=step.name, items=(texts,) * step.items.count)


def given_evidence(rubric: Rubric, sample: Sample, evidence: Iterable[StepEvidence]) -> list[StepEvidence]:
    """Evidence on `sample` in the form that judges read: steps, items and dimensions of the rubric, in its order.

    Where it has nothing on a step or an item, and the response neither, that is the evidence. A blank text is none, and
    steps without a text are left out.
    """
    parts = {part.step: part for part in evidence}
    arranged = [_arranged(step, sample, parts.get(step.name, StepEvidence(step=step.name))) for step in rubric.answered]
    return [part for part in arranged if part.texts or any(part.items)]


def _arranged(step: Step, sample: Sample, part: StepEvidence) -> StepEvidence:
    blank = nothing(step)
    if step.items is None:
        texts = _texts(step, part.texts)
        if not texts and not sample.responses.get(step.name, "").strip():
            texts = blank.texts
        return part.model_copy(update={"texts": texts, "items": ()})
    responses = item_texts(step, sample)
    rows = [*part.items, *[{}] * len(responses)][: len(responses)]
    items = tuple(
        _texts(step, row) or ({} if response else blank.items[0]) for row, response in zip(rows, responses, strict=True)
    )
    return part.model_copy(update={"texts": {}, "items": items})


def _texts(step: Step, row: Mapping[str, str]) -> dict[str, str]:
    return {d.name: row[d.name] for d in step.asked if row.get(d.name, "").strip()}


def missing_scores(rubric: Rubric, evidence: Sequence[StepEvidence]) -> list[Score]:
    """The scores for which `given_evidence` has no text. Of an item that does not count no other text is needed."""
    parts = {part.step: part for part in evidence}
    missing = []
    for step in rubric.answered:
        part = parts.get(step.name, StepEvidence(step=step.name))
        for item in item_numbers(step):
            row = part.texts if item is None or not part.items else part.items[item - 1]
            if not prompts.says_nothing(step, row):
                missing += [unscored(step.name, d, MISSING, item) for d in step.asked if d.name not in row]
    return missing
