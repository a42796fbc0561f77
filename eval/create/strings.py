"""A path as the string that is embedded."""

from eval.create.records import AnyPath
from inference.prompts.text import sound


def path_string(path: AnyPath) -> str:
    """The way to the target, in lower case: all triples but the final one, which every path of a query shares.

    The first triple stands without its head, which they share, too: `` [relation] tail | head [relation] tail``, with a
    leading blank. A path of one triple keeps it. A triple that is none is printed as it is.
    Half a surrogate pair, which no tokenizer takes, is U+FFFD.
    """
    way = path[:-1] if len(path) > 1 else path
    return sound(" | ".join(_triple(triple, first=number == 0) for number, triple in enumerate(way))).lower()


def _triple(triple: object, *, first: bool) -> str:
    if not isinstance(triple, (list, tuple)) or len(triple) != 3:
        return str(triple)
    head, relation, tail = triple
    return f"{'' if first else head} [{relation}] {tail}"
