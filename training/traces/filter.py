"""What of a folder of traces is worth learning from, by thresholds of a config, with the reason for each dropped part.

A part is an item, or a step without items. Faults of a step as a whole drop all its parts. A part is counted under the
first reason that applies, in the order of `REASONS`.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field

from eval.evidence import form_fault, has_quotation, rows, step_fault, unfounded
from inference.config import Number, StrictModel, Whole
from inference.errors import UserError, named_list
from inference.files import write_text
from inference.items import item_texts
from inference.rubric import Rubric, Step
from inference.schemas import NO_CHOICE
from inference.tokens import encode_plain, load_tokenizer
from training.traces.duplicates import near_duplicates
from training.traces.records import (
    DROPPED,
    Trace,
    TracesInfo,
    check_new,
    check_versions,
    read_traces,
    step_of,
    write_traces,
)

SCHEMA, LENGTH, UNGROUNDED, UNFOUNDED, FAR, INCONSISTENT, DUPLICATE = (
    "not schema-valid",
    "too long",
    "ungrounded",
    "unfounded name or number",
    "far from the human score",
    "inconsistent over repeats",
    "near duplicate",
)
REASONS = (SCHEMA, LENGTH, UNGROUNDED, UNFOUNDED, FAR, INCONSISTENT, DUPLICATE)


class FilterConfig(StrictModel):
    """Settings of ``python -m training traces filter``. A threshold that is null is not applied."""

    no_choice: tuple[str, ...] = (NO_CHOICE,)
    """What may stand in place of a name that is to be chosen, where an item does not count."""
    unquoted_steps: tuple[str, ...] = ()
    """Steps whose response has nothing to quote, such as a grid of numbers; they need no quotation."""
    names_and_numbers: bool = True
    """Whether names and numbers in the evidence have to occur in response, scenario, or earlier memories."""
    max_distance: Number | None = Field(default=None, ge=0, le=1)
    """Largest distance of a judged score to the score of any rater, on any dimension, in units of its range."""
    max_spread: Number | None = Field(default=None, ge=0, le=1)
    """Largest difference between the judged scores of repeats, in units of the range."""
    max_similarity: Number | None = Field(default=None, gt=0, le=1)
    """From this share of common shingles (five words) of response and evidence on, the later trace is dropped."""
    tokenizer: str | None = None
    """A model directory, for the lengths below."""
    max_text_tokens: Whole | None = Field(default=None, ge=1)
    """Of one text of evidence."""
    max_memory_tokens: Whole | None = Field(default=None, ge=1)
    max_response_tokens: Whole | None = Field(default=None, ge=1)
    """Of the response to the step."""
    shown: Whole = Field(default=5, ge=0)
    """Dropped parts that are printed with their reason."""

    @property
    def measures(self) -> bool:
        return any((self.max_text_tokens, self.max_memory_tokens, self.max_response_tokens))


@dataclass(frozen=True)
class Drop:
    """A dropped part."""

    trace: Trace
    item: int | None
    reason: str
    detail: str

    def as_json(self) -> dict[str, Any]:
        part = self.trace.evidence
        texts = part.items[self.item - 1] if self.item is not None and self.item <= len(part.items) else part.texts
        return {
            "sample_id": self.trace.sample_id,
            "step": self.trace.step,
            "item": self.item,
            "teacher": self.trace.teacher,
            "repeat": self.trace.repeat,
            "reason": self.reason,
            "detail": self.detail,
            "evidence": texts,
        }


@dataclass(frozen=True)
class Filtered:
    """What is left, and what is not."""

    kept: list[Trace]
    dropped: list[Drop]
    before: int
    """Parts before the filter."""

    @property
    def by_reason(self) -> dict[str, int]:
        found = Counter(drop.reason for drop in self.dropped)
        return {reason: found[reason] for reason in REASONS if found[reason]}


def filter_folder(folder: Path, config: FilterConfig, out: Path) -> tuple[Filtered, TracesInfo]:
    """Filter the traces in `folder` into the new folder `out`, with what was dropped in ``dropped.jsonl`` there.

    Raises UserError for a folder that is none or was made with other prompts, and where nothing is left.
    """
    check_new(out)
    info, traces = read_traces(folder)
    check_versions(info, info.rubric, str(folder))
    found = filter_traces(traces, info.rubric, config)
    dropped = Counter(info.dropped) + Counter(found.by_reason)
    thresholds = config.model_dump(mode="json", exclude={"shown"})
    info = info.model_copy(update={"filtered": thresholds, "dropped": dict(dropped)})
    write_traces(out, found.kept, info)
    lines = (json.dumps(drop.as_json(), ensure_ascii=False) + "\n" for drop in found.dropped)
    write_text(out / DROPPED, "".join(lines))
    return found, info


def filter_traces(traces: Sequence[Trace], rubric: Rubric, config: FilterConfig) -> Filtered:
    """Sort traces into kept and dropped parts. Raises UserError for an unknown step, or lengths without tokenizer."""
    _check(rubric, config)
    size = _Size(config)
    repeats = _spread(traces, rubric, config.max_spread)
    kept: list[Trace] = []
    dropped: list[Drop] = []
    for index, trace in enumerate(traces):
        step = step_of(rubric, trace.step)
        fault = _whole_fault(trace, step, rubric, config, size) or repeats.get(index)
        if fault is not None:
            dropped += _drop_all(trace, *fault)
            continue
        faults = {item: _part_fault(trace, step, item, rubric, config, size) for item in _parts(trace)}
        dropped += [Drop(trace, item, *found) for item, found in faults.items() if found is not None]
        good = tuple(item for item, found in faults.items() if found is None)
        if good:
            kept.append(trace.model_copy(update={"items": tuple(item for item in good if item is not None)}))
    if config.max_similarity is not None:
        texts = ["\n".join([t.step, t.response, *_texts(t)]) for t in kept]
        copies = near_duplicates(texts, config.max_similarity)
        for index, other in copies.items():
            dropped += _drop_all(kept[index], DUPLICATE, f"of {kept[other].sample_id}, repeat {kept[other].repeat}")
        kept = [trace for index, trace in enumerate(kept) if index not in copies]
    return Filtered(kept, dropped, sum(trace.parts for trace in traces))


def _check(rubric: Rubric, config: FilterConfig) -> None:
    names = [step.name for step in rubric.answered]
    unknown = [name for name in config.unquoted_steps if name not in names]
    if unknown:
        raise UserError(f"unquoted_steps: the rubric has no step {named_list(unknown)}; it has {named_list(names)}")
    if config.measures and config.tokenizer is None:
        raise UserError("tokenizer is missing: max_…_tokens count the tokens of a model, name its directory")


class _Size:
    """Tokens of texts, where the config asks for lengths."""

    def __init__(self, config: FilterConfig) -> None:
        self._tokenizer = load_tokenizer(config.tokenizer) if config.measures and config.tokenizer else None

    def fault(self, what: str, text: str, limit: int | None) -> tuple[str, str] | None:
        if limit is None or self._tokenizer is None:
            return None
        tokens = len(encode_plain(self._tokenizer, text))
        return (LENGTH, f"{what}: {tokens} tokens, {limit} at most") if tokens > limit else None


def _whole_fault(trace: Trace, step: Step, rubric: Rubric, config: FilterConfig, size: _Size) -> tuple[str, str] | None:
    form = step_fault(step, trace.evidence)
    if form is not None:
        return SCHEMA, form
    memory = trace.evidence.memory
    too_long = size.fault("memory", memory, config.max_memory_tokens)
    too_long = too_long or size.fault("response", trace.response, config.max_response_tokens)
    if too_long is not None:
        return too_long
    made_up = unfounded([memory], _known(trace), step, rubric) if config.names_and_numbers else []
    if made_up:
        return UNFOUNDED, f"memory: {named_list(made_up)}"
    return _distance_fault(trace, rubric, config.max_distance)


def _part_fault(
    trace: Trace, step: Step, item: int | None, rubric: Rubric, config: FilterConfig, size: _Size
) -> tuple[str, str] | None:
    row = rows(trace.evidence)[0 if item is None else item - 1]
    form = form_fault(step, row, config.no_choice)
    if form is not None:
        return SCHEMA, form
    for name, text in row.items():
        too_long = size.fault(name, text, config.max_text_tokens)
        if too_long is not None:
            return too_long
    said = [text for dimension in step.asked if not dimension.choices for text in [row[dimension.name]]]
    blank = item is not None and not item_texts(step, trace.sample)[item - 1].strip()
    if not blank and step.name not in config.unquoted_steps and not has_quotation(said, trace.response):
        return UNGROUNDED, "no quotation of 3 to 7 words stands in the response"
    made_up = unfounded(said, _known(trace), step, rubric) if config.names_and_numbers else []
    return (UNFOUNDED, named_list(made_up)) if made_up else None


def _distance_fault(trace: Trace, rubric: Rubric, limit: float | None) -> tuple[str, str] | None:
    if limit is None:
        return None
    ranges = {f"{step.name}.{dimension.name}": dimension.range for step, dimension in rubric.unsummed}
    for key, judged in trace.judged.items():
        low, high = ranges[key]
        for rater, scores in trace.human.items():
            if key in scores and abs(judged - scores[key]) > limit * (high - low):
                return FAR, f"{key}: judged {judged:.2f}, {rater} gave {scores[key]:g} of {low} to {high}"
    return None


def _spread(traces: Sequence[Trace], rubric: Rubric, limit: float | None) -> dict[int, tuple[str, str]]:
    """Index of each trace whose repeats differ too much → the fault."""
    if limit is None:
        return {}
    groups: dict[tuple[str, str, str], list[int]] = {}
    for index, trace in enumerate(traces):
        groups.setdefault((trace.teacher, trace.sample_id, trace.step), []).append(index)
    ranges = {f"{step.name}.{dimension.name}": dimension.range for step, dimension in rubric.unsummed}
    found: dict[int, tuple[str, str]] = {}
    for members in groups.values():
        for key in sorted({key for index in members for key in traces[index].judged}):
            given = [traces[index].judged[key] for index in members if key in traces[index].judged]
            low, high = ranges[key]
            if max(given) - min(given) > limit * (high - low):
                fault = (INCONSISTENT, f"{key}: {min(given):.2f} to {max(given):.2f} over {len(given)} repeats")
                found |= dict.fromkeys(members, fault)
                break
    return found


def _known(trace: Trace) -> list[str]:
    return [trace.scenario, trace.subject, trace.response, *trace.memories.values(), *trace.noted.values()]


def _texts(trace: Trace) -> list[str]:
    return [text for row in rows(trace.evidence) for text in row.values()]


def _parts(trace: Trace) -> tuple[int | None, ...]:
    return trace.items if trace.evidence.items else (None,)


def _drop_all(trace: Trace, reason: str, detail: str) -> list[Drop]:
    return [Drop(trace, item, reason, detail) for item in _parts(trace)]
