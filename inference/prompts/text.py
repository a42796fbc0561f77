"""Templates, fences, and untrusted text made harmless."""

import hashlib
import re
from functools import cache
from importlib.resources import files

_PLACEHOLDER = re.compile(r"\{\{ *(\w+) *\}\}")
# Control tokens of the common chat templates. A space after the first character makes plain text of each.
_CONTROL = re.compile(
    r"<(?=\|[^|<>\s]{1,40}\|>|[｜|][^<>]{1,40}[｜|]>|/?s>|/?think>|(?:start|end)_of_turn>|/?(?:bos|eos|pad|unk)>)"
    r"|\[(?=/?INST\])",
    re.IGNORECASE,
)
_HALF_PAIR = re.compile("[\ud800-\udfff]")


def sound(text: str) -> str:
    """`text` with U+FFFD for each half of a surrogate pair, which neither a request nor a file could hold."""
    return _HALF_PAIR.sub("\N{REPLACEMENT CHARACTER}", text)


def defuse(text: str) -> str:
    """`sound` text without any chat-template control token: ``<|im_end|>`` becomes ``< |im_end|>``."""
    return _CONTROL.sub(lambda match: match.group() + " ", sound(text))


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


def render(name: str, **values: str) -> str:
    """Template `name` with its ``{{ placeholders }}`` filled in. Raises KeyError for a missing value."""
    return fill(_template(name), **values)


def fill(template: str, **values: str) -> str:
    """`template` with its ``{{ placeholders }}`` filled in one pass: one inside a value stays text.

    Raises KeyError for a missing value.
    """
    return _PLACEHOLDER.sub(lambda match: values[match.group(1)], template).strip()
