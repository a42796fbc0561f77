"""Single triples with an evaluator's scores: how learned evaluators see them, and the benchmark they are held to.

The texts here are what an evaluator is trained on and asked with.
"""

from typing import Literal

from eval.benchmarks.base import Benchmark
from eval.create.records import Triple
from inference.config import StrictModel
from inference.rubric import Rubric
from inference.samples import Columns, read_samples

COLUMNS = Columns(scenario="connection", response="triple")


def triple_text(triple: Triple) -> str:
    """``head | relation | tail``."""
    return " | ".join(triple)


def connection(entity_a: str, entity_b: str) -> str:
    """What a path connects: the scenario of its triples, and the cluster of the intervals."""
    return f"{entity_a} to {entity_b}"


class TriplesConfig(StrictModel):
    """``benchmark:`` of an evaluation config."""

    name: Literal["create_triples"]
    test: str
    """CSV of scored triples, as ``python -m eval create triples`` writes it."""
    columns: Columns = COLUMNS

    @property
    def files(self) -> dict[str, str | None]:
        """The input files by the key that names them."""
        return {"test": self.test}


def load(config: TriplesConfig, rubric: Rubric) -> Benchmark:
    """The triples with the scores of the rubric's dimension, all of them in the split ``test``.

    Raises UserError for unreadable files and faulty rows.
    """
    samples = tuple(read_samples(config.test, rubric, config.columns, rated=True))
    return Benchmark(config.name, samples, {"test": frozenset(sample.id for sample in samples)})
