"""What a benchmark is once it is loaded: samples with human scores, and named splits of them."""

from collections.abc import Mapping
from dataclasses import dataclass

from inference.records import Sample


@dataclass(frozen=True)
class Benchmark:
    """The result of every loader in this package."""

    name: str
    samples: tuple[Sample, ...]
    """In file order; judged once, whatever the number of splits."""
    splits: Mapping[str, frozenset[str]]
    """Split name → ids of its samples. Splits may overlap: ``test_clean`` is a part of ``test``."""
    chosen: str = ""
    """How the samples were chosen, such as "30 of 60 samples, chosen with seed 0"; empty where all were taken."""
    simulated: bool = False
    """True where the samples or ratings were made for demonstration, not gathered from people."""
