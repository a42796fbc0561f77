"""What the two phases of the decoupled evaluator are shown.

The analyst sees the raw response and what the dimensions mean, but not how they are scored. The judge sees levels and
evidence. Its messages are built from a scenario and `StepEvidence`, which hold no raw response, and no memory.
"""

import json
from collections.abc import Sequence

from inference.prompts.describe import describe, evidence_form, evidence_step_form, scores_form
from inference.prompts.judging import responses, scenario, system, user
from inference.prompts.text import defuse, fence, render
from inference.records import Message, Sample, StepEvidence
from inference.rubric import Rubric, Step

NOTHING = "Nothing is written."
"""Evidence on a response that is empty."""


def analysis_messages(
    rubric: Rubric, sample: Sample, steps: Sequence[Step], memories: Sequence[tuple[Step, str]]
) -> tuple[Message, ...]:
    """Asks for evidence on `steps` (one, or all at once), with the memories of earlier steps."""
    single = len(steps) == 1
    form = json.dumps(evidence_step_form(steps[0])) if single else evidence_form(steps)
    instructions = render(
        "analysis", description=rubric.description, rubric=describe(rubric, steps, levels=False), form=form
    )
    remembered = [f"- {step.name}: {' '.join(defuse(text).split())}" for step, text in memories if text.strip()]
    parts = [scenario(rubric, sample), responses(rubric, sample, steps)]
    if remembered:
        # A model wrote the memories, from untrusted text.
        parts.insert(1, f"Memory of earlier steps:\n{fence(chr(10).join(remembered))}")
    return system(instructions), user("\n\n".join(parts))


def evidence_messages(
    rubric: Rubric, scenario_text: str, evidence: Sequence[StepEvidence], steps: Sequence[Step]
) -> tuple[Message, ...]:
    """Asks for the scores of `steps` on their evidence alone."""
    found = {part.step: part for part in evidence}
    instructions = render(
        "evidence_json",
        description=rubric.description,
        rubric=describe(rubric, steps, choices=False),
        form=scores_form(steps),
    )
    shown = "\n\n".join(f"{_heading(step)}:\n{fence(defuse(evidence_text(step, found[step.name])))}" for step in steps)
    scene = f"The {rubric.scenario_label}:\n{fence(defuse(scenario_text))}"
    return system(instructions), user(f"{scene}\n\n{shown}")


def evidence_text(step: Step, part: StepEvidence) -> str:
    """Evidence on one step as lines, each with the name of its dimension: ``challenge 1 elaboration: …``."""
    return "\n".join(_line(name, text) for name, text in zip(_names(step), _texts(step, part), strict=True))


def evidence_labels(step: Step, part: StepEvidence) -> list[str]:
    """What a judge reads before each text of `part`: its name, before the first one the heading as well.

    Lines without a text belong to the label that follows them.
    """
    labels, before = [], f"{_heading(step)}: "
    for name, text in zip(_names(step), _texts(step, part), strict=True):
        if text is None:
            before += f"{_line(name, text)} "
        else:
            labels.append(before + name)
            before = ""
    return labels


def _heading(step: Step) -> str:
    return f"Evidence on step {step.name}"


def _names(step: Step) -> list[str]:
    if step.items is None:
        return [dimension.name for dimension in step.asked]
    numbers = range(1, step.items.count + 1)
    return [f"{step.items.kind} {number} {dimension.name}" for number in numbers for dimension in step.asked]


def _texts(step: Step, part: StepEvidence) -> list[str | None]:
    """The texts of `part` in the order of `_names`; None where there is none."""
    rows = [part.texts]
    if step.items is not None:
        rows = [part.items[at] if at < len(part.items) else {} for at in range(step.items.count)]
    return [row.get(dimension.name) for row in rows for dimension in step.asked]


def _line(name: str, text: str | None) -> str:
    return f"{name}: {' '.join(text.split()) if text else NOTHING}"
