"""The only prompt builder of the project: what is trained, served and evaluated is rendered here.

Two styles exist. `chat_messages` renders the instructions for a prompted judge (templates beside this file, constant
part first so that a prefix cache can reuse it). `compact_prompt` is the plain text on which a learned judge is trained:
the rubric is in the weights, so only the scenario and the response are left, and the next token is the score.

Responses are untrusted. They are inserted in one pass (a placeholder inside a response stays text), into a fence
longer than any run of backticks inside, and chat-template control tokens in them are broken up by `defuse`.
"""

import hashlib
import json
import re
from functools import cache
from importlib.resources import files
from typing import Any

from inference.records import Message, Sample
from inference.rubric import Dimension, Rubric, Step, band

_PLACEHOLDER = re.compile(r"\{\{ *(\w+) *\}\}")
# Control tokens of the common chat templates. A space after the first character makes plain text of each.
_CONTROL = re.compile(
    r"<(?=\|[^|<>\s]{1,40}\|>|[｜|][^<>]{1,40}[｜|]>|/?s>|/?think>|(?:start|end)_of_turn>|/?(?:bos|eos|pad|unk)>)"
    r"|\[(?=/?INST\])",
    re.IGNORECASE,
)


def defuse(text: str) -> str:
    """`text` without any chat-template control token: ``<|im_end|>`` becomes ``< |im_end|>``."""
    return _CONTROL.sub(lambda match: match.group() + " ", text)


def fence(text: str) -> str:
    """`text` between lines of backticks longer than any run of backticks inside it."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    ticks = "`" * max(3, longest + 1)
    return f"{ticks}\n{text}\n{ticks}"


@cache
def _template(name: str) -> str:
    return files(__package__).joinpath(f"{name}.txt").read_text(encoding="utf-8")


def template_digest() -> str:
    """First 12 hex digits of the SHA-256 over all templates; recorded with every run."""
    folder = files(__package__)
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".txt"))
    return hashlib.sha256("\0".join(name + _template(name[:-4]) for name in names).encode()).hexdigest()[:12]


def render(name: str, values: dict[str, str]) -> str:
    """Template `name` with its ``{{ placeholders }}`` filled in one pass. Raises KeyError for a missing value."""
    return _PLACEHOLDER.sub(lambda match: values[match.group(1)], _template(name)).strip()


def describe(rubric: Rubric) -> str:
    """Tasks, dimensions, ranges and levels of a rubric, for a judge's instructions."""
    return "\n\n".join(_describe_step(step, len(rubric.answered) > 1) for step in rubric.answered)


def _describe_step(step: Step, named: bool) -> str:
    title = f"Step {step.name}: " if named else "Task: "
    lines = [title + step.task]
    if step.items is not None:
        lines.append(
            f"Each {step.items.kind} is rated on its own, {step.items.count} in all; one that is missing is blank."
        )
    return "\n".join([*lines, *(_describe_dimension(step, dimension) for dimension in step.asked)])


def _describe_dimension(step: Step, dimension: Dimension) -> str:
    low, high = dimension.range
    values = "one of the names" if dimension.choices else f"{low} to {high}"
    name = f"{dimension.key} = {dimension.title}" if dimension.key else dimension.name
    lines = [f"- {name} ({values}): {dimension.description}"]
    lines += [
        f"  {level} = {meaning}"
        for level, meaning in sorted(dimension.levels.items(), key=lambda pair: band(pair[0]).start)
    ]
    if dimension.choices:
        lines.append("  " + "; ".join(dimension.choices))
    if step.items is not None and dimension.name == step.items.valid:
        lines += [f"  not counted, {reason}: {meaning}" for reason, meaning in step.items.invalid.items()]
    return "\n".join(lines)


def chat_messages(rubric: Rubric, sample: Sample, *, answer: str) -> tuple[Message, ...]:
    """Messages of a prompted judge on the raw response (method `direct`).

    `answer` is ``"number"`` (rubrics with one dimension: the answer is the score alone) or ``"json"``.
    """
    system = render(
        f"direct_{answer}",
        {"description": rubric.description, "rubric": describe(rubric), "form": _answer_form(rubric)},
    )
    user = render(
        "direct_user",
        {
            "scenario_label": rubric.scenario_label,
            "scenario": fence(defuse(sample.scenario)),
            "response": _responses(rubric, sample),
        },
    )
    return Message(role="system", content=system), Message(role="user", content=user)


def _responses(rubric: Rubric, sample: Sample) -> str:
    named = len(rubric.answered) > 1
    parts = []
    for step in rubric.answered:
        title = f"Response to step {step.name}:" if named else "Response:"
        parts.append(f"{title}\n{fence(defuse(sample.responses.get(step.name, '')))}")
    return "\n\n".join(parts)


def _answer_form(rubric: Rubric) -> str:
    """The JSON object of the answer with its ranges; for one dimension the range alone."""
    if rubric.single:
        low, high = rubric.asked[0][1].range
        return f"{low} to {high}"
    return json.dumps({step.name: _step_form(step) for step in rubric.answered})


def _step_form(step: Step) -> Any:
    answer = {d.short: "name" if d.choices else f"{d.range[0]}-{d.range[1]}" for d in step.asked}
    return answer if step.items is None else [answer, f"... {step.items.count} entries in all"]


def compact_prompt(rubric: Rubric, step: Step, dimension: Dimension, sample: Sample) -> str:
    """Plain text of a learned judge; the text that follows is the score string of `dimension`.

    Line breaks and runs of blanks in the response become one space, so that the layout can't be forged.
    """
    scenario = " ".join(defuse(sample.scenario).split())
    response = " ".join(defuse(sample.responses.get(step.name, "")).split())
    question = "" if rubric.single else f"{step.name} {dimension.name}\n"
    return f"{scenario}: {response}\n{question}"
