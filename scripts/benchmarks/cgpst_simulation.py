"""Figures of simulated CGPST: agreement of its raters, lengths, repetition.

python scripts/benchmarks/cgpst_simulation.py --seed 0
"""

import argparse
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from eval.benchmarks.simulation.figures import rater_agreement, recurrence
from eval.benchmarks.simulation.simulate import simulate
from inference.rubric import load_rubric


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model", type=Path, default=Path("models/smollm2-135m"), help="whose tokens are counted")
    options = parser.parse_args()
    rubric = load_rubric("cgpst")
    responses = list(simulate(rubric, options.seed))
    agreement = rater_agreement(responses, rubric)
    for key, value in agreement.items():
        print(f"ICC(2,1) {key:28s} {value:.3f}")
    print(f"ICC(2,1) mean of {len(agreement)} dimensions: {np.mean(list(agreement.values())):.3f}")
    tokenizer = Tokenizer.from_file(str(options.model / "tokenizer.json"))
    for step in rubric.answered:
        lengths = [len(tokenizer.encode("\n".join(response.texts[step.name])).ids) for response in responses]
        print(f"tokens {step.name}: mean {np.mean(lengths):.0f}, p95 {np.percentile(lengths, 95):.0f}")
    shares = list(recurrence(responses).values())
    print(f"8-grams that recur in another response: mean {np.mean(shares):.1%}, most {max(shares):.1%}")


if __name__ == "__main__":
    main()
