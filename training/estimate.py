"""Memory and time of a training run before it starts, from the model's ``config.json`` and the rows. No weights.

Printed by ``python -m training.sft --config … --dry-run [--tflops 400]``.

Formulas count what autograd keeps for LoRA on a frozen base model: a frozen matrix keeps no input, each LoRA module
its own. They agree with measured bytes of float32 and bfloat16 models to about 10 % (tests/training/test_estimate.py).
Not in them: the framework's own memory (about 1 GB on a GPU) and the allocator's fragmentation. Linear attention is
counted as flash-linear-attention computes it; without that package it keeps about twice as much.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from training.shape import Layer, Shape

BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
SHARED_BY_ALL = ("fsdp2", "deepspeed")
"""Wrappers that split weights, gradients and optimizer states among the processes."""
TILE = 4096 * 8192
"""Logits that TRL computes at once."""
CHUNK = 64
"""Tokens that flash-linear-attention takes at once."""


@dataclass(frozen=True)
class Plan:
    """What of a training config decides memory and time."""

    dtype: str
    """Of the base model's weights; adapters are float32."""
    mixed: bool
    """Whether products are taken in bfloat16."""
    rank: int
    targets: str | Sequence[str]
    checkpointing: bool
    wrapper: str
    world_size: int
    accumulation: int
    epochs: float
    tiled: bool = False
    """Whether logits are computed tile by tile, as TRL does for rows of text, and again in the backward pass."""
    max_steps: int = -1
    """Steps in place of epochs; -1 for epochs."""

    @property
    def half(self) -> bool:
        """Whether activations take two bytes."""
        return self.mixed or BYTES[self.dtype] == 2

    @property
    def shards(self) -> int:
        """Into how many parts weights, gradients and optimizer states are split."""
        return self.world_size if self.wrapper in SHARED_BY_ALL else 1


@dataclass(frozen=True)
class Load:
    """What is computed in one epoch, on all processes together."""

    tokens: int
    padded: int
    """Tokens with padding."""
    batches: int
    longest: tuple[int, int]
    """(sequences, tokens of each) of the batch with most tokens."""
    positions: int
    """Of all rows, where logits are computed."""
    longest_positions: int
    """The same of one batch, at most."""
    squares: int
    """Sum over the sequences of their length squared, for attention."""


@dataclass(frozen=True)
class Estimate:
    """Bytes of each device, and the run as a whole."""

    parameters: int
    lora: int
    weights: int
    adapters: int
    gradients: int
    optimizer: int
    logits: int
    plain: int
    """Activations of the longest batch without gradient checkpointing."""
    checkpointed: int
    """The same with it."""
    checkpointing: bool
    tokens: int
    padded: int
    steps: int
    flops: float
    world_size: int

    @property
    def peak(self) -> int:
        """Bytes a device needs at most."""
        activations = self.checkpointed if self.checkpointing else self.plain
        return self.weights + self.adapters + self.gradients + self.optimizer + self.logits + activations

    def seconds(self, tflops: float) -> float:
        """Time of the training steps at `tflops` (10¹² operations a second, sustained) on each device."""
        return self.flops / (tflops * 1e12 * self.world_size)


def load(batches: Sequence[Sequence[tuple[int, int]]]) -> Load:
    """Counts of one epoch. A batch is a list of sequences: (tokens, positions among them whose logits are needed)."""
    area = [len(batch) * max(tokens for tokens, _ in batch) for batch in batches]
    read = [sum(positions for _, positions in batch) for batch in batches]
    sequences = len(batches[area.index(max(area))])
    return Load(
        tokens=sum(tokens for batch in batches for tokens, _ in batch),
        padded=sum(area),
        batches=len(batches),
        longest=(sequences, max(area) // sequences),
        positions=sum(read),
        longest_positions=max(read),
        squares=sum(size * size // len(batch) for batch, size in zip(batches, area, strict=True)),
    )


def estimate(shape: Shape, plan: Plan, work: Load) -> Estimate:
    """See `Estimate`. Raises UserError where LoRA's targets match no module."""
    lora = sum(shape.lora(plan.rank, plan.targets).values())
    width = 2 if plan.half else 4
    tokens = work.longest[0] * work.longest[1]
    saved = [tokens * saved_bytes(shape, layer, plan) for layer in shape.layers]
    kept = tokens * shape.hidden * width
    steps_an_epoch = math.ceil(math.ceil(work.batches / plan.world_size) / plan.accumulation)
    steps = plan.max_steps if plan.max_steps > 0 else math.ceil(steps_an_epoch * plan.epochs)
    epochs = steps / steps_an_epoch
    return Estimate(
        parameters=shape.parameters,
        lora=lora,
        weights=weight_bytes(shape, plan),
        adapters=4 * lora // plan.shards,
        gradients=4 * lora // plan.shards,
        optimizer=8 * lora // plan.shards,
        logits=logit_bytes(shape, plan, work),
        plain=sum(saved) + kept,
        checkpointed=len(shape.layers) * kept + max(saved),
        checkpointing=plan.checkpointing,
        tokens=round(work.tokens * epochs),
        padded=round(work.padded * epochs),
        steps=steps,
        flops=operations(shape, plan, work, lora) * epochs,
        world_size=plan.world_size,
    )


def weight_bytes(shape: Shape, plan: Plan) -> int:
    """Bytes of the base model on each device, at most."""
    size = BYTES[plan.dtype]
    if plan.shards == 1:
        return size * shape.parameters
    # Beside its own part a device holds two whole layers, the one at work and the next, and embedding and head.
    whole = 2 * max(layer.parameters for layer in shape.layers) + shape.embedding * (1 if shape.tied else 2)
    return size * (shape.parameters // plan.shards + whole)


def logit_bytes(shape: Shape, plan: Plan, work: Load) -> int:
    """Bytes of the logits of one batch, of their float32 and its gradient; where `Plan.tiled` of one tile."""
    count = work.longest_positions * shape.vocabulary
    return 4 * min(count, TILE) if plan.tiled else count * ((2 if plan.half else 4) + 8)


def saved_bytes(shape: Shape, layer: Layer, plan: Plan) -> int:
    """Bytes per token that a layer keeps for its backward pass."""
    width, hidden = 2 if plan.half else 4, shape.hidden
    inner = next(rows for name, (rows, _) in layer.linear.items() if name in ("o_proj", "out_proj"))
    # In half precision each LoRA module makes its own copy of its input, otherwise those of one input share it.
    inputs = sum(rows for rows, _ in layer.linear.values()) if plan.half else 2 * hidden + inner + shape.intermediate
    numbers = inputs + 3 * shape.intermediate
    norms = 8 * hidden  # their inputs, in float32
    if layer.kind == "full_attention":
        numbers += (2 if plan.half else 1) * inner + 2 * shape.kv_heads * shape.head_dim
        if shape.model_type == "qwen3_5":  # output gate, and norms of queries and keys
            numbers += (2 if plan.half else 3) * inner
            norms += 4 * (inner + shape.kv_heads * shape.head_dim)
        return width * numbers + norms
    keys, values, key_size, _ = shape.linear_heads
    repeated = 2 * values * key_size if values > keys else 0
    numbers += 2 * layer.linear["in_proj_qkv"][1] + repeated + 2 * inner + CHUNK * values
    return width * numbers + norms + 12 * inner + 8 * values


def operations(shape: Shape, plan: Plan, work: Load, lora: int) -> float:
    """Floating-point operations of one epoch: forward, backward to the inputs and to LoRA, and the second forward pass.

    A product with a matrix of p parameters takes 2p a token in each pass. The base model gets no gradient of its own,
    so backward is one pass and not two; the output head is not checkpointed.
    """
    passes = 3 if plan.checkpointing else 2
    matrices = sum(rows * columns for layer in shape.layers for rows, columns in layer.linear.values())
    full = sum(layer.kind == "full_attention" for layer in shape.layers)
    # Scores and values, half of them masked; their backward pass computes twice as much.
    attention = full * 2 * shape.heads * shape.head_dim * work.squares * (passes + 1)
    _, values, key_size, value_size = shape.linear_heads
    # State times key, its update and state times query.
    recurrent = (len(shape.layers) - full) * 6 * values * key_size * value_size * work.padded * (passes + 1)
    head = 2 * (3 if plan.tiled else 2) * shape.embedding * work.positions
    return float(work.padded * (2 * matrices * passes + 2 * lora * (passes + 1)) + attention + recurrent + head)


def table(found: Estimate, plan: Plan, work: Load, tflops: float | None) -> list[tuple[str, str]]:
    """(what, how much) in the order in which it is printed."""
    chosen = "with" if found.checkpointing else "without"
    time = f"{duration(found.seconds(tflops))} at {tflops:g} TFLOP/s" if tflops else "give --tflops"
    return [
        ("parameters", f"{found.parameters:,}"),
        ("LoRA parameters", f"{found.lora:,} ({100 * found.lora / found.parameters:.2f} %)"),
        (f"weights, {plan.dtype}", gigabytes(found.weights)),
        ("LoRA weights, float32", gigabytes(found.adapters)),
        ("gradients", gigabytes(found.gradients)),
        ("optimizer states", gigabytes(found.optimizer)),
        ("longest batch", f"{work.longest[0]} × {work.longest[1]} tokens"),
        ("its logits", gigabytes(found.logits)),
        ("its activations without checkpointing", gigabytes(found.plain)),
        ("its activations with checkpointing", gigabytes(found.checkpointed)),
        (f"sum of each device, {chosen} checkpointing", gigabytes(found.peak)),
        ("devices and wrapper", f"{plan.world_size}, {plan.wrapper}"),
        ("tokens of the run", f"{found.tokens:,} ({found.padded:,} with padding)"),
        ("steps", f"{found.steps:,}"),
        ("operations", f"{found.flops:.3g}"),
        ("training time, evaluation not counted", time),
    ]


def duration(seconds: float) -> str:
    """Hours, minutes and seconds."""
    whole = math.ceil(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"


def gigabytes(count: int) -> str:
    """Bytes in units of 10⁹, as the memory of accelerators is given."""
    return f"{count / 1e9:.3f} GB"
