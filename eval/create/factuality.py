"""Factuality labels of an evaluator: a path counts where every triple is factual."""

import re
from collections.abc import Sequence

from eval.create.literal import Bare, Text
from eval.create.records import LabelReading
from eval.create.replies import Value, read_values

KEYS = ("judgments", "judgements", "judgment", "judgement", "labels", "label")
FACTUAL = frozenset({"not hallucinated", "factual", "true", "correct"})
_NOT_FACTUAL = re.compile(r"(?:hallucinated|false|incorrect)\b.*", re.DOTALL)


def read_labels(reply: str | None, n_triples: int) -> LabelReading:
    """The labels of an evaluator's reply on one path of `n_triples` triples.

    Without case, and with ``_`` and ``-`` as blanks: "not hallucinated", "factual", "true" and "correct" are 1;
    "hallucinated", "false" and "incorrect" are 0, also with a remark after them; everything else is None.
    """
    labels = tuple(_label(value) for value in read_values(reply or "", KEYS))
    return label_reading(labels, n_triples)


def label_reading(labels: Sequence[int | None], n_triples: int) -> LabelReading:
    """Labels with what follows from them: q is 0 where any is 0, 1 where all are 1, None where that is unknown."""
    if not labels:
        return LabelReading((), None, "empty")
    if len(labels) != n_triples:
        return LabelReading(tuple(labels), None, "count_mismatch")
    if None in labels:
        return LabelReading(tuple(labels), None, "unreadable")
    return LabelReading(tuple(labels), int(all(labels)), "ok")


def _label(value: Value) -> int | None:
    if not isinstance(value, (Text, Bare)):
        return None
    text = " ".join(re.sub(r"[_-]", " ", value.text.lower()).split())
    if text in FACTUAL:
        return 1
    return 0 if _NOT_FACTUAL.fullmatch(text) else None
