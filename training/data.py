"""Rated samples → training rows: a prompt that ends where the score stands, and the target. Split and token audit."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from inference.errors import UserError
from inference.prompts import compact_prompt
from inference.records import Sample
from inference.rubric import Rubric

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True)
class Row:
    """One score position."""

    sample: int
    """Index of the sample."""
    input_ids: list[int]
    """The compact prompt; the next token is the first character of the score."""
    reader: int
    """Index into `Rubric.predicted` of the dimension."""
    target: float
    """Human score, mean over the raters, fractions kept."""


def split(samples: Sequence[Sample], share: float, by: str, seed: int) -> tuple[list[Sample], list[Sample]]:
    """(training, validation): about `share` of the samples or of whole scenarios held out. Same seed, same split."""
    if not 0.0 < share < 1.0:
        raise UserError(f"validation_share is {share}; give a share between 0 and 1, such as 0.3 for a 7:3 split")
    if by not in ("sample", "scenario"):
        raise UserError(f"split_by is {by!r}; it has to be sample or scenario")
    # Sorted first, so that the split depends on the ids and the seed alone, not on the order of the file.
    units = sorted({sample.id if by == "sample" else sample.scenario for sample in samples})
    random.Random(seed).shuffle(units)
    held_out = set(units[: max(1, round(share * len(units)))])
    train: list[Sample] = []
    validation: list[Sample] = []
    for sample in samples:
        unit = sample.id if by == "sample" else sample.scenario
        (validation if unit in held_out else train).append(sample)
    if not train:
        raise UserError(f"nothing is left to train on: {len(units)} {by}s and validation_share {share}")
    return train, validation


def choose(samples: Sequence[Sample], rows: int | None, seed: int) -> list[Sample]:
    """`rows` samples drawn without replacement, in file order; all of them for None."""
    if rows is None or rows >= len(samples):
        return list(samples)
    kept = set(random.Random(seed).sample(range(len(samples)), rows))
    return [sample for index, sample in enumerate(samples) if index in kept]


def refuse_overlap(samples: Sequence[Sample], held_out: set[str], of: str, where: str) -> None:
    """Raise UserError where an id of the `of` part occurs in `samples`, the `where` part."""
    found = [sample.id for sample in samples if sample.id in held_out]
    if found:
        raise UserError(f"{len(found)} {of} ids are in the {where} data, the first is {found[0]}: remove them there")


def build_rows(samples: Sequence[Sample], rubric: Rubric, tokenizer: "PreTrainedTokenizerBase") -> list[Row]:
    """One row per rated dimension of each sample, tokenised exactly as the engines tokenise a compact call.

    Samples without a word of response are left out: a served judge leaves them unscored, too.
    """
    from inference.tokens import encode_plain

    rows = []
    for index, sample in enumerate(samples):
        if not any(text.strip() for text in sample.responses.values()):
            continue
        for reader, (step, dimension) in enumerate(rubric.predicted):
            ratings = [
                scores[key] for scores in sample.human.values() if (key := f"{step.name}.{dimension.name}") in scores
            ]
            if not ratings:
                continue
            ids = encode_plain(tokenizer, compact_prompt(rubric, step, dimension, sample))
            rows.append(Row(sample=index, input_ids=ids, reader=reader, target=sum(ratings) / len(ratings)))
    if not rows:
        raise UserError("no sample has a human score: a rating column named like the rubric's dimension is needed")
    return rows


def audit(rows: Sequence[Row], max_tokens: int, name: str) -> tuple[list[Row], dict[str, Any]]:
    """Rows of at most `max_tokens`, and the counts that are printed before the first step.

    A longer row is left out and counted, not cut: a cut prompt would not be what a served judge is asked.
    """
    kept = [row for row in rows if len(row.input_ids) <= max_tokens]
    if not kept:
        raise UserError(f"all {len(rows)} {name} rows are longer than max_prompt_tokens {max_tokens}: raise it")
    lengths = sorted(len(row.input_ids) for row in kept)
    return kept, {
        "split": name,
        "rows": len(kept),
        "too_long": len(rows) - len(kept),
        "tokens": sum(lengths),
        "mean": round(sum(lengths) / len(lengths), 2),
        "p95": lengths[int(0.95 * (len(lengths) - 1))],
        "max": lengths[-1],
        "supervised": len(kept),
    }
