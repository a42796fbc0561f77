"""The estimate of a run against what models, PEFT, autograd and the trainer really make."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("peft")

from tiny_model import write_model  # noqa: E402
from tiny_qwen import SIZES  # noqa: E402

from inference.config import read_yaml  # noqa: E402
from inference.errors import UserError  # noqa: E402
from training.dry_run import RoughTokenizer, take_flag  # noqa: E402
from training.estimate import Estimate, Plan, estimate, load, operations, saved_bytes  # noqa: E402
from training.shape import Shape, read_shape  # noqa: E402

torch.set_num_threads(1)

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "eval" / "benchmarks" / "samples"
TARGETS = read_yaml(ROOT / "configs" / "training" / "cgpst_sot_qwen9b.yaml")["lora_target_modules"]
LLAMA = {
    "hidden_size": 128,
    "intermediate_size": 384,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}
QWEN = {**LLAMA, "head_dim": 32, "linear_key_head_dim": 32, "linear_value_head_dim": 32, "vocab_size": 300}
QWEN |= {"linear_num_key_heads": 2, "linear_num_value_heads": 4}


def config_of(kind: str) -> Any:
    from transformers import LlamaConfig, Qwen3_5Config, Qwen3_5TextConfig

    return {
        "llama": LlamaConfig(**LLAMA, vocab_size=300, tie_word_embeddings=False),
        "tied": LlamaConfig(**LLAMA, vocab_size=300, tie_word_embeddings=True, attention_bias=True, mlp_bias=True),
        "text": Qwen3_5TextConfig(**SIZES, vocab_size=300),
        "vision": Qwen3_5Config(text_config={**SIZES, "vocab_size": 300}),
        "full": Qwen3_5TextConfig(**QWEN, layer_types=["full_attention"] * 2),
        "linear": Qwen3_5TextConfig(**QWEN, layer_types=["linear_attention"] * 2),
    }[kind]


def made(kind: str, folder: Path, device: str = "cpu") -> tuple[Any, Shape]:
    """A random model of a kind and its shape as read from the config file alone."""
    from transformers import AutoModelForCausalLM

    config = config_of(kind)
    config.save_pretrained(folder)
    with torch.device(device):
        return AutoModelForCausalLM.from_config(getattr(config, "text_config", config)), read_shape(folder)


def plan(**changes: Any) -> Plan:
    usual = {"dtype": "float32", "mixed": False, "rank": 8, "targets": "all-linear", "checkpointing": False}
    usual |= {"wrapper": "none", "world_size": 1, "accumulation": 1, "epochs": 1.0}
    return Plan(**{**usual, **changes})


@pytest.mark.parametrize("kind", ["llama", "tied", "text", "vision"])
def test_parameters_are_those_of_the_model_and_of_peft(kind: str, tmp_path: Path) -> None:
    from peft import LoraConfig, get_peft_model

    model, shape = made(kind, tmp_path, "meta")
    assert shape.parameters == model.num_parameters()
    for targets in ("all-linear", ["q_proj", "down_proj"], TARGETS):
        lora = get_peft_model(made(kind, tmp_path, "meta")[0], LoraConfig(r=4, target_modules=targets))
        found = shape.lora(4, targets)
        assert sum(found.values()) == sum(p.numel() for p in lora.parameters() if p.requires_grad)
    with pytest.raises(UserError, match="matches no module"):
        shape.lora(4, ["c_attn"])


def kept_bytes(model: Any, ids: Any, mixed: bool) -> int:
    """Bytes that autograd keeps for the backward pass of the decoder, parameters not counted."""
    fixed = {p.untyped_storage().data_ptr() for p in (*model.parameters(), *model.buffers())}
    found: dict[int, int] = {}
    alive = []

    def pack(tensor: Any) -> Any:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in fixed:
            found[storage.data_ptr()] = storage.nbytes()
            alive.append(tensor)
        return tensor

    autocast = torch.autocast("cpu", dtype=torch.bfloat16, enabled=mixed)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor), autocast:
        model.base_model.model.model(input_ids=ids, use_cache=False)
    return sum(found.values())


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("kind", ["llama", "full", "linear"])
def test_activations_are_about_what_autograd_keeps(kind: str, mixed: bool, tmp_path: Path) -> None:
    from peft import LoraConfig, get_peft_model

    model, shape = made(kind, tmp_path)
    dtype = torch.bfloat16 if mixed else torch.float32
    model = get_peft_model(model.to(dtype), LoraConfig(r=4, target_modules="all-linear")).train()
    ids = torch.randint(0, 300, (4, 192), generator=torch.Generator().manual_seed(0))
    measured = kept_bytes(model, ids, mixed)
    chosen = plan(dtype=str(dtype).removeprefix("torch."), mixed=mixed)
    counted = ids.numel() * sum(saved_bytes(shape, layer, chosen) for layer in shape.layers)
    # The reference implementation of linear attention, which runs here, keeps about twice what the kernels keep.
    low, high = (0.35, 0.75) if kind == "linear" else (0.85, 1.05)
    assert low < counted / measured < high


@pytest.mark.parametrize("kind", ["llama", "full"])
def test_operations_are_those_of_a_step(kind: str, tmp_path: Path) -> None:
    from peft import LoraConfig, get_peft_model
    from torch.utils.flop_counter import FlopCounterMode

    model, shape = made(kind, tmp_path)
    model.config._attn_implementation = "eager"  # whose products are counted
    model = get_peft_model(model, LoraConfig(r=4, target_modules="all-linear")).train()
    for name, weight in model.named_parameters():
        weight.requires_grad = "lora_" in name
    ids = torch.randint(0, 300, (4, 64), generator=torch.Generator().manual_seed(0))
    with FlopCounterMode(display=False) as counter:
        model(input_ids=ids, use_cache=False).logits.sum().backward()
    work = load([[(64, 64)] * 4])
    chosen = plan(rank=4)
    lora = sum(shape.lora(4, "all-linear").values())
    assert operations(shape, chosen, work, lora) == pytest.approx(counter.get_total_flops(), rel=0.06)
    again = plan(rank=4, checkpointing=True)
    assert 1.3 < operations(shape, again, work, lora) / operations(shape, chosen, work, lora) < 1.5


def test_counts_of_an_epoch_and_steps(tmp_path: Path) -> None:
    work = load([[(3, 1), (5, 1)], [(7, 1), (7, 1)], [(2, 1)]])
    assert (work.tokens, work.padded, work.batches, work.longest) == (24, 26, 3, (2, 7))
    assert (work.positions, work.longest_positions, work.squares) == (5, 2, 50 + 98 + 4)
    shape = made("llama", tmp_path, "meta")[1]

    def found(**changes: Any) -> Estimate:
        return estimate(shape, plan(**changes), work)

    assert found(epochs=2.0).steps == 6
    assert found(world_size=2).steps == 2
    assert found(world_size=2, accumulation=2).steps == 1
    assert found(max_steps=9).steps == 9
    assert found(max_steps=9).tokens == 72
    once = found()
    assert found(epochs=3.0).flops == pytest.approx(3 * once.flops)
    assert found(world_size=4).seconds(1.0) < once.seconds(1.0)
    assert once.peak - found(checkpointing=True).peak == once.plain - once.checkpointed > 0


def test_sharding_divides_what_is_kept_and_ddp_does_not(tmp_path: Path) -> None:
    shape = made("llama", tmp_path, "meta")[1]
    work = load([[(3, 1)]])
    alone, copied, sharded = (
        estimate(shape, plan(wrapper=wrapper, world_size=size), work)
        for wrapper, size in (("none", 1), ("ddp", 4), ("fsdp2", 4))
    )
    assert alone.weights == copied.weights == 4 * shape.parameters
    assert (sharded.adapters, sharded.gradients, sharded.optimizer) == (alone.lora, alone.lora, 2 * alone.lora)
    assert alone.optimizer == 8 * alone.lora


def test_models_it_does_not_know_are_named(tmp_path: Path) -> None:
    for text, words in (("{", "not valid JSON"), ("[]", "not the configuration"), ('{"model_type": "gpt2"}', "'gpt2'")):
        (tmp_path / "config.json").write_text(text, encoding="utf-8")
        with pytest.raises(UserError, match=words):
            read_shape(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "llama", "hidden_size": 8}', encoding="utf-8")
    with pytest.raises(UserError, match="is missing"):
        read_shape(tmp_path)


def test_options_of_a_dry_run() -> None:
    assert take_flag(["--config", "a"]) == (["--config", "a"], False, None)
    assert take_flag(["--dry-run", "--config", "a", "--tflops", "400"]) == (["--config", "a"], True, 400.0)
    for bad in (["--tflops", "400"], ["--dry-run", "--tflops", "-1"], ["--dry-run", "--tflops", "fast"]):
        with pytest.raises(UserError, match="--tflops"):
            take_flag(bad)
    assert len(RoughTokenizer().encode("a text of 21 letters.")) == 6


@pytest.mark.parametrize("tokenizer", [True, False])
def test_dry_run_needs_no_weights_and_writes_nothing(tokenizer: bool, tmp_path: Path) -> None:
    model = write_model(tmp_path / "full")
    bare = tmp_path / "model"
    bare.mkdir()
    for path in model.iterdir():
        if path.suffix != ".safetensors" and (tokenizer or not path.name.startswith("tokenizer")):
            shutil.copy(path, bare)
    settings = {"model_name_or_path": bare, "output_dir": tmp_path / "out", "bf16": "true", "use_cpu": "false"}
    options = [part for name, value in settings.items() for part in (f"--{name}", str(value))]
    command = [sys.executable, "-m", "training.sft", "--config", "configs/training/demo.yaml", *options]
    done = subprocess.run(
        [*command, "--dry-run", "--tflops", "1"], capture_output=True, text=True, cwd=ROOT, timeout=300
    )
    assert done.returncode == 0, done.stderr
    shape = read_shape(bare)
    assert f"{shape.parameters:,}" in done.stdout
    assert "steps" in done.stdout
    assert "at 1 TFLOP/s" in done.stdout
    assert ("characters / 4" in done.stdout) != tokenizer
    assert not (tmp_path / "out").exists()
    assert json.loads((bare / "config.json").read_text(encoding="utf-8"))["model_type"] == "llama"
