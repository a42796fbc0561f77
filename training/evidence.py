"""Evidence for a judge of evidence to learn from: an official evidence file, or a folder of traces."""

from collections.abc import Collection, Iterable
from pathlib import Path

from eval.benchmarks.cgpst.exchange import read_evidence
from inference.errors import UserError
from inference.records import Sample, StepEvidence
from inference.rubric import Rubric
from training.data import Evidence
from training.traces.records import check_versions, read_traces, refuse_test_ids


def load_evidence(path: str, rubric: Rubric, test_ids: Collection[str]) -> Evidence:
    """Sample id → evidence by step.

    Of a file, evidence on other samples than those trained on is not used. A folder of traces must hold none on
    `test_ids`; of its repeats the first is taken, and items that the filter dropped have no texts.
    Raises UserError for another structure, and traces of another rubric or of other prompts.
    """
    folder = Path(path)
    if not folder.is_dir():
        return read_evidence(path, rubric)
    info, traces = read_traces(folder)
    check_versions(info, rubric, path)
    refuse_test_ids(traces, frozenset(test_ids), path, "the split")
    found: dict[str, dict[str, StepEvidence]] = {}
    for trace in traces:
        found.setdefault(trace.sample_id, {}).setdefault(trace.step, trace.kept)
    return {name: tuple(steps.values()) for name, steps in found.items()}


def need_evidence(samples: Iterable[Sample], evidence: Evidence, path: str) -> None:
    """Raise UserError where a sample has no evidence at all."""
    missing = [sample.id for sample in samples if not evidence.get(sample.id)]
    if missing:
        raise UserError(
            f"{path}: has no evidence on {len(missing)} of the answers, the first is {missing[0]}: give the evidence "
            "of the same data, or fewer answers with max_rows"
        )
