"""How many prompt tokens of CreaEval a vLLM server takes from its prefix cache, on the 20 responses to one scenario.

    python -m inference serve --config configs/serving/cgpst_smollm2.yaml          # in another terminal
    python scripts/benchmarks/prefix_cache.py --base-url http://127.0.0.1:8000/v1

Prompts are those of an evaluation whose analyst writes the oracle evidence of simulated CGPST; the server reads each of
them and puts out one token, since only what it reads is measured.
"""

import argparse
import asyncio
import json

from eval.benchmarks.simulation.files import true_judgement
from eval.benchmarks.simulation.pools import scenario_pool
from eval.benchmarks.simulation.simulate import SimulatedResponse, simulate
from inference.engines.base import EngineConfig, build_engine
from inference.methods import METHODS, Ask, Asks, Settings
from inference.prompts.describe import EVIDENCE, MEMORY
from inference.records import Call, Completion, Sample, StepEvidence, Usage
from inference.rubric import Rubric, Step, load_rubric
from inference.schemas import NO_CHOICE

IN_FLIGHT = 16


def evidence_answer(step: Step, part: StepEvidence) -> str:
    """The answer of an analyst who found `part`."""

    def row(texts: dict[str, str]) -> dict[str, str]:
        chosen = {d.name: [*d.choices, NO_CHOICE] for d in step.asked if d.choices}
        return {
            d.short: texts[d.name] if texts[d.name] in chosen.get(d.name, [texts[d.name]]) else NO_CHOICE
            for d in step.asked
        }

    rows = row(part.texts) if step.items is None else [row(texts) for texts in part.items]
    return json.dumps({EVIDENCE: rows, MEMORY: part.memory}, ensure_ascii=False)


def asks(rubric: Rubric, response: SimulatedResponse, send: Ask) -> Asks:
    """An analyst with the oracle's answers, whose calls the server reads too, and a judge that only reads."""
    answers = [evidence_answer(s, part) for s, part in zip(rubric.answered, response.evidence, strict=True)]
    steps = iter(
        answer for step, answer in zip(rubric.answered, answers, strict=True) if any(response.texts[step.name])
    )

    async def analyse(call: Call) -> Completion:
        await send(call)
        return Completion(text=next(steps))

    async def judge(call: Call) -> Completion:
        await send(call)
        return Completion(text=truth_answer(rubric, response))

    return Asks(judge, analyse)


def truth_answer(rubric: Rubric, response: SimulatedResponse) -> str:
    """An answer that can be read, so that the judge is not asked again."""
    known = {(s.step, s.dimension, s.item): s for s in (*true_judgement(response, rubric).items, *response.truth)}

    def row(step: Step, item: int | None) -> dict[str, object]:
        found = {d.short: known.get((step.name, d.name, item)) for d in step.asked}
        return {
            d.short: (score.choice or int(score.value or 0)) if (score := found[d.short]) else (d.choices or (0,))[0]
            for d in step.asked
        }

    return json.dumps(
        {
            step.name: row(step, None) if step.items is None else [row(step, n + 1) for n in range(step.items.count)]
            for step in rubric.answered
        }
    )


async def measure(base_url: str, model: str, scenario: str) -> Usage:
    rubric = load_rubric("cgpst")
    engine = build_engine(EngineConfig(engine="openai", model=model, base_url=base_url, timeout=900))
    slots, total, calls = asyncio.Semaphore(IN_FLIGHT), dict.fromkeys(("prompt", "cached"), 0), 0

    async def send(call: Call) -> Completion:
        nonlocal calls
        async with slots:
            completion = await engine.complete(call.model_copy(update={"max_tokens": 1, "json_schema": None}))
        calls += 1
        total["prompt"] += completion.usage.prompt
        total["cached"] += completion.usage.cached
        return completion

    async def one(response: SimulatedResponse) -> None:
        texts = {step: "\n".join(filter(None, parts)) for step, parts in response.texts.items()}
        pool = scenario_pool(scenario)
        sample = Sample(id=response.id, scenario=pool.text, scenario_id=pool.id, responses=texts)
        await METHODS["creaeval"](rubric, sample, asks(rubric, response, send), Settings())

    await asyncio.gather(*(one(found) for found in simulate(rubric, 0) if found.parts.scenario == scenario))
    await engine.close()
    print(f"calls {calls}, prompt tokens {total['prompt']:,}, of these cached {total['cached']:,}")
    return Usage(**total)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base-url", default="http://127.0.0.1:8000/v1")
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--scenario", default="FS4")
    options = parser.parse_args()
    used = asyncio.run(measure(options.base_url, options.model, options.scenario))
    print(f"share from the prefix cache: {used.cached / used.prompt:.1%}")


if __name__ == "__main__":
    main()
