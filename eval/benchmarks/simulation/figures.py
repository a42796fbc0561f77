"""What is measured of a simulation: agreement of its raters, and how far its texts repeat each other."""

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

from eval.agreement import icc
from eval.benchmarks.simulation.pools import scenario_pool
from eval.benchmarks.simulation.raters import RATERS
from eval.benchmarks.simulation.simulate import SimulatedResponse
from inference.aggregation import aggregate
from inference.rubric import Rubric

GRAM = 8


def rater_agreement(responses: Sequence[SimulatedResponse], rubric: Rubric) -> dict[str, float]:
    """ICC(2,1) of the two raters for each reported dimension, ``step.dimension`` → value."""
    scores = [
        [{score.key: score.value for score in aggregate(rubric, response.ratings[rater])} for rater in RATERS]
        for response in responses
    ]
    keys = [f"{step.name}.{dimension.name}" for step, dimension in rubric.reported]
    return {
        key: icc(np.array([[rated[key] for rated in row] for row in scores], dtype=np.float64), "icc2_1")
        for key in keys
    }


def grams(text: str) -> list[tuple[str, ...]]:
    """All runs of eight words, lower case."""
    words = re.findall(r"\w+", text.lower())
    return [tuple(words[start : start + GRAM]) for start in range(len(words) - GRAM + 1)]


def recurrence(responses: Sequence[SimulatedResponse]) -> dict[str, float]:
    """Of each response, the share of its 8-grams that occur in another response to its scenario.

    Those of the scenario's own text are left out.
    """
    found: dict[str, float] = {}
    for scenario in {response.parts.scenario: None for response in responses}:
        given = set(grams(scenario_pool(scenario).text))
        own = {
            response.id: [gram for gram in grams("\n".join(sum(response.texts.values(), ()))) if gram not in given]
            for response in responses
            if response.parts.scenario == scenario
        }
        counts = Counter(gram for of_one in own.values() for gram in set(of_one))
        found |= {name: float(np.mean([counts[gram] > 1 for gram in of_one])) for name, of_one in own.items()}
    return found
