"""``python -m eval data check FILE``: what is wrong with a file of the benchmark, or of its simulation.

Ratings, responses, evidence, scores, scenarios, splits, properties: which it is, is told by the content. Faults of
content are findings, each with its place; what is none of these files is a UserError.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval.benchmarks.cgpst.benchmark import SIDES
from eval.benchmarks.cgpst.check_exchange import (
    check_by_id,
    check_evidence,
    check_response,
    check_scenarios,
    check_scores,
)
from eval.benchmarks.cgpst.check_ratings import check_ratings
from eval.benchmarks.cgpst.check_splits import check_properties, check_splits
from eval.benchmarks.cgpst.check_whole import WHOLE
from eval.benchmarks.cgpst.exchange import EVIDENCE
from eval.benchmarks.cgpst.findings import Finding, Findings
from eval.benchmarks.cgpst.layout import read_json
from eval.benchmarks.cgpst.names import STEPS
from eval.benchmarks.cgpst.ratings import read_ratings
from eval.benchmarks.simulation.parts import ResponseParts
from inference.errors import UserError
from inference.files import read_json_lines

_STEP_CHECKS = {"responses": check_response, "evidence": check_evidence, "scores": check_scores}


@dataclass(frozen=True)
class Checked:
    """What a check of a file gave."""

    kind: str
    """Ratings, responses, evidence, scores, scenarios, splits or properties; "nothing" of an empty file."""
    samples: int
    """Answers in the file, or scenarios."""
    findings: list[Finding]

    @property
    def errors(self) -> int:
        return sum(finding.kind == "error" for finding in self.findings)

    @property
    def summary(self) -> str:
        """One line: what the file is, how many samples, errors and notes."""
        counts = {
            "scenario" if self.kind == "scenarios" else "sample": self.samples,
            "error": self.errors,
            "note": len(self.findings) - self.errors,
        }
        return f"{self.kind}: " + ", ".join(f"{n} {name}{'' if n == 1 else 's'}" for name, n in counts.items())


def check_file(path: Path | str) -> list[Finding]:
    """All findings on a file, in its order. Raises UserError for what is none of the benchmark's files."""
    return inspect_file(path).findings


def inspect_file(path: Path | str) -> Checked:
    """The same with what the file is and how much it holds."""
    findings = Findings()
    if Path(path).suffix == ".jsonl":
        rows = _property_rows(path)
        check_properties(rows, findings)
        return Checked("properties", len(rows), findings.finish())
    content = read_json(path)
    if content in ([], {}):
        findings.error(WHOLE, "nothing is in it")
        return Checked("nothing", 0, findings.finish())
    if isinstance(content, list):
        entries = read_ratings(path)
        check_ratings(entries, findings)
        return Checked("ratings", len(entries), findings.finish())
    kind, count = _kind(path, content), len(content)
    if kind == "splits":
        count = check_splits(content, findings)
    elif kind == "scenarios":
        check_scenarios(content, findings)
    else:
        check_by_id(content, _STEP_CHECKS[kind], findings)
    return Checked(kind, count, findings.finish())


def _property_rows(path: Path | str) -> list[tuple[int, dict[str, Any]]]:
    rows = list(read_json_lines(path))
    if not rows:
        raise UserError(f"{path}: nothing is in it; export it again")
    # Half of their keys: the rest may be the fault.
    known = len(ResponseParts.model_fields) / 2
    if not any(len(row.keys() & ResponseParts.model_fields.keys()) >= known for _, row in rows):
        raise UserError(
            f"{path}: is none of the benchmark's files: of those only a simulation's properties are JSON lines; "
            "responses for `python -m inference judge` are checked there, with --dry-run"
        )
    return rows


def _kind(path: Path | str, content: Any) -> str:
    """The kind of a file by id, told by the first answer that shows it."""
    for value in content.values() if isinstance(content, dict) else ():
        if not isinstance(value, dict):
            continue
        if "theme" in value or "text" in value:
            return "scenarios"
        if set(SIDES) & set(value):
            return "splits"
        for part in (value[step] for step in STEPS if step in value):
            if isinstance(part, str | list):
                return "responses"
            if isinstance(part, dict):
                return "evidence" if EVIDENCE in part else "scores"
    raise UserError(
        f"{path}: is none of the benchmark's files; those are a list of rated answers, or an object of responses, "
        "evidence or scores by answer id, of scenarios, or of splits"
    )
