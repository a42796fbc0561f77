"""What the extractor replied on a trace: relations, entities and strategies, or a complaint."""

import unicodedata
from typing import NamedTuple

from eval.create.answers import answer_text
from eval.create.literal import Bare, Map, Node, Seq, read_documents
from eval.create.reasoning.prompts import STRATEGIES, Strategy
from inference.errors import quoted
from inference.prompts.text import sound

_APOSTROPHES = "'\N{RIGHT SINGLE QUOTATION MARK}"
_KEYS = ("relations", "entities", "strategies")


class Extraction(NamedTuple):
    """What a trace mentions, in its order and as often as it does, and how it goes about it."""

    relations: tuple[str, ...]
    entities: tuple[str, ...]
    strategies: tuple[Strategy, ...]


def read_extraction(reply: str) -> tuple[Extraction | None, str | None]:
    """(what it says, None), or (None, why it cannot be used). Prose and fences around the JSON are passed over.

    A reply that breaks off is not used: its counts would be too small.
    """
    documents = read_documents(answer_text(sound(reply)).text).values
    objects = [document for document in documents if isinstance(document, Map)]
    if not objects:
        return None, "it holds no JSON object"
    found = {key.strip().casefold(): value for key, value in objects[-1].pairs}
    missing = [key for key in _KEYS if key not in found]
    if missing or not objects[-1].complete:
        return None, f"it lacks {', '.join(missing)}" if missing else "it breaks off"
    lists = {key: _texts(found[key]) for key in _KEYS}
    faulty = [key for key, texts in lists.items() if texts is None]
    if faulty:
        return None, f"{', '.join(faulty)} is no list of texts"
    relations, entities, named = ((lists[key] or ()) for key in _KEYS)
    names = {"_".join(plain(name.replace("_", " ")).split()) for name in named}
    unknown = sorted(names - set(STRATEGIES))
    if unknown:
        return None, f"{quoted(unknown[0])} is none of the strategies {', '.join(STRATEGIES)}"
    strategies = tuple(name for name in STRATEGIES if name in names)
    return Extraction(_phrases(relations), _phrases(entities), strategies), None


def plain(text: str) -> str:
    """`text` in lower case without punctuation, white space collapsed; a text of punctuation alone keeps it."""
    folded = unicodedata.normalize("NFKC", text).lower()
    kept = "".join(
        "" if character in _APOSTROPHES else " " if unicodedata.category(character)[0] == "P" else character
        for character in folded
    )
    return " ".join(kept.split()) or " ".join(folded.split())


def _phrases(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(filter(None, map(plain, texts)))


def _texts(node: Node) -> tuple[str, ...] | None:
    """The texts of a whole list; None where it is none. A number without quotes is a text, null is not."""
    if not isinstance(node, Seq) or not node.complete:
        return None
    texts: list[str] = []
    for item in node.items:
        if isinstance(item, (Seq, Map)) or (isinstance(item, Bare) and item.text.casefold() in ("null", "none")):
            return None
        texts.append(item.text)
    return tuple(texts)
