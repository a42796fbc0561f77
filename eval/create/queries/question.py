"""The question of a query: by a plain template, or worded by a model that is told what to keep hidden."""

from importlib.resources import files

from eval.create.normal import normalised
from eval.create.queries.build import Draft
from inference.engines.base import EngineError
from inference.methods.base import Ask, ask_readable
from inference.prompts import defuse, fence
from inference.prompts.text import fill
from inference.records import Call, Completion, Message

LONGEST = 400
"""Characters of a question."""
TOKENS = 1024
"""Of an answer, thinking included, where the model's settings don't say."""


def template_question(draft: Draft, about: str = "") -> str:
    """The question without a model; `about`: what the start is, in a few words."""
    start = f"{draft.start.label} ({about})" if about else draft.start.label
    hop = draft.hop
    return (
        f"In what different ways is {start} connected with {draft.setting.middle} "
        f"“{hop.relation.label}” is {hop.target.label}?"
    )


async def worded_question(draft: Draft, about: tuple[str, str], ask: Ask, tokens: int | None) -> str | None:
    """The question as a model words it; None where two answers break the rules, or none comes.

    Args:
        about: what the start and the middle are, in a few words, where that is known.
        tokens: longest answer.
    """
    call = Call(messages=rewrite_messages(draft, *about), max_tokens=tokens or TOKENS)

    def read(completion: Completion) -> tuple[str, str | None]:
        question = _stripped(completion.text)
        return question, complaint(draft, question)

    try:
        question, _ = await ask_readable(ask, call, read)
    except EngineError:
        return None
    return None if complaint(draft, question) else question


def rewrite_messages(draft: Draft, about_start: str, about_middle: str) -> tuple[Message, ...]:
    """Rules, then the names, fenced."""
    template = files(__package__).joinpath("rewrite.txt").read_text(encoding="utf-8")
    hop = draft.hop
    lines = {
        "Start": draft.start.label,
        "What it is": about_start,
        "Hidden": draft.middle.label,
        "What the hidden one is": about_middle or draft.setting.middle,
        "Relation": hop.relation.label,
        "Target": hop.target.label,
    }
    names = "\n".join(f"{name}: {' '.join(defuse(text).split())}" for name, text in lines.items() if text)
    return Message(role="system", content=fill(template)), Message(role="user", content=fence(names))


def complaint(draft: Draft, question: str) -> str | None:
    """What is wrong with a question; None where nothing is."""
    text = normalised(question)
    if not text:
        return "it holds no question"
    if "\n" in question or len(question) > LONGEST:
        return f"it has more than one line, or more than {LONGEST} characters"
    for name in (draft.start.label, draft.hop.target.label):
        if normalised(name) not in text:
            return f"the name {name!r} is missing"
    # A middle whose name is part of another one, as Lennon of Lennon Wall, cannot be told from it.
    known = normalised(f"{draft.start.label} {draft.hop.target.label} {draft.hop.relation.label}")
    hidden = normalised(draft.middle.label)
    return "it gives the hidden one away" if hidden in text and hidden not in known else None


def _stripped(text: str) -> str:
    """What follows the thinking, without quotation marks around all of it."""
    found = text.rsplit("</think>", 1)[-1].strip()
    return found[1:-1].strip() if len(found) > 1 and (found[0], found[-1]) in (('"', '"'), ("“", "”")) else found
