"""``python -m eval data check FILE``: what is wrong with a file of ratings, responses, evidence, scores or scenarios.

The kind of file is told by its content. Faults of content are findings, each with its place; what is none of these
files is a UserError.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval.benchmarks.cgpst.check_exchange import (
    check_by_id,
    check_evidence,
    check_response,
    check_scenario,
    check_scores,
)
from eval.benchmarks.cgpst.check_ratings import check_ratings
from eval.benchmarks.cgpst.exchange import EVIDENCE
from eval.benchmarks.cgpst.findings import Finding, Findings
from eval.benchmarks.cgpst.layout import read_json
from eval.benchmarks.cgpst.names import STEPS
from eval.benchmarks.cgpst.ratings import read_ratings
from inference.errors import UserError

_STEP_CHECKS = {"responses": check_response, "evidence": check_evidence, "scores": check_scores}


@dataclass(frozen=True)
class Checked:
    """What a check of a file gave."""

    kind: str
    """Ratings, responses, evidence, scores or scenarios."""
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
    content, findings = read_json(path), Findings()
    if isinstance(content, list):
        entries = read_ratings(path)
        check_ratings(entries, findings)
        return Checked("ratings", len(entries), findings.finish())
    kind = _kind(path, content)
    if kind == "scenarios":
        for name, value in content.items():
            check_scenario(name, value, findings)
    else:
        check_by_id(content, _STEP_CHECKS[kind], findings)
    return Checked(kind, len(content), findings.finish())


def _kind(path: Path | str, content: Any) -> str:
    """The kind of a file by id, told by the first answer that shows it."""
    for value in content.values() if isinstance(content, dict) else ():
        if not isinstance(value, dict):
            continue
        if "theme" in value or "text" in value:
            return "scenarios"
        for part in (value[step] for step in STEPS if step in value):
            if isinstance(part, str | list):
                return "responses"
            if isinstance(part, dict):
                return "evidence" if EVIDENCE in part else "scores"
    raise UserError(
        f"{path}: is none of the benchmark's files; those are a list of rated answers, or an object of responses, "
        "evidence or scores by answer id, or of scenarios"
    )
