"""Rated samples → training rows: a prompt that ends where the score stands, and the target. Split and token audit."""

import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal

from inference.errors import UserError
from inference.prefixes import share_prefixes
from inference.prompts import Question, evidence_questions, raw_questions
from inference.records import Sample, StepEvidence
from inference.rubric import Rubric
from inference.scoring import grid_branches

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Evidence = Mapping[str, Sequence[StepEvidence]]
"""Sample id → what an analyst wrote on each step."""
Targets = Literal["mean", "each"]


@dataclass(frozen=True)
class Row:
    """One score position."""

    sample: int
    """Index of the sample."""
    input_ids: list[int]
    """The compact prompt; the next token is the first character of the score."""
    reader: int
    """Index into `Rubric.learned` of the dimension."""
    target: float
    """Human score, of one rater or the mean, fractions kept. NaN: unrated, to be scored and never learned from."""
    item: int | None = None
    """Number of the item, where one is scored."""

    @property
    def rated(self) -> bool:
        return not math.isnan(self.target)


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


def build_rows(
    samples: Sequence[Sample],
    rubric: Rubric,
    tokenizer: "PreTrainedTokenizerBase",
    *,
    evidence: Evidence | None = None,
    targets: Targets = "mean",
    unrated: bool = False,
) -> list[Row]:
    """The rows of `samples`, tokenised exactly as the engines tokenise a compact call: what a served judge is asked.

    Samples without a word of response are left out: a served judge leaves them unscored, too.

    Args:
        evidence: has a judge of evidence learn, from these texts. Default: a judge of raw responses.
        targets: one row with the mean of the raters, or one row for each of them.
        unrated: keep what nobody has rated as well, so that the scores add up to whole steps.

    Raises UserError where no sample has a human score.
    """
    from inference.tokens import encode_plain

    rows = []
    for index, sample in enumerate(samples):
        if not any(text.strip() for text in sample.responses.values()):
            continue
        human = _ratings(sample)
        for question in questions(rubric, sample, evidence):
            step, dimension, _ = rubric.learned[question.learned]
            found = human.get((f"{step.name}.{dimension.name}", question.item), [])
            wanted = [fmean(found)] if found and targets == "mean" else found
            if wanted or unrated:
                ids = encode_plain(tokenizer, question.prompt)
                rows += [Row(index, ids, question.learned, target, question.item) for target in wanted or [math.nan]]
    if not any(row.rated for row in rows):
        raise UserError("no sample has a human score: a rating column named like the rubric's dimension is needed")
    return rows


def questions(rubric: Rubric, sample: Sample, evidence: Evidence | None) -> list[Question]:
    """What a served judge is asked about `sample`, or about the evidence on it."""
    if evidence is None:
        return raw_questions(rubric, sample)
    return evidence_questions(rubric, evidence.get(sample.id, ()))


def _ratings(sample: Sample) -> dict[tuple[str, int | None], list[float]]:
    """("step.dimension", item) → the scores of all raters."""
    found: dict[tuple[str, int | None], list[float]] = {}
    for scores in sample.human.values():
        for key, value in scores.items():
            found.setdefault((key, None), []).append(value)
    for ratings in sample.human_items.values():
        for score in ratings:
            if score.value is not None:
                found.setdefault((score.key, score.item), []).append(score.value)
    return found


def check_all_taught(rows: Sequence[Row], rubric: Rubric, evidence: Evidence | None) -> None:
    """Raise UserError where a judge would be asked what none of the training `rows` teaches."""
    taught = {row.reader for row in rows if row.rated}
    for index, (step, dimension, per_item) in enumerate(rubric.learned):
        # Of evidence the different choices are counted, not judged.
        asked = evidence is None or not dimension.distinct
        if asked and index not in taught:
            where = f" of single {step.items.kind}s" if per_item and step.items else ""
            what = "ratings" if evidence is None else "ratings with evidence"
            raise UserError(
                f"the training data has no {what}{where} on {step.name}.{dimension.name}, so a judge could not learn it"
            )


def chains(rows: Sequence[Row]) -> list[list[int]]:
    """Indices of the rows by chain, in the order in which the chains start.

    A chain holds rows on one item, or on a step, of a sample. The prompt of each begins with that of the one before, so
    they are computed together.
    """
    about: dict[tuple[int, int | None], list[int]] = {}
    for index, row in enumerate(rows):
        about.setdefault((row.sample, row.item), []).append(index)
    found: dict[int, list[int]] = {}
    for members in about.values():
        kept, places = share_prefixes([rows[index].input_ids for index in members])
        for index, (position, _) in zip(members, places, strict=True):
            found.setdefault(members[kept[position]], []).append(index)
    for chain in found.values():
        chain.sort(key=lambda index: len(rows[index].input_ids))
    return sorted(found.values(), key=min)


def sequences(rows: Sequence[Row], rubric: Rubric) -> list[list[tuple[int, int]]]:
    """Of each chain the sequences that are computed for it: (tokens, score positions read in it)."""
    # What a prompt has to be extended by to read its grid, in numbers that are no token.
    suffixes = [
        [[-1 - int(digit) for digit in prefix] for prefix in grid_branches(one.dimension.grid)]
        for one in rubric.learned
    ]
    found = []
    for chain in chains(rows):
        needed = [[*rows[index].input_ids, *suffix] for index in chain for suffix in suffixes[rows[index].reader]]
        kept, places = share_prefixes(needed)
        read = Counter(position for position, _ in places)
        found.append([(len(needed[index]), read[position]) for position, index in enumerate(kept)])
    return found


def audit(rows: Sequence[Row], max_tokens: int, name: str, rubric: Rubric) -> tuple[list[Row], dict[str, Any]]:
    """Rows of at most `max_tokens`, and the counts that are printed before the first step.

    A longer row is left out and counted, not cut: a cut prompt would not be what a served judge is asked. Tokens are
    those of the sequences that are computed, which several rows may share.
    """
    kept = [row for row in rows if len(row.input_ids) <= max_tokens]
    if not kept:
        raise UserError(f"all {len(rows)} {name} rows are longer than max_prompt_tokens {max_tokens}: raise it")
    lengths = sorted(tokens for chain in sequences(kept, rubric) for tokens, _ in chain)
    return kept, {
        "split": name,
        "rows": len(kept),
        "too_long": len(rows) - len(kept),
        "sequences": len(lengths),
        "tokens": sum(lengths),
        "mean": round(sum(lengths) / len(lengths), 2),
        "p95": lengths[int(0.95 * (len(lengths) - 1))],
        "max": lengths[-1],
        "supervised": sum(row.rated for row in kept),
    }
