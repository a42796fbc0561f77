"""Writing simulated CGPST in the official formats, every file named as simulated.

python -m eval data synth-cgpst --seed 0 --out runs/simulated_cgpst
"""

import json
import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from eval.benchmarks.cgpst.exchange import write_evidence, write_responses
from eval.benchmarks.cgpst.ratings import Entry, write_ratings
from eval.benchmarks.cgpst.samples import Rating, from_ratings
from eval.benchmarks.cgpst.scenarios import Scenario, write_scenarios
from eval.benchmarks.cgpst.score_json import write_scores
from eval.benchmarks.simulation.draw import RESPONDENTS
from eval.benchmarks.simulation.parts import ResponseParts
from eval.benchmarks.simulation.pools import SCENARIOS, scenario_pool
from eval.benchmarks.simulation.raters import RATERS
from eval.benchmarks.simulation.simulate import SAMPLE_SPLIT_SHARE, SimulatedResponse, simulate, splits
from inference.aggregation import aggregate
from inference.errors import UserError
from inference.files import read_json_lines, write_text
from inference.records import Judgement, Sample
from inference.rubric import Rubric, load_rubric

RATINGS = "simulated_ratings.json"
RESPONSES = "simulated_responses.json"
SCENARIO_FILE = "simulated_scenarios.json"
EVIDENCE = "simulated_evidence.json"
TRUE_SCORES = "simulated_true_scores.json"
PROPERTIES = "simulated_properties.jsonl"
SPLITS = "simulated_splits.json"
CARD = "simulated_README.md"
REASONS = {"perhaps": "Perhaps", "why": "Why", "solution": "Solution", "duplicate": "Duplicate", "blank": "Blank"}


def write_simulation(out: Path | str, seed: int = 0, respondents: range = RESPONDENTS) -> list[Path]:
    """Write all files into the folder `out`; same seed and respondents, same bytes, on every machine.

    Their names all begin with ``simulated_``: files of an earlier simulation are replaced, and no others.
    """
    out = Path(out)
    if out.is_file():
        raise UserError(f"{out}: is a file; name a folder for the simulated data")
    rubric = load_rubric("cgpst")
    responses = list(simulate(rubric, seed, respondents))
    scenarios = {name: scenario_pool(name) for name in SCENARIOS}
    write_scenarios(
        out / SCENARIO_FILE,
        {
            name: Scenario(pool.theme, pool.text, {"gist": pool.gist, "simulated": True})
            for name, pool in scenarios.items()
        },
    )
    write_ratings(out / RATINGS, [_entry(response, rubric) for response in responses])
    write_responses(out / RESPONSES, [_sample(response) for response in responses], rubric)
    write_evidence(out / EVIDENCE, {response.id: response.evidence for response in responses}, rubric)
    write_scores(out / TRUE_SCORES, [true_judgement(response, rubric) for response in responses], rubric)
    write_text(out / PROPERTIES, "".join(response.parts.model_dump_json() + "\n" for response in responses))
    write_text(out / SPLITS, json.dumps(splits(seed, respondents), indent=2) + "\n")
    card = files(__package__).joinpath("card.md").read_text(encoding="utf-8")
    command = f"python -m eval data synth-cgpst --seed {seed}"
    command += "" if respondents == RESPONDENTS else f" --first {respondents.start} --last {respondents[-1]}"
    count = len(respondents)
    train = round(SAMPLE_SPLIT_SHARE * count)
    slots = {"seed": seed, "command": command, "respondents": count, "responses": len(responses), "train": train}
    write_text(out / CARD, re.sub(r"\{\{ (\w+) \}\}", lambda slot: str(slots[slot[1]]), card))
    return [out / name for name in (SCENARIO_FILE, RATINGS, RESPONSES, EVIDENCE, TRUE_SCORES, PROPERTIES, SPLITS, CARD)]


def read_properties(path: Path | str) -> list[ResponseParts]:
    """The properties of a written simulation, in its order."""
    return [ResponseParts.model_validate(content) for _, content in read_json_lines(path)]


def true_judgement(response: SimulatedResponse, rubric: Rubric) -> Judgement:
    """The scores without noise, as a judgement."""
    return Judgement(
        sample_id=response.id,
        judge="truth",
        method="simulated",
        rubric=f"{rubric.name}@{rubric.digest}",
        scores=aggregate(rubric, response.truth),
        items=tuple(score for score in response.truth if score.item is not None),
    )


def _sample(response: SimulatedResponse) -> Sample:
    texts = {step: "\n".join(filter(None, parts)) for step, parts in response.texts.items()}
    pool = scenario_pool(response.parts.scenario)
    return Sample(id=response.id, scenario=pool.text, scenario_id=pool.id, responses=texts)


def _entry(response: SimulatedResponse, rubric: Rubric) -> Entry:
    ratings = [Rating(rater, response.ratings[rater], _reasons(response, rater)) for rater in RATERS]
    return from_ratings(response.id, response.parts.scenario, response.texts, ratings, rubric)


def _reasons(response: SimulatedResponse, rater: str) -> dict[tuple[str, int], str]:
    """Why the rater takes items not to count; one that counts in truth is taken for unclear."""
    kinds: dict[str, Sequence[str]] = {
        "step1": [part.kind for part in response.parts.challenges],
        "step3": [part.kind for part in response.parts.solutions],
    }
    return {
        (score.step, score.item): REASONS.get(kinds[score.step][score.item - 1], "Perhaps")
        for score in response.ratings[rater]
        if score.item is not None and score.dimension == "fluency" and score.value == 0
    }
