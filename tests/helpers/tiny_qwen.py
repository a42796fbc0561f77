"""A tiny random Qwen3.5: three layers of linear attention, one of full attention, beside a vision model."""

import json
from pathlib import Path
from typing import Any

from tiny_model import write_model

SIZES: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
}
VISION = {
    "depth": 1,
    "hidden_size": 16,
    "intermediate_size": 16,
    "num_heads": 2,
    "out_hidden_size": 32,
    "num_position_embeddings": 16,
}
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>\n\n"
    "{% else %}<think>\n{% endif %}{% endif %}"
)
"""The part of Qwen3.5's chat template that matters here: without thinking an answer starts after an empty thought."""


def write_qwen(folder: Path, *, seed: int = 0, vision: bool = True) -> Path:
    """A model directory with the tokenizer of `tiny_model`; its architecture is vLLM's wrapper where `vision`."""
    import torch
    from transformers import Qwen3_5Config, Qwen3_5ForCausalLM, Qwen3_5ForConditionalGeneration, Qwen3_5TextConfig

    write_model(folder)
    set_template(folder)
    (folder / "model.safetensors").unlink()
    tokens = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    text = {**SIZES, "initializer_range": 0.2, "tie_word_embeddings": False}
    text.update({name: tokens[name] for name in ("vocab_size", "eos_token_id", "pad_token_id", "bos_token_id")})
    torch.manual_seed(seed)
    model: Any
    if vision:
        model = Qwen3_5ForConditionalGeneration(Qwen3_5Config(text_config=text, vision_config=VISION))
    else:
        model = Qwen3_5ForCausalLM(Qwen3_5TextConfig(**text))
    model.save_pretrained(folder)
    return folder


def set_template(folder: Path) -> None:
    """Give the tokenizer the chat template above."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder)
