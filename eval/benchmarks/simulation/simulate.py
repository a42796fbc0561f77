"""The whole simulation: ten scenarios × twenty responses (or others), true scores, two raters, oracle evidence."""

from collections.abc import Iterator
from dataclasses import dataclass

from eval.benchmarks.simulation.analyst import Analyst
from eval.benchmarks.simulation.decks import generator
from eval.benchmarks.simulation.draw import RESPONDENTS, Respondents
from eval.benchmarks.simulation.levels import true_scores
from eval.benchmarks.simulation.parts import ResponseParts
from eval.benchmarks.simulation.pools import SCENARIOS, scenario_pool, voice_pool
from eval.benchmarks.simulation.raters import RATERS, rate
from eval.benchmarks.simulation.writer import Writer
from inference.records import Score, StepEvidence
from inference.rubric import Rubric

SAMPLE_SPLIT_SHARE = 0.7
"""Share of the responses of each scenario that the split by sample trains on."""


@dataclass(frozen=True)
class SimulatedResponse:
    """One response and everything that is known of it."""

    parts: ResponseParts
    texts: dict[str, tuple[str, ...]]
    """Step name → its texts: one per item in steps 1, 3 and 4, else a single one."""
    truth: tuple[Score, ...]
    """Scores without noise, of what is asked of a judge."""
    ratings: dict[str, tuple[Score, ...]]
    """Rater → scores of what is asked."""
    evidence: tuple[StepEvidence, ...]

    @property
    def id(self) -> str:
        return self.parts.id


def simulate(rubric: Rubric, seed: int, respondents: range = RESPONDENTS) -> Iterator[SimulatedResponse]:
    """The responses of `respondents` (numbers from 1), scenario by scenario. `rubric` is ``cgpst``.

    What a respondent answers is the same for the same seed on every machine, whoever else is asked for.
    """
    for scenario in SCENARIOS:
        pool = scenario_pool(scenario)
        voice = voice_pool(pool.voice)
        drawn, writer = Respondents(seed, pool, voice), Writer(seed, pool, voice)
        for number in range(1, respondents.stop):
            parts = drawn.response(number)  # those before the first as well: all draw from the same decks
            written = writer.response(parts)
            if number not in respondents:
                continue
            truth = true_scores(parts)
            yield SimulatedResponse(
                parts=parts,
                texts=written.steps,
                truth=truth,
                ratings={
                    rater: tuple(rate(rubric, parts, truth, rater, generator(seed, parts.id, rater)))
                    for rater in RATERS
                },
                evidence=Analyst(parts, written, generator(seed, parts.id, "analyst")).evidence(),
            )


def splits(seed: int, respondents: range = RESPONDENTS) -> dict[str, dict[str, list[str]]]:
    """Split by scenario (the scenarios of the voice ``test`` are held out) and by sample, as lists of ids, 7:3 each."""
    by_scenario: dict[str, list[str]] = {"train": [], "test": []}
    by_sample: dict[str, list[str]] = {"train": [], "test": []}
    for scenario in SCENARIOS:
        ids = [f"A{number:02d}_{scenario}" for number in respondents]
        by_scenario[scenario_pool(scenario).voice] += ids
        drawn = set(generator(seed, scenario, "split").sample(ids, round(SAMPLE_SPLIT_SHARE * len(ids))))
        for identifier in ids:
            by_sample["train" if identifier in drawn else "test"].append(identifier)
    return {"scenario": by_scenario, "sample": by_sample}
