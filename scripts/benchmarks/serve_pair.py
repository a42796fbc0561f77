"""A learned analyst and a learned judge as two adapters in one vLLM, beside two merged models: speed and equality.

    python scripts/benchmarks/serve_pair.py --analyst runs/cgpst_sot/train/adapter \
        --judge runs/cgpst_sft_evidence_smollm2/train/adapter --samples 8

First `compact_creaeval` judges simulated CGPST with the adapters, and its calls are written down. Then each set-up
answers exactly these calls, the analyst's as many tokens long as they were (`ignore_eos`): the adapters side by side in
one engine, the merged models one after the other in an engine each. The set-ups alternate, each time in engines that
have just been started, whose start is not counted. Last, the judge's answers are held against PEFT in float32.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from concurrency import simulated

from inference.adapters import read_adapter
from inference.check_adapter import grid_table, largest_difference, largest_score_difference, read_directly, table_of
from inference.engines.base import Engine, EngineConfig
from inference.engines.hf import HFEngine
from inference.engines.vllm import VLLMEngine
from inference.errors import UserError
from inference.judgement_file import JudgementFile
from inference.judges import JudgeConfig
from inference.records import Call, Completion, Sample
from inference.rubric import Rubric, load_rubric
from inference.runner import run_judges
from inference.store import Store
from training.export import merge_adapter

ANALYST, JUDGE = "analyst", "judge"
EQUAL = 0.001
"""Expected scores count as equal up to this share of their range."""
WARM_UP = (Call(prompt="warm-up\n", max_tokens=8), Call(prompt="warm-up\n", grid=("0", "1")))

Calls = Mapping[str, Sequence[Call]]
"""Role → its calls."""
Settings = Mapping[str, EngineConfig]
"""Role → the settings of its engine."""


def main() -> None:
    options = _options()
    rubric = load_rubric("cgpst")
    adapters = {ANALYST: options.analyst, JUDGE: options.judge}
    if read_adapter(options.analyst).digest == read_adapter(options.judge).digest:
        raise UserError("--analyst and --judge are the same adapter: give one for each")
    base = options.model or read_adapter(options.judge).base_model
    shared = {"engine": "vllm"} | {name: getattr(options, name) for name in ("dtype", "max_model_len", "batch_size")}
    pair = {role: engine_config({**shared, "model": base, "adapter": path}) for role, path in adapters.items()}
    calls = record(simulated(rubric)[: options.samples], rubric, pair)
    print(f"calls of the analyst      {len(calls[ANALYST])}")
    print(f"calls of the judge        {len(calls[JUDGE])}")
    with tempfile.TemporaryDirectory() as folder:
        merged = {}
        for role, path in adapters.items():
            merge_adapter(Path(path), Path(folder) / role, Path(base))
            merged[role] = engine_config({**shared, "model": f"{folder}/{role}"})
        both, apart = alternate(pair, merged, calls, options.rounds)
    report_speed(both, apart)
    report_equality(both[0], apart[0], calls)
    report_precision(both[0], calls[JUDGE], options.prompts, pair[JUDGE])


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--analyst", required=True, help="directory of an adapter that training.sot has trained")
    parser.add_argument("--judge", required=True, help="directory of an adapter for the judge of evidence")
    parser.add_argument("--model", help="base model; by default what the judge's adapter names")
    parser.add_argument("--samples", type=positive, default=8, help="at most 200, in the order of the simulation")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--rounds", type=positive, default=2, help="how often each set-up answers the calls")
    parser.add_argument("--prompts", type=positive, default=64, help="prompts of the judge that PEFT answers, too")
    parser.add_argument("--batch-size", type=positive, default=32)
    parser.add_argument("--max-model-len", type=positive, default=2048)
    return parser.parse_args()


def positive(text: str) -> int:
    """A whole number from 1."""
    if (number := int(text)) < 1:
        raise ValueError
    return number


def engine_config(settings: Mapping[str, Any]) -> EngineConfig:
    return EngineConfig.model_validate(settings)


class Recorder:
    """An engine that writes down what it is asked, the texts as long as they turned out."""

    def __init__(self, engine: Engine) -> None:
        self.identity, self.calls = engine.identity, list[Call]()
        self._engine = engine

    async def complete(self, call: Call) -> Completion:
        completion = await self._engine.complete(call)
        self.calls.append(call if call.grid else call.model_copy(update={"max_tokens": completion.usage.completion}))
        return completion

    async def close(self) -> None:
        await self._engine.close()


def record(samples: Sequence[Sample], rubric: Rubric, pair: Settings) -> Calls:
    """All calls of `compact_creaeval` on `samples`, by role. Raises UserError where the judge is never asked."""
    judge = pair[JUDGE].model_dump(exclude_unset=True) | {"id": "pair", "method": "compact_creaeval"}
    judge["analyst"] = pair[ANALYST].model_dump(exclude_unset=True)
    recorders: dict[str | None, Recorder] = {}

    def build(config: EngineConfig) -> Recorder:
        return recorders.setdefault(config.adapter, Recorder(VLLMEngine(config)))

    with (
        tempfile.TemporaryDirectory() as folder,
        Store(Path(folder) / "calls.sqlite") as store,
        JudgementFile(Path(folder) / "judgements.jsonl") as sink,
    ):
        asyncio.run(run_judges(samples, [JudgeConfig.model_validate(judge)], rubric, store, sink, build=build))
    calls = {role: recorders[config.adapter].calls for role, config in pair.items()}
    if not calls[JUDGE]:
        raise UserError("the analyst wrote no evidence that can be read, so the judge was never asked: train it longer")
    return calls


class FixedLength(VLLMEngine):
    """Writes texts to their full length, so that all set-ups compute the same number of tokens."""

    def text_settings(self, call: Call) -> Any:
        settings = super().text_settings(call)
        settings.ignore_eos = True
        return settings


@dataclass
class Replay:
    """What a set-up made of the calls."""

    seconds: float = 0.0
    answers: dict[str, list[Completion]] = field(default_factory=dict)
    """Role → its answers, in the order of its calls."""

    @property
    def tokens(self) -> int:
        """Tokens of prompts and answers."""
        return sum(one.usage.prompt + one.usage.completion for part in self.answers.values() for one in part)

    @property
    def written(self) -> int:
        """Tokens of answers."""
        return sum(one.usage.completion for part in self.answers.values() for one in part)


def alternate(pair: Settings, merged: Settings, calls: Calls, rounds: int) -> tuple[list[Replay], list[Replay]]:
    """The replays of the pair and of the merged models."""
    both, apart = [], []
    for _ in range(rounds):
        both.append(asyncio.run(replay([pair], calls)))
        apart.append(asyncio.run(replay([{role: config} for role, config in merged.items()], calls)))
    return both, apart


async def replay(groups: Sequence[Settings], calls: Calls) -> Replay:
    """Group by group: start its engines, let them answer all their calls side by side, close them."""
    result = Replay()
    for group in groups:
        engines = {role: FixedLength(config) for role, config in group.items()}
        try:
            await asyncio.gather(*(engine.complete(call) for engine in engines.values() for call in WARM_UP))
            started = time.perf_counter()
            parts = await asyncio.gather(
                *(asyncio.gather(*map(engine.complete, calls[role])) for role, engine in engines.items())
            )
            result.seconds += time.perf_counter() - started
        finally:
            for engine in engines.values():
                await engine.close()
        result.answers |= {role: list(part) for role, part in zip(engines, parts, strict=True)}
    return result


def report_speed(both: Sequence[Replay], apart: Sequence[Replay]) -> None:
    """Tokens and seconds of each replay, and the ratio of all of them."""
    print(f"tokens per replay         {both[0].tokens}")
    print(f"of these written          {both[0].written}")
    for number, (one, other) in enumerate(zip(both, apart, strict=True), 1):
        print(f"round {number}, two adapters     {one.tokens / one.seconds:.1f} tokens/s in {one.seconds:.2f} s")
        print(f"round {number}, merged models    {other.tokens / other.seconds:.1f} tokens/s in {other.seconds:.2f} s")
    ratio = _rate(both) / _rate(apart)
    print(f"two adapters : merged     {ratio:.3f}")


def _rate(replays: Sequence[Replay]) -> float:
    return sum(one.tokens for one in replays) / sum(one.seconds for one in replays)


def report_equality(pair: Replay, merged: Replay, calls: Calls) -> None:
    """Shares of greedy texts that are equal, and how far the judge's answers lie apart."""
    texts = list(zip(pair.answers[ANALYST], merged.answers[ANALYST], strict=True))
    equal = sum(one.text == other.text for one, other in texts)
    print(f"equal texts               {equal / len(texts):.4f}")
    asked = calls[JUDGE]
    first, second = (table_of(part.answers[JUDGE], asked) for part in (pair, merged))
    apart = [
        largest_score_difference([one], [other], [call]) for one, other, call in zip(first, second, asked, strict=True)
    ]
    print(f"equal expected scores     {sum(value <= EQUAL for value in apart) / len(apart):.4f}")
    print(f"largest score difference  {max(apart):.6f} of the range")
    print(
        f"largest logprob diff.     {largest_difference(*(read_directly(part, asked) for part in (first, second))):.6f}"
    )


def report_precision(pair: Replay, calls: Sequence[Call], count: int, config: EngineConfig) -> None:
    """The judge's answers against PEFT in float32, on `count` prompts spread over all."""
    chosen = range(0, len(calls), max(1, len(calls) // count))[:count]
    asked = [calls[place] for place in chosen]
    served = table_of([pair.answers[JUDGE][place] for place in chosen], asked)
    reference = config.model_copy(update={"engine": "hf", "dtype": "float32"})
    peft = grid_table(HFEngine(reference, merge=False), asked)
    print(f"prompts against PEFT      {len(asked)}")
    print(f"PEFT, score difference    {largest_score_difference(served, peft, asked):.6f} of the range at most")
    apart = largest_difference(read_directly(served, asked), read_directly(peft, asked))
    print(f"PEFT, logprob difference  {apart:.6f} at most")


if __name__ == "__main__":
    try:
        main()
    except UserError as error:
        sys.exit(f"error: {error}")
