"""The two judgements on a path: what is asked, how a reply is read, and under which keys a row holds it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from eval.create.evaluators import prompts
from eval.create.factuality import read_labels
from eval.create.specificity import path_score, read_sizes

KindName = Literal["specificity", "factuality"]
TRUE = 0.5
"""A learned evaluator's probability of being factual from which a triple counts as factual."""


@dataclass(frozen=True)
class Kind:
    """One judgement."""

    name: KindName
    instructions: str
    judgment: dict[str, Any]
    """JSON schema of one triple's judgment."""
    wanted: str
    """What a judgment has to be, for complaints."""
    read: Callable[[str | None, int], tuple[Sequence[int | None], str]]
    """Reply and number of triples → one value per judgment in it, None where unreadable, and the reply's status."""
    score_range: tuple[int, int]
    """Scale of a learned evaluator."""
    path_value: Callable[[Sequence[float | None]], Any]
    """A learned evaluator's values of a path's triples → the entry of `value_key`."""
    reply_key: str
    """Key of a row with an evaluator's reply per path."""
    value_key: str
    """Key of a row with what a learned evaluator says per path, in place of replies."""
    recorded_key: str
    """Key of a recorded reply on one path."""

    def complaint(self, reply: str | None, triples: int) -> str | None:
        """Why a reply on a path of so many `triples` cannot be used; None where it can."""
        values, status = self.read(reply, triples)
        if status == "ok":
            return None
        if status == "empty":
            return "it holds no judgments"
        if status == "count_mismatch":
            return f"it holds {len(values)} judgments, but there are {triples} triples"
        places = ", ".join(str(number) for number, value in enumerate(values, 1) if value is None)
        return f"judgment {places} is not {self.wanted}"


def _sizes(reply: str | None, triples: int) -> tuple[Sequence[int | None], str]:
    reading = read_sizes(reply, triples)
    return reading.sizes, reading.status


def _labels(reply: str | None, triples: int) -> tuple[Sequence[int | None], str]:
    reading = read_labels(reply, triples)
    return reading.labels, reading.status


def _factual(values: Sequence[float | None]) -> list[int | None]:
    return [None if value is None else int(value >= TRUE) for value in values]


SPECIFICITY = Kind(
    name="specificity",
    instructions=prompts.SPECIFICITY,
    judgment={"type": "integer", "minimum": 1},
    wanted="one whole number in digits",
    read=_sizes,
    score_range=(1, 5),
    path_value=path_score,
    reply_key="class_size_responses",
    value_key="strengths",
    recorded_key="class_size_reply",
)
FACTUALITY = Kind(
    name="factuality",
    instructions=prompts.FACTUALITY,
    judgment={"type": "string", "enum": list(prompts.LABELS)},
    wanted='"hallucinated" or "not hallucinated"',
    read=_labels,
    score_range=(0, 1),
    path_value=_factual,
    reply_key="factuality_responses",
    value_key="factuality",
    recorded_key="factuality_reply",
)
KINDS = (SPECIFICITY, FACTUALITY)
