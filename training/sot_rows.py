"""Traces → rows that teach to write evidence: the prompt an analyst is served, the evidence, the end token.

Prompts come from the functions that methods `compact_creaeval` and `creaeval` ask with, and are encoded as the engines
encode them; loss falls on the evidence and the end token alone.
"""

import hashlib
import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inference import prompts
from inference.adapter_notes import Profile
from inference.errors import UserError
from inference.items import item_texts
from inference.prompts.describe import EVIDENCE, MEMORY
from inference.records import Call, StepEvidence
from inference.rubric import Rubric, Step
from inference.tokens import encode_chat, encode_plain
from training.traces.records import Trace, step_of

IGNORED = -100
"""Label of a token without loss."""


@dataclass(frozen=True)
class SotRow:
    """One prompt with the evidence that answers it."""

    sample_id: str
    step: str
    item: int | None
    input_ids: list[int]
    """Prompt, evidence, end token."""
    taught: int
    """Tokens at the end that are supervised, the end token among them."""

    @property
    def labels(self) -> list[int]:
        start = len(self.input_ids) - self.taught
        return [IGNORED] * start + self.input_ids[start:]


def build_rows(traces: Sequence[Trace], rubric: Rubric, tokenizer: Any, profile: Profile) -> list[SotRow]:
    """The rows of all traces. Raises UserError for a tokenizer that cannot do it, and evidence that lacks a text.

    Compact: a row per item that has a text, or per step without items. Chat: a row per step of which no item was
    dropped.
    """
    if tokenizer.eos_token_id is None:
        raise UserError("the tokenizer has no end token, so a model could not learn where evidence ends; set eos_token")
    if profile == "chat" and not tokenizer.chat_template:
        raise UserError("the base model has no chat template; use `profile: compact`, or an instruction-tuned model")
    made = [row for trace in traces for row in _rows(trace, rubric, tokenizer, profile)]
    if not made:
        raise UserError(f"the traces give no rows for the profile {profile}; collect or keep more of them")
    return made


def _rows(trace: Trace, rubric: Rubric, tokenizer: Any, profile: Profile) -> Iterator[SotRow]:
    step = step_of(rubric, trace.step)
    asked = compact_calls(trace, rubric, step) if profile == "compact" else chat_calls(trace, rubric, step)
    for item, call, answer in asked:
        if call.prompt is not None:
            prompt = encode_plain(tokenizer, call.prompt)
        else:
            prompt = encode_chat(tokenizer, call.messages or ())
        taught = [*encode_plain(tokenizer, answer), tokenizer.eos_token_id]
        yield SotRow(trace.sample_id, trace.step, item, prompt + taught, len(taught))


def compact_calls(trace: Trace, rubric: Rubric, step: Step) -> Iterator[tuple[int | None, Call, str]]:
    """(item, call, answer) for each item with a text that is learned from, or for the step: of `compact_creaeval`."""
    sample, found = trace.sample, trace.evidence
    memory = prompts.remembered(rubric, step, trace.noted)
    if step.items is None:
        yield None, Call(prompt=prompts.analyst_prompt(sample, step, None, memory)), _line(trace, step, found.texts)
        return
    texts = item_texts(step, sample)
    for item in trace.items:
        if not texts[item - 1]:
            continue  # nobody is asked about a blank item
        so_far = prompts.item_quotations(step, found.items[: item - 1])
        call = Call(prompt=prompts.analyst_prompt(sample, step, item, memory, so_far))
        yield item, call, _line(trace, step, found.items[item - 1])


def _line(trace: Trace, step: Step, texts: dict[str, str]) -> str:
    missing = [dimension.name for dimension in step.asked if dimension.name not in texts]
    if missing:
        raise _incomplete(trace, missing[0])
    return prompts.evidence_line(step, texts)


def chat_calls(trace: Trace, rubric: Rubric, step: Step) -> Iterator[tuple[int | None, Call, str]]:
    """(None, call, answer) of the step, where no item of it was dropped: of `creaeval`."""
    if trace.whole:
        remembered = [(other, trace.memories[other.name]) for other in rubric.answered if other.name in trace.memories]
        messages = prompts.analysis_messages(rubric, trace.sample, (step,), remembered)
        yield None, Call(messages=messages), evidence_json(trace, step)


def evidence_json(trace: Trace, step: Step) -> str:
    """The answer to `evidence_schema` that `answers.read_evidence` reads as the evidence of the trace."""
    found: StepEvidence = trace.evidence
    rows = []
    for texts in found.items if step.items else (found.texts,):
        missing = [dimension.name for dimension in step.asked if dimension.name not in texts]
        if missing:
            raise _incomplete(trace, missing[0])
        rows.append({dimension.short: texts[dimension.name] for dimension in step.asked})
    answer = {EVIDENCE: rows if step.items else rows[0], MEMORY: found.memory}
    # Servers that enforce the schema allow no blanks between its parts.
    return json.dumps(answer, ensure_ascii=False, separators=(",", ":"))


def _incomplete(trace: Trace, name: str) -> UserError:
    return UserError(
        f"the evidence on {trace.sample_id}, {trace.step} has no text on {name}: "
        "filter the traces first, `python -m training traces filter`"
    )


def prompt_version(rubric: Rubric, profile: Profile) -> str:
    """Digest, 12 hex digits, of the prompts an analyst of this profile is asked with; changes with their wording."""
    if profile == "chat":
        return prompts.template_digest()
    shown = []
    for step in rubric.answered:
        numbers = range(1, (step.items.count if step.items else 0) + 1)
        # A quotation of its own for each item, so that all that are remembered show.
        rows = tuple({d.name: f'says "text number {number}"' for d in step.asked} for number in (0, *numbers))
        response = "\n".join(f"{number}. text number {number}" for number in numbers) or "text number 0"
        texts, items = ({}, rows[1:]) if step.items else (rows[0], ())
        trace = Trace(
            sample_id="",
            scenario_id="",
            scenario="scenario",
            subject="subject",
            step=step.name,
            response=response,
            memories={},
            noted={other.name: "memory" for other in rubric.answered},
            evidence=StepEvidence(step=step.name, texts=texts, items=items),
            items=tuple(numbers),
            teacher="",
        )
        shown += [f"{call.prompt}\0{answer}" for _, call, answer in compact_calls(trace, rubric, step)]
    return hashlib.sha256("\0".join(shown).encode()).hexdigest()[:12]


def drawn(rows: Sequence[SotRow], wanted: Mapping[str, int], seed: int) -> list[SotRow]:
    """As many rows of each step as `wanted` says: all of them as often as they fit, and the rest drawn with `seed`.

    Steps that it doesn't name have each row once. Rows keep their order.
    """
    times = dict.fromkeys(range(len(rows)), 1)
    for step, count in wanted.items():
        own = [index for index, row in enumerate(rows) if row.step == step]
        whole, rest = divmod(count, len(own)) if own else (0, 0)
        more = set(random.Random(f"{seed}/{step}").sample(own, rest))
        times |= {index: whole + (index in more) for index in own}
    return [row for index, row in enumerate(rows) for _ in range(times[index])]


def audit(rows: Sequence[SotRow], max_tokens: int, name: str) -> tuple[list[SotRow], dict[str, Any]]:
    """Rows of at most `max_tokens`, and the counts that are printed before the first step.

    Raises UserError for a row that teaches nothing but the end token, and where no row is short enough.
    """
    empty = next((row for row in rows if row.taught < 2), None)
    if empty is not None:
        item = f", item {empty.item}" if empty.item else ""
        raise UserError(f"{empty.sample_id}, {empty.step}{item}: the row has no evidence to learn; filter the traces")
    kept = [row for row in rows if len(row.input_ids) <= max_tokens]
    if not kept:
        raise UserError(f"all {len(rows)} {name} rows are longer than max_row_tokens {max_tokens}: raise it")
    lengths = sorted(len(row.input_ids) for row in kept)
    taught = sorted(row.taught for row in kept)
    return kept, {
        "split": name,
        "rows": len(kept),
        "too_long": len(rows) - len(kept),
        "tokens": sum(lengths),
        "mean": round(sum(lengths) / len(lengths), 2),
        "p95": lengths[int(0.95 * (len(lengths) - 1))],
        "max": lengths[-1],
        "supervised": sum(taught),
        "per_row": f"{taught[0]}–{taught[-1]}",
    }


def rows_by_step(rows: Sequence[SotRow]) -> dict[str, int]:
    """Step → rows."""
    return dict(Counter(row.step for row in rows))
