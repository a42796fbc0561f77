"""What an evaluator model replied: the list of its judgements, whatever stands around it.

Reasoning, prose and code fences are passed over; keys may be in any case. A reply that breaks off gives the values that
it holds whole. Used for class sizes and factuality labels alike.
"""

from collections.abc import Collection, Iterator

from eval.create.answers import answer_text
from eval.create.literal import Bare, Map, Node, Seq, Text, read_documents
from inference.prompts.text import sound

Value = Text | Bare | None
"""One judgement as it was written; None where there should be one."""


def read_values(reply: str, keys: Collection[str]) -> tuple[Value, ...]:
    """The judgements in order: of a list of values, a list of objects, one object, or one quoted value.

    Args:
        reply: The evaluator's text.
        keys: Names, in lower case, under which an object holds its judgement or the list of them.
    """
    text = answer_text(sound(reply)).text
    read = [(document, tuple(_values(document, keys))) for document in read_documents(text).values]
    if any(values for _, values in read):
        return max(enumerate(read), key=lambda numbered: _rank(*numbered))[1][1]
    quoted = text.strip()
    return (Text(quoted[1:-1]),) if len(quoted) > 2 and quoted[0] == quoted[-1] and quoted[0] in "\"'" else ()


def _rank(place: int, read: tuple[Seq | Map, tuple[Value, ...]]) -> tuple[bool, bool, int, int]:
    """Which list or object of a reply is meant: those with objects come first, then the longest, then the last."""
    document, values = read
    keyed = isinstance(document, Map) or any(isinstance(item, Map) for item in document.items)
    return any(value is not None for value in values), keyed, len(values), place


def _values(node: Seq | Map, keys: Collection[str]) -> Iterator[Value]:
    if isinstance(node, Seq):
        for item in node.items:
            value = _value(item, keys)
            if value is not None or not isinstance(item, Map) or item.complete:
                yield value
        return
    under = _under(node, keys)
    if isinstance(under, Seq):
        yield from _values(under, keys)
    elif under is not None:
        yield _value(under, keys)
    else:
        inner = [value for _, value in node.pairs if isinstance(value, (Seq, Map))]
        if inner:
            yield from _values(inner[-1], keys)
        elif node.complete:
            yield None


def _value(node: Node, keys: Collection[str]) -> Value:
    if isinstance(node, Map):
        under = _under(node, keys)
        return under if isinstance(under, (Text, Bare)) else None
    return node if isinstance(node, (Text, Bare)) else None


def _under(node: Map, keys: Collection[str]) -> Node | None:
    return next((value for key, value in node.pairs if key.strip().casefold() in keys), None)
