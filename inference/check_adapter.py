"""Prove that adapters are served as they were trained.

    python -m inference check-adapter --config configs/serving/aut_smollm2.yaml

For every adapter of the file: (a) each of its keys matches a module of the model, (b) it changes the scores'
log-probabilities, (c) vLLM computes what PEFT computes. vLLM may drop an adapter's weights without an error and answer
with the base model; (b) and (c) together exclude that. Exit code 1 where one of them fails.
"""

from collections.abc import Sequence
from pathlib import Path

from inference.adapters import check_base
from inference.config import load_config
from inference.engines.base import EngineConfig, EngineError
from inference.engines.hf import HFEngine
from inference.engines.local import LocalEngine
from inference.engines.vllm import VLLMEngine
from inference.errors import UserError
from inference.records import Call, Completion
from inference.rubric import Dimension
from inference.scoring import grid_branches, score_from_logprobs
from inference.serve import ServeConfig, served_adapters

TOLERANCE = {"float32": 0.001, "bfloat16": 0.25}
"""Largest difference in natural log-probability that rounding explains. On a CPU, with two adapters of SmolLM2-135M
(ranks 4 and 16), float32 gave at most 0.00003 and bfloat16, compared with PEFT in float32, at most 0.145; the rest is
room for longer sums in larger models."""
CHANGE_FACTOR = 2.0
"""An adapter has to change some log-probability by this many tolerances; with less, (c) could hold for a base model
that ignores it."""

GRID = tuple("0123456789")
PROMPTS = (
    "brick: build a small dam in a stream\n",
    "rope: tie things together\n",
    "tin can: hang many in the wind as a choir of bells that tells the weather\n",
    "shoe: wear it\n",
    "newspaper: fold a hat that children read to each other from the inside\n",
    "bottle: hold water\n",
)
CALLS = tuple(Call(prompt=prompt, grid=GRID) for prompt in PROMPTS)
NO_LOGPROB = -1e9
"""Of a string that has no probability at all: JSON has no infinity."""


def check_adapter(config_path: Path) -> int:
    """Run the checks for every adapter of a serving config and print what was found; 0 where all hold, else 1.

    Raises UserError for a missing model and for an adapter that doesn't fit it.
    """
    config = load_config(config_path, ServeConfig)
    adapters = served_adapters(config)
    if not adapters:
        print(f"{config_path}: no adapters to check")
        return 0
    # All engines before the first is asked: they share one model, as in a server. It ends before others are loaded.
    engines = [VLLMEngine(_engine("vllm", config, adapter.path)) for adapter in adapters.values()]
    tables = [grid_table(engine) for engine in engines]
    base = grid_table(HFEngine(_engine("hf", config)))
    results = []
    for (name, adapter), served in zip(adapters.items(), tables, strict=True):
        print(f"{adapter.served_name(name)}  ({adapter.path}, rank {adapter.rank})")
        print(f"  (a) keys: all match, {check_base(adapter, config.model)} modules of {config.model}")
        peft = grid_table(HFEngine(_engine("hf", config, adapter.path), merge=False))
        results.append(report(base, peft, served, TOLERANCE[config.dtype]))
    return 0 if all(results) else 1


def report(
    base: Sequence[Sequence[float]],
    peft: Sequence[Sequence[float]],
    served: Sequence[Sequence[float]],
    tolerance: float,
) -> bool:
    """Print (b) and (c) for tables of log-probabilities (prompts × grid); True where both hold."""
    change, error = largest_difference(base, peft), largest_difference(peft, served)
    needed = CHANGE_FACTOR * tolerance
    changed, equal = change >= needed, error <= tolerance
    where = f"over {len(base)} prompts × {len(base[0])} score tokens"
    print(f"  (b) adapter and base differ by {change:.4f} {where}; needed {needed:g}: {_verdict(changed)}")
    print(f"  (c) vLLM and PEFT differ by {error:.6f} {where}; tolerance {tolerance:g}: {_verdict(equal)}")
    return changed and equal


def largest_difference(first: Sequence[Sequence[float]], second: Sequence[Sequence[float]]) -> float:
    """Largest absolute difference of two tables of the same shape."""
    pairs = zip(first, second, strict=True)
    return max(abs(a - b) for row, other in pairs for a, b in zip(row, other, strict=True))


def largest_score_difference(
    first: Sequence[Sequence[float]], second: Sequence[Sequence[float]], calls: Sequence[Call]
) -> float:
    """Largest difference of the expected scores of two tables, as a share of the range of its call (0 to 1)."""
    pairs = zip(_expected_scores(first, calls), _expected_scores(second, calls), strict=True)
    return max(abs(a - b) for a, b in pairs)


def _expected_scores(table: Sequence[Sequence[float]], calls: Sequence[Call]) -> list[float]:
    """Of each row the expected score over the call's grid, from 0 (lowest) to 1 (highest)."""
    found = []
    for row, call in zip(table, calls, strict=True):
        grid = call.grid or ()
        low, high = int(grid[0]), int(grid[-1])
        dimension = Dimension(name="score", description="a score", range=(low, high))
        value = score_from_logprobs("step", dimension, dict(zip(grid, row, strict=True))).value
        found.append(((low if value is None else value) - low) / (high - low))
    return found


def grid_table(engine: LocalEngine, calls: Sequence[Call] = CALLS) -> list[list[float]]:
    """Log-probabilities of the score strings of each call, in the order of its grid; the engine's model is released.

    Raises UserError where a call could not be computed.
    """
    try:
        answers = engine.compute(calls)
    finally:
        engine.release()
    for answer in answers:
        if isinstance(answer, EngineError):
            raise UserError(f"the prompts of the check could not be computed: {answer}")
    return table_of([answer for answer in answers if isinstance(answer, Completion)], calls)


def read_directly(table: Sequence[Sequence[float]], calls: Sequence[Call]) -> list[list[float]]:
    """`table` without the strings that begin others, such as 1 beside 10.

    Their probability is p(1) · (1 − p(0 | 1)): a difference that may be near zero, whose logarithm tells little.
    """
    return [
        [value for text, value in zip(call.grid or (), row, strict=True) if text not in grid_branches(call.grid or ())]
        for row, call in zip(table, calls, strict=True)
    ]


def table_of(answers: Sequence[Completion], calls: Sequence[Call]) -> list[list[float]]:
    """Log-probabilities of the score strings, a row a call; `NO_LOGPROB` for strings without any probability."""
    pairs = zip(answers, calls, strict=True)
    return [[(answer.grid_logprobs or {}).get(text, NO_LOGPROB) for text in call.grid or ()] for answer, call in pairs]


def _engine(kind: str, config: ServeConfig, adapter: Path | None = None) -> EngineConfig:
    settings = {"engine": kind, "model": config.model, "adapter": str(adapter) if adapter else None}
    # The reference is computed in float32 whatever is served.
    dtype = config.dtype if kind == "vllm" else "float32"
    return EngineConfig.model_validate({**settings, "dtype": dtype, "max_model_len": config.max_model_len})


def _verdict(holds: bool) -> str:
    return "ok" if holds else "FAILED"
