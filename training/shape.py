"""The sizes of a language model from its ``config.json`` alone: linear modules, parameters, attention. No weights.

Knows Llama (SmolLM2) and the text part of Qwen3.5, whose layers are of two kinds: full attention with an output gate,
and linear attention (gated delta rule).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inference.errors import UserError
from inference.files import os_errors, parse_json

LLAMA = ("llama",)
QWEN3_5 = ("qwen3_5_text", "qwen3_5")


@dataclass(frozen=True)
class Layer:
    """One decoder layer."""

    kind: str
    """``full_attention`` or ``linear_attention``."""
    linear: Mapping[str, tuple[int, int]]
    """Linear module → (inputs, outputs): what LoRA can be put on."""
    other: int
    """Parameters outside of those: norms, convolution, gates, biases."""

    @property
    def parameters(self) -> int:
        return sum(rows * columns for rows, columns in self.linear.values()) + self.other


@dataclass(frozen=True)
class Shape:
    """A decoder with its embedding and output head."""

    model_type: str
    hidden: int
    intermediate: int
    vocabulary: int
    tied: bool
    """Whether the output head is the embedding."""
    layers: tuple[Layer, ...]
    heads: int
    kv_heads: int
    head_dim: int
    linear_heads: tuple[int, int, int, int]
    """Of linear attention: key heads, value heads, key size, value size; zeros where no layer has it."""

    @property
    def embedding(self) -> int:
        return self.vocabulary * self.hidden

    @property
    def parameters(self) -> int:
        """All parameters of the language model."""
        head = 0 if self.tied else self.embedding
        return sum(layer.parameters for layer in self.layers) + self.embedding + head + self.hidden

    def lora(self, rank: int, targets: str | Sequence[str]) -> dict[str, int]:
        """Linear module → LoRA parameters over all layers. Raises UserError for targets that no module matches."""
        found: dict[str, int] = {}
        for layer in self.layers:
            for name, (rows, columns) in layer.linear.items():
                if targets == "all-linear" or name in targets:
                    found[name] = found.get(name, 0) + rank * (rows + columns)
        if not found:
            raise UserError(f"lora_target_modules {targets} matches no module of a {self.model_type} model")
        return found


def read_shape(model: Path | str) -> Shape:
    """The shape of the model in a directory. Raises UserError for a damaged config and for other architectures."""
    path = Path(model) / "config.json"
    try:
        with os_errors(path, "cannot be read"):
            config = parse_json(path.read_bytes())
    except (ValueError, json.JSONDecodeError) as error:
        raise UserError(f"{path}: not valid JSON ({error}); copy the model again") from None
    if not isinstance(config, dict):
        raise UserError(f"{path}: not the configuration of a model; copy the model again")
    # A Qwen3.5 checkpoint holds a vision model, too; judges are trained on its language model.
    text = config.get("text_config") or config
    kind = str(text.get("model_type", ""))
    try:
        if kind in LLAMA:
            return _llama(text)
        if kind in QWEN3_5:
            return _qwen3_5({**text, "tie_word_embeddings": config.get("tie_word_embeddings", False)})
    except (KeyError, TypeError) as error:
        raise UserError(f"{path}: {error} is missing or no number; copy the model again") from None
    raise UserError(f"{path}: no estimate for model_type {kind!r}, only for llama and qwen3_5")


def _llama(config: Mapping[str, Any]) -> Shape:
    hidden, heads = config["hidden_size"], config["num_attention_heads"]
    kv_heads = config.get("num_key_value_heads") or heads
    head_dim = config.get("head_dim") or hidden // heads
    linear = {
        "q_proj": (hidden, heads * head_dim),
        "k_proj": (hidden, kv_heads * head_dim),
        "v_proj": (hidden, kv_heads * head_dim),
        "o_proj": (heads * head_dim, hidden),
        **_mlp(config),
    }
    biased = [name for name in linear if config.get("mlp_bias" if name in _mlp(config) else "attention_bias")]
    layer = Layer("full_attention", linear, 2 * hidden + sum(linear[name][1] for name in biased))
    return Shape(
        model_type=config["model_type"],
        hidden=hidden,
        intermediate=config["intermediate_size"],
        vocabulary=config["vocab_size"],
        tied=bool(config.get("tie_word_embeddings", False)),
        layers=(layer,) * config["num_hidden_layers"],
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        linear_heads=(0, 0, 0, 0),
    )


def _qwen3_5(config: Mapping[str, Any]) -> Shape:
    every = config.get("full_attention_interval", 4)
    count = config["num_hidden_layers"]
    kinds = config.get("layer_types") or [
        "full_attention" if number % every == 0 else "linear_attention" for number in range(1, count + 1)
    ]
    made = {"full_attention": _full_attention(config), "linear_attention": _linear_attention(config)}
    return Shape(
        model_type="qwen3_5",
        hidden=config["hidden_size"],
        intermediate=config["intermediate_size"],
        vocabulary=config["vocab_size"],
        tied=bool(config["tie_word_embeddings"]),
        layers=tuple(made[kind] for kind in kinds),
        heads=config["num_attention_heads"],
        kv_heads=config["num_key_value_heads"],
        head_dim=config["head_dim"],
        linear_heads=_linear_heads(config),
    )


def _mlp(config: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    return {"gate_proj": (hidden, inner), "up_proj": (hidden, inner), "down_proj": (inner, hidden)}


def _full_attention(config: Mapping[str, Any]) -> Layer:
    hidden, size = config["hidden_size"], config["head_dim"]
    inner, outer = config["num_attention_heads"] * size, config["num_key_value_heads"] * size
    linear = {
        "q_proj": (hidden, 2 * inner),  # queries and their output gate
        "k_proj": (hidden, outer),
        "v_proj": (hidden, outer),
        "o_proj": (inner, hidden),
    }
    biases = sum(columns for _, columns in linear.values()) if config.get("attention_bias") else 0
    return Layer("full_attention", {**linear, **_mlp(config)}, 2 * hidden + 2 * size + biases)


def _linear_heads(config: Mapping[str, Any]) -> tuple[int, int, int, int]:
    names = ("num_key_heads", "num_value_heads", "key_head_dim", "value_head_dim")
    keys, values, key_size, value_size = (int(config[f"linear_{name}"]) for name in names)
    return keys, values, key_size, value_size


def _linear_attention(config: Mapping[str, Any]) -> Layer:
    hidden = config["hidden_size"]
    keys, values, key_size, value_size = _linear_heads(config)
    mixed, written = 2 * keys * key_size + values * value_size, values * value_size
    linear = {
        "in_proj_qkv": (hidden, mixed),
        "in_proj_z": (hidden, written),
        "in_proj_b": (hidden, values),
        "in_proj_a": (hidden, values),
        "out_proj": (written, hidden),
    }
    # Two norms of the layer, the convolution, dt_bias and A_log, the gated norm.
    other = 2 * hidden + mixed * config["linear_conv_kernel_dim"] + 2 * values + value_size
    return Layer("linear_attention", {**linear, **_mlp(config)}, other)
