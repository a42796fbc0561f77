"""Floors on simulated CGPST: ridge regression on the words of raw responses, and of the oracle evidence.

    python -m eval data synth-cgpst --seed 0 --out runs/simulated_cgpst
    python scripts/benchmarks/cgpst_floors.py --data runs/simulated_cgpst --out runs/floors.csv

Trains on the training part of a split and writes the scores of the test part by id.
"""

import argparse
from pathlib import Path
from typing import get_args

from eval.benchmarks.cgpst.benchmark import CgpstConfig, Split, load
from eval.benchmarks.cgpst.exchange import read_evidence
from eval.benchmarks.simulation.files import EVIDENCE, RATINGS, SCENARIO_FILE, SPLITS
from eval.floors import evidence_text, ridge_floor
from inference.records import Sample
from inference.rubric import load_rubric
from inference.score_file import write_scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of `data synth-cgpst`")
    parser.add_argument("--split", choices=get_args(Split), default="scenario")
    parser.add_argument("--out", type=Path, required=True, help="CSV file of scores by id")
    options = parser.parse_args()
    rubric = load_rubric("cgpst")

    def part(name: str) -> tuple[Sample, ...]:
        files = {"ratings": RATINGS, "scenarios": SCENARIO_FILE, "splits": SPLITS}
        paths = {key: str(options.data / file) for key, file in files.items()}
        return load(
            CgpstConfig.model_validate({"name": "cgpst", **paths, "split": options.split, "part": name}), rubric
        ).samples

    evidence = read_evidence(options.data / EVIDENCE, rubric)
    train, test = part("train"), part("test")

    def analysed(sample: Sample) -> dict[str, str]:
        return {step.name: evidence_text(evidence[sample.id], step.name) for step in rubric.answered}

    judgements = ridge_floor(
        "floor_raw", rubric, [(s, s.responses) for s in train], [(s, s.responses) for s in test]
    ) + ridge_floor("floor_evidence", rubric, [(s, analysed(s)) for s in train], [(s, analysed(s)) for s in test])
    write_scores(options.out, test, rubric, judgements, sums=False)
    print(f"{options.out}: scores of {len(test)} responses, trained on {len(train)}")


if __name__ == "__main__":
    main()
