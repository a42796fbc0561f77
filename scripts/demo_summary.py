"""The closing words of the demo: what was found, where the report lies, what to try next.

python scripts/demo_summary.py runs/demo/eval
"""

import sys
from pathlib import Path

from eval.rows import MetricRow, read_rows


def main(run: Path) -> None:
    found = {
        row.judge: row
        for row in read_rows(run / "metrics.jsonl")
        if (row.metric, row.score, row.split) == ("pearson", "value", "test")
    }
    learned, prompted = found["smollm2_learned"], found["smollm2_prompted"]
    print(f"Agreement with the sample ratings: learned judge {shown(learned)}, prompted base model {shown(prompted)}.")
    print(f"These ratings were written for demonstration (n = {learned.n}); they say nothing about real raters.")
    print(f"Report: {run / 'report.html'}")
    print("Next, your own responses in a CSV with the columns id, object, response:")
    print("  .venv/bin/python -m inference judge --config configs/judging/aut_openai.yaml --input mine.csv --dry-run")
    print("and a judge from real ratings:")
    print("  .venv/bin/python -m eval data fetch aut")
    print("  .venv/bin/accelerate launch --quiet --cpu -m training.sft --config configs/training/aut_smollm2.yaml")


def shown(row: MetricRow) -> str:
    if row.value is None:
        return "r = undefined (its scores are constant)"
    interval = "" if row.low is None or row.high is None else f" [{row.low:.2f}, {row.high:.2f}]"
    return f"r = {row.value:.2f}{interval}"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
