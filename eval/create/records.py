"""What the parts of the benchmark hand to one another."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

Triple = tuple[str, str, str]
"""Head, relation, tail, as the model wrote them."""
Path = tuple[Triple, ...]
"""From the start entity to the target; one triple or more."""
KEPT = "kept"
AnyPath = Sequence[Any]
"""A path that nobody has checked: triples of any length, or no triples at all."""


@dataclass(frozen=True)
class Rejected:
    """A part of an answer that stands where a path should, and is none."""

    position: int
    """Place among all candidates of the answer, from 0, those that became paths included."""
    reason: str
    """``bad_triple`` (a part is missing, empty or too much), ``bad_path``, ``truncated`` or ``duplicate``."""
    text: str
    """The part itself, shortened."""


@dataclass(frozen=True)
class ParsedAnswer:
    """The paths of one answer, or of the union of several."""

    paths: tuple[Path, ...] = ()
    flags: tuple[str, ...] = ()
    """What was unusual about the text, see `eval.create.parsing`."""
    rejected: tuple[Rejected, ...] = ()
    samples: tuple[int, ...] = ()
    """Index of the answer that each path came from."""

    @property
    def candidates(self) -> int:
        """How many parts of the answer stood where a path should."""
        return len(self.paths) + len(self.rejected)

    @property
    def positions(self) -> tuple[int, ...]:
        """Place of each path among the candidates."""
        lost = {rejected.position for rejected in self.rejected}
        return tuple(position for position in range(self.candidates) if position not in lost)


@dataclass(frozen=True)
class Validity:
    """Whether a path leads from the start to the target, see `eval.create.validity`."""

    strict: bool
    shared: bool
    reasons: tuple[str, ...] = ()
    """Why `strict` is False: of ``bad_triple``, ``start``, ``end``, ``chain``, ``self_loop``."""
    shared_reasons: tuple[str, ...] = ()
    final_relation: bool | None = None
    """Whether the last relation is the one that was asked for; None where either is unknown."""


@dataclass(frozen=True)
class SizeReading:
    """An evaluator's class sizes, one per triple."""

    sizes: tuple[int | None, ...]
    """1 or more; None where unreadable."""
    scores: tuple[int | None, ...]
    """1 (a huge class) to 5 (ten members or fewer)."""
    path_score: int | None
    """Specificity of the path: the lowest score that counts; None where one of those is missing."""
    status: str
    """``ok``, ``unreadable``, ``count_mismatch`` or ``empty``."""
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class LabelReading:
    """An evaluator's factuality labels, one per triple."""

    labels: tuple[int | None, ...]
    """1 factual, 0 hallucinated, None unreadable."""
    q: int | None
    """1 where every triple is factual, 0 where one is not; None where that is unknown."""
    status: str
    """``ok``, ``unreadable``, ``count_mismatch`` or ``empty``."""

    @property
    def share(self) -> float | None:
        """Share of factual triples; None where a label or the count is wrong."""
        if self.status != "ok" or not self.labels:
            return None
        return sum(label or 0 for label in self.labels) / len(self.labels)


@dataclass(frozen=True)
class JudgedAnswer:
    """All that is known of one answer before its paths are compared with one another; one entry per path."""

    id: Any
    """As it stood in the input."""
    paths: tuple[AnyPath, ...]
    strengths: tuple[float | None, ...]
    """Specificity, 0 to 5; None where it could not be read."""
    outcomes: tuple[str, ...]
    """``kept``, or the first reason for which a path does not count."""
    rejected: tuple[Rejected, ...] = ()
    details: dict[str, Any] = field(default_factory=dict)
    """What else a report shows of the answer, ready for JSON."""

    @property
    def kept(self) -> tuple[int, ...]:
        """Indices of the paths that count."""
        return tuple(index for index, outcome in enumerate(self.outcomes) if outcome == KEPT)

    @property
    def kept_paths(self) -> tuple[AnyPath, ...]:
        return tuple(self.paths[index] for index in self.kept)

    @property
    def kept_strengths(self) -> tuple[float, ...]:
        return tuple(self.strengths[index] or 0.0 for index in self.kept)

    @property
    def lost(self) -> dict[str, int]:
        """How many candidates do not count, by reason; with the kept ones they are all candidates."""
        reasons = [rejected.reason for rejected in self.rejected]
        return dict(Counter(reasons + [outcome for outcome in self.outcomes if outcome != KEPT]))
