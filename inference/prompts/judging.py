"""What chat judges of raw responses are shown: `direct`, step by step, in a table, and to choose a proposal."""

from collections.abc import Sequence

from inference.prompts.describe import describe, noted_form, scores_form, table_form
from inference.prompts.text import defuse, fence, render
from inference.records import Message, Sample
from inference.rubric import Rubric, Step


def system(content: str) -> Message:
    return Message(role="system", content=content)


def user(content: str) -> Message:
    return Message(role="user", content=content)


def assistant(content: str) -> Message:
    """What a model said, without control tokens that it may have echoed."""
    return Message(role="assistant", content=defuse(content) or "(empty)")


def chat_messages(rubric: Rubric, sample: Sample, steps: Sequence[Step] = ()) -> tuple[Message, ...]:
    """Method `direct`: the rubric and the raw response to `steps`, by default all. One number is asked for, or JSON."""
    steps = steps or rubric.answered
    if rubric.single:
        low, high = rubric.asked[0][1].range
        name, form = "direct_number", f"{low} to {high}"
    else:
        name, form = "direct_json", scores_form(steps)
    instructions = render(name, description=rubric.description, rubric=describe(rubric, steps), form=form)
    return system(instructions), user(f"{scenario(rubric, sample)}\n\n{responses(rubric, sample, steps)}")


def table_messages(rubric: Rubric, sample: Sample) -> tuple[Message, ...]:
    """Method `tat`: as `direct`, but evidence is written beside the scores, row by row."""
    instructions = render("table", description=rubric.description, rubric=describe(rubric), form=table_form(rubric))
    return system(instructions), user(f"{scenario(rubric, sample)}\n\n{responses(rubric, sample)}")


def steps_opening(rubric: Rubric) -> tuple[Message, ...]:
    """Instructions of a conversation that goes through the response step by step; `step_message` follows."""
    return (system(render("steps", description=rubric.description, rubric=describe(rubric))),)


def step_message(rubric: Rubric, sample: Sample, step: Step) -> Message:
    """The next step of such a conversation; the first one brings the scenario."""
    parts = [responses(rubric, sample, [step]), render("step_form", form=noted_form(step))]
    return user("\n\n".join([scenario(rubric, sample), *parts] if step is rubric.answered[0] else parts))


def refine_message(step: Step) -> Message:
    """Asks a scorer to go over its own proposal."""
    return user(render("refine", form=noted_form(step)))


def choice_messages(rubric: Rubric, sample: Sample, step: Step, proposals: Sequence[str]) -> tuple[Message, ...]:
    """Asks which of the `proposals` on a step is right: one of their numbers, from 1."""
    shown = "\n\n".join(f"Proposal {number}:\n{fence(defuse(text))}" for number, text in enumerate(proposals, 1))
    instructions = render("choose", description=rubric.description, rubric=describe(rubric, [step]))
    return (
        system(instructions),
        user(f"{scenario(rubric, sample)}\n\n{responses(rubric, sample, [step])}\n\n{shown}"),
    )


def reconsider_message() -> Message:
    """Asks a selector to think its choice over."""
    return user(render("reconsider"))


def complaint_message(complaint: str) -> Message:
    """Says why an answer could not be used. The complaint quotes the answer, which may echo control tokens."""
    return user(
        f"That could not be used: {defuse(complaint)}. Answer again, in the form asked for and with nothing else."
    )


def scenario(rubric: Rubric, sample: Sample) -> str:
    return f"The {rubric.scenario_label}:\n{fence(defuse(sample.scenario))}"


def responses(rubric: Rubric, sample: Sample, steps: Sequence[Step] = ()) -> str:
    """The raw responses to `steps`, by default all, each fenced."""
    named = len(rubric.answered) > 1
    parts = []
    for step in steps or rubric.answered:
        title = f"Response to step {step.name}:" if named else "Response:"
        parts.append(f"{title}\n{fence(defuse(sample.responses.get(step.name, '')))}")
    return "\n\n".join(parts)
