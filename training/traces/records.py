"""A trace, and a folder of them: a `datasets` directory with ``traces.json``, a card and the evidence by answer id.

A trace is the evidence on one step of one response, with what the analyst was shown of the response. Phase 1 learns to
write the evidence from the response, phase 2 to score the evidence as people scored the response.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eval.benchmarks.cgpst.exchange import write_evidence
from eval.benchmarks.cgpst.names import STEPS
from inference.config import StrictModel, validate
from inference.errors import UserError, named_list
from inference.files import os_errors, parse_json, write_text
from inference.prompts import template_digest
from inference.records import Finite, Sample, StepEvidence
from inference.rubric import Rubric, Step

INFO = "traces.json"
CARD = "README.md"
EVIDENCE = "evidence.json"
DROPPED = "dropped.jsonl"
ADVICE = "collect them anew with `python -m training traces collect`"


class Trace(StrictModel):
    """Evidence on one step of one response."""

    sample_id: str
    scenario_id: str
    scenario: str
    subject: str
    """Theme and one sentence of the scenario, in place of its text where a prompt has to be short; may be empty."""
    step: str
    response: str
    """Raw response to the step."""
    memories: dict[str, str]
    """Step → memory of the earlier steps, as the teacher was shown them."""
    noted: dict[str, str]
    """Step → memory of the earlier steps as code makes it of their evidence, for compact prompts."""
    evidence: StepEvidence
    items: tuple[int, ...] = ()
    """Numbers (from 1) of the items that are learned from; empty for steps without items."""
    human: dict[str, dict[str, Finite]] = {}
    """Rater → "step.dimension" → score of this step, sums left out."""
    judged: dict[str, Finite] = {}
    """ "step.dimension" → score that the teacher's judge gave; empty where it has none."""
    teacher: str
    repeat: int = 0

    @property
    def sample(self) -> Sample:
        """The response as far as the analyst needs it: this step of it."""
        return Sample(
            id=self.sample_id,
            scenario=self.scenario,
            scenario_id=self.scenario_id,
            subject=self.subject,
            responses={self.step: self.response},
        )

    @property
    def parts(self) -> int:
        """Items that are learned from, 1 for a step without items."""
        return len(self.items) if self.evidence.items else 1

    @property
    def kept(self) -> StepEvidence:
        """The evidence without the texts on items that are not learned from."""
        rows = tuple(row if number in self.items else {} for number, row in enumerate(self.evidence.items, 1))
        return self.evidence.model_copy(update={"items": rows})

    @property
    def whole(self) -> bool:
        """Whether all items of the step are learned from."""
        return len(self.items) == len(self.evidence.items)


class Split(StrictModel):
    """Which part of a file of splits traces were kept to."""

    file: str
    name: str
    sha256: str


class TracesInfo(StrictModel):
    """``traces.json``: where traces come from and what was done to them."""

    teachers: dict[str, str]
    """Name → what it is: method and models of a judge, or the oracle of a simulation."""
    sources: tuple[str, ...]
    """Run directories, or the folder of a simulation."""
    rubric: Rubric
    rubric_digest: str
    prompts: str
    """Digest of the prompt templates by which the teacher was asked."""
    simulated: bool
    split: Split | None = None
    """None: all answers of the sources are there, those of a test included."""
    left_out: dict[str, int] = {}
    """Reason → answers that were not collected."""
    filtered: dict[str, Any] | None = None
    """Thresholds of the filter; None before it."""
    dropped: dict[str, int] = {}
    """Reason → items, and steps without items, that the filter dropped."""
    counts: dict[str, int] = {}
    """samples, scenarios, traces, parts."""


def step_of(rubric: Rubric, name: str) -> Step:
    return {step.name: step for step in rubric.answered}[name]


def counts(traces: Sequence[Trace]) -> dict[str, int]:
    """How many samples, scenarios, traces (steps) and parts (items, and steps without items) there are."""
    return {
        "samples": len({trace.sample_id for trace in traces}),
        "scenarios": len({trace.scenario for trace in traces}),
        "traces": len(traces),
        "parts": sum(trace.parts for trace in traces),
    }


def write_traces(folder: Path, traces: Sequence[Trace], info: TracesInfo) -> None:
    """Write a new folder. Raises UserError where it holds files already, or there is nothing to write."""
    if not traces:
        raise UserError(f"{folder}: no trace is left to be written, so nothing was; lower the demands or collect more")
    check_new(folder)
    from datasets import Dataset

    from training.traces.card import card

    info = info.model_copy(update={"counts": counts(traces)})
    table = Dataset.from_list([_row(trace) for trace in traces])
    with os_errors(folder, "cannot be written; choose another folder"):
        table.save_to_disk(str(folder))
    write_text(folder / INFO, json.dumps(info.model_dump(mode="json", exclude_defaults=True), indent=1) + "\n")
    write_text(folder / CARD, card(traces, info))
    write_evidence_file(folder / EVIDENCE, traces, info.rubric)


def check_new(folder: Path) -> None:
    """Raises UserError where `folder` is a file or holds files."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} is a file or already holds files; choose a new folder, nothing is overwritten")


def read_info(folder: Path) -> TracesInfo:
    """Raises UserError for a folder without traces, and for traces whose rubric was changed afterwards."""
    path = folder / INFO
    if not path.is_file():
        raise UserError(f"{folder}: no {INFO} there, so it holds no traces; {ADVICE}")
    try:
        with os_errors(path, "cannot be read"):
            content = parse_json(path.read_bytes())
    except ValueError as error:
        raise UserError(f"{path}: not valid JSON ({error}); {ADVICE}") from None
    if not isinstance(content, dict):
        raise UserError(f"{path}: not the description of traces; {ADVICE}")
    info = validate(content, TracesInfo, str(path))
    if info.rubric.digest != info.rubric_digest:
        raise UserError(
            f"{path}: the rubric in it has digest {info.rubric.digest}, not the {info.rubric_digest} of the traces; "
            f"{ADVICE}"
        )
    return info


def read_traces(folder: Path) -> tuple[TracesInfo, list[Trace]]:
    """All traces of a folder. Raises UserError where it holds none, or a damaged table."""
    info = read_info(folder)
    from datasets import load_from_disk

    try:
        rows = list(load_from_disk(str(folder)))
        traces = [_trace(row) for row in rows]
    except Exception as error:  # pyarrow and datasets raise many kinds
        raise UserError(f"{folder}: the table cannot be read ({type(error).__name__}); {ADVICE}") from None
    return info, traces


def check_versions(info: TracesInfo, rubric: Rubric, where: str) -> None:
    """Raise UserError for traces of another rubric, or made with other prompts than those of this program."""
    if info.rubric_digest != rubric.digest:
        raise UserError(
            f"{where}: traces of the rubric {info.rubric.name}@{info.rubric_digest}, but the rubric is "
            f"{rubric.name}@{rubric.digest}; use the same rubric, or {ADVICE}"
        )
    if info.prompts != template_digest():
        raise UserError(
            f"{where}: traces of the prompt templates {info.prompts}, but this program has {template_digest()}; "
            f"run the teacher again and {ADVICE}"
        )


def refuse_test_ids(traces: Sequence[Trace], test: frozenset[str], where: str, splits: str) -> None:
    """Raise UserError where a sample of the test part is among `traces`."""
    found = sorted({trace.sample_id for trace in traces} & test)
    if found:
        raise UserError(
            f"{where}: {len(found)} test ids of {splits} are among the traces to be trained on ({named_list(found)}); "
            "collect with --splits, which leaves them out"
        )


def write_evidence_file(path: Path, traces: Sequence[Trace], rubric: Rubric) -> bool:
    """Write the evidence by answer id in the official layout, for training and judging phase 2; of repeats the first.

    A dropped item has no texts there. Returns False, and writes nothing, for a rubric of other steps
    than the benchmark's, which has no such layout.
    """
    if [step.label for step in rubric.answered] != list(STEPS):
        return False
    found: dict[str, dict[str, StepEvidence]] = {}
    for trace in traces:
        found.setdefault(trace.sample_id, {}).setdefault(trace.step, trace.kept)
    order = [step.name for step in rubric.answered]
    by_id = {name: [steps[step] for step in order if step in steps] for name, steps in found.items()}
    write_evidence(path, by_id, rubric)
    return True


_PACKED = ("memories", "noted", "evidence", "human", "judged")


def _row(trace: Trace) -> dict[str, Any]:
    """Plain columns; what has keys of its own in every row is JSON text."""
    row = trace.model_dump(mode="json")
    return {**row, **{name: json.dumps(row[name], ensure_ascii=False) for name in _PACKED}, "items": list(trace.items)}


def _trace(row: dict[str, Any]) -> Trace:
    packed = {name: parse_json(row[name]) for name in _PACKED}
    return Trace.model_validate({**row, **packed, "items": tuple(row["items"])})
