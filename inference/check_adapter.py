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
from inference.records import Call
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


def check_adapter(config_path: Path) -> int:
    """Run the checks for every adapter of a serving config and print what was found; 0 where all hold, else 1.

    Raises UserError for a missing model and for an adapter that doesn't fit it.
    """
    config = load_config(config_path, ServeConfig)
    adapters = served_adapters(config)
    if not adapters:
        print(f"{config_path}: no adapters to check")
        return 0
    base = grid_table(HFEngine(_engine("hf", config)))
    results = []
    for name, adapter in adapters.items():
        print(f"{adapter.served_name(name)}  ({adapter.path}, rank {adapter.rank})")
        print(f"  (a) keys: all match, {check_base(adapter, config.model)} modules of {config.model}")
        peft = grid_table(HFEngine(_engine("hf", config, adapter.path), merge=False))
        served = grid_table(VLLMEngine(_engine("vllm", config, adapter.path)))
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


def grid_table(engine: LocalEngine) -> list[list[float]]:
    """Log-probabilities of the ten digits after each built-in prompt; the engine's model is released."""
    try:
        answers = engine.compute([Call(prompt=prompt, grid=GRID) for prompt in PROMPTS])
    finally:
        engine.release()
    table = []
    for answer in answers:
        if isinstance(answer, EngineError):
            raise UserError(f"the built-in prompts could not be computed: {answer}")
        table.append([(answer.grid_logprobs or {}).get(digit, -1e9) for digit in GRID])
    return table


def _engine(kind: str, config: ServeConfig, adapter: Path | None = None) -> EngineConfig:
    settings = {"engine": kind, "model": config.model, "adapter": str(adapter) if adapter else None}
    # The reference is computed in float32 whatever is served.
    dtype = config.dtype if kind == "vllm" else "float32"
    return EngineConfig.model_validate({**settings, "dtype": dtype, "max_model_len": config.max_model_len})


def _verdict(holds: bool) -> str:
    return "ok" if holds else "FAILED"
