"""Judgements of a run in the layout of the released scripts, one file of scores and one of evidence for each judge.

python -m eval data export runs/mine --out exported
"""

from pathlib import Path

from eval.benchmarks.cgpst.exchange import write_evidence
from eval.benchmarks.cgpst.score_json import write_scores
from eval.run_files import load_run
from inference.errors import UserError


def export_run(run_dir: Path | str, out: Path | str) -> list[Path]:
    """Write ``<judge>_scores.json`` and, where there is evidence, ``<judge>_evidence.json``. Repeat 0 of each judge.

    Raises UserError where the run's rubric is not that of CGPST.
    """
    run, out = load_run(run_dir), Path(out)
    rubric = run.settings.rubric
    if rubric.name != "cgpst":
        raise UserError(f"{run_dir}: was judged by rubric {rubric.name}; the released layout is that of cgpst")
    written = []
    for judge in run.judges:
        found = [one for one in run.judgements if one.judge == judge and one.repeat == 0]
        scores = out / f"{judge}_scores.json"
        write_scores(scores, found, rubric)
        written.append(scores)
        evidence = {one.sample_id: one.evidence for one in found if one.evidence}
        if evidence:
            path = out / f"{judge}_evidence.json"
            write_evidence(path, evidence, rubric)
            written.append(path)
    return written
