"""Qwen3.5 and several processes: LoRA on both kinds of attention, masks, DDP and FSDP2, resume, names vLLM needs."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("peft")

from safetensors.torch import load_file  # noqa: E402
from tiny_model import write_adapter, write_model  # noqa: E402
from tiny_qwen import write_qwen  # noqa: E402

from inference.adapters import check_base, note_base, read_adapter, tensor_shapes  # noqa: E402
from inference.config import read_yaml  # noqa: E402
from inference.engines.base import EngineConfig  # noqa: E402
from inference.engines.hf import HFEngine  # noqa: E402
from inference.errors import UserError  # noqa: E402
from inference.records import Call, Message  # noqa: E402
from inference.tokens import encode_chat, load_tokenizer  # noqa: E402
from training.export import merge_adapter, rename_to_base  # noqa: E402
from training.launch_check import check_world_size, check_wrapper, wrapper_of  # noqa: E402
from training.sot_rows import IGNORED, SotRow  # noqa: E402

torch.set_num_threads(1)

ROOT = Path(__file__).parents[2]
RUN = Path(__file__).with_name("scale_run.py")
TARGETS = read_yaml(ROOT / "configs" / "training" / "cgpst_sot_qwen9b.yaml")["lora_target_modules"]
LAUNCH = [sys.executable, "-m", "accelerate.commands.launch"]
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
STARTS = {
    "none": [sys.executable],
    "ddp": [*LAUNCH, "--multi_gpu", "--num_processes", "2", "--main_process_port", "0"],
    "fsdp2": TORCHRUN,
}
LINEAR = {"in_proj_qkv", "in_proj_z", "in_proj_b", "in_proj_a", "out_proj"}
FULL = {"q_proj", "k_proj", "v_proj", "o_proj"}
MLP = {"gate_proj", "up_proj", "down_proj"}
CALLS = [Call(prompt=f"{thing}: use it\n", grid=tuple("12345")) for thing in ("brick", "rope", "shoe")]


@pytest.fixture(scope="module")
def qwen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_qwen(tmp_path_factory.mktemp("qwen") / "model")


def launch(out: Path, model: Path, wrapper: str, **changes: Any) -> str:
    """Train six steps of eight rows in one process or in two, and return what was printed."""
    accumulation = 2 if wrapper == "none" else 1
    settings = {"out": str(out), "model": str(model), "wrapper": wrapper, "accumulation": accumulation, "max_steps": 6}
    command = [*STARTS[wrapper], str(RUN), json.dumps({**settings, **changes})]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def curve(out: Path) -> list[dict[str, float]]:
    found: list[dict[str, float]] = json.loads((out / "curve.json").read_text(encoding="utf-8"))
    return found


@pytest.fixture(scope="module")
def runs(qwen: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, str]]:
    """Wrapper → (output directory, what was printed) of the same run in one process, under DDP and under FSDP2."""
    folder = tmp_path_factory.mktemp("runs")
    return {wrapper: (folder / wrapper, launch(folder / wrapper, qwen, wrapper)) for wrapper in STARTS}


def test_lora_hits_both_kinds_of_attention_and_the_mlp(qwen: Path) -> None:
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    base = AutoModelForCausalLM.from_pretrained(qwen, dtype=torch.float32)
    adapted = get_peft_model(base, LoraConfig(r=2, target_modules=TARGETS))
    hit: dict[int, set[str]] = {}
    for name, weight in adapted.named_parameters():
        if weight.requires_grad:
            parts = name.split(".")
            side = parts.index("lora_A" if "lora_A" in parts else "lora_B")
            hit.setdefault(int(parts[parts.index("layers") + 1]), set()).add(parts[side - 1])
    assert hit == {0: LINEAR | MLP, 1: LINEAR | MLP, 2: LINEAR | MLP, 3: FULL | MLP}
    ids = torch.randint(0, 200, (2, 9), generator=torch.Generator().manual_seed(0))
    adapted(input_ids=ids, use_cache=False).logits.sum().backward()
    still = [n for n, p in adapted.named_parameters() if "lora_B" in n and (p.grad is None or not p.grad.abs().sum())]
    assert not still  # every one of them learns


def test_non_thinking_template_is_masked_up_to_the_evidence(qwen: Path) -> None:
    tokenizer = load_tokenizer(qwen)
    prompt = encode_chat(tokenizer, (Message(role="user", content="Write evidence. <think>"),))
    assert tokenizer.decode(prompt).endswith("<|im_start|>assistant\n<think>\n\n</think>\n\n")
    answer = tokenizer.encode('{"evidence":[]}', add_special_tokens=False)
    row = SotRow("s", "step1", None, [*prompt, *answer, tokenizer.eos_token_id], len(answer) + 1)
    taught = [token for token, label in zip(row.input_ids, row.labels, strict=True) if label != IGNORED]
    assert tokenizer.decode(taught) == '{"evidence":[]}<|im_end|>'
    assert row.labels[: len(prompt)] == [IGNORED] * len(prompt)


def test_launches_that_differ_from_what_was_asked_are_refused() -> None:
    check_world_size(None, 3)
    check_world_size(3, 3)
    with pytest.raises(UserError, match="expect_world_size is 2, but 1 process runs"):
        check_world_size(2, 1)
    check_wrapper(None, "ddp")
    check_wrapper("ddp", "ddp")
    with pytest.raises(UserError, match="expect_wrapper is fsdp2, but the model's wrapper is ddp"):
        check_wrapper("fsdp2", "ddp")
    assert wrapper_of(torch.nn.Linear(2, 2)) == "none"
    assert wrapper_of(torch.nn.DataParallel(torch.nn.Linear(2, 2))) == "data_parallel"


@pytest.mark.slow
@pytest.mark.parametrize("wrapper", ["ddp", "fsdp2"])
def test_two_processes_give_the_loss_curve_of_one(wrapper: str, runs: dict[str, tuple[Path, str]]) -> None:
    one, _ = runs["none"]
    two, printed = runs[wrapper]
    assert "from checkpoint None" in printed
    assert f"launched: world size 2, wrapper {wrapper}, device cpu" in printed
    assert len(curve(one)) == len(curve(two)) == 6
    for expected, found in zip(curve(one), curve(two), strict=True):
        assert found == pytest.approx(expected, rel=1e-4)
    for expected, found in zip(*(read_json(out / "scores.json") for out in (one, two)), strict=True):
        assert found == pytest.approx(expected, abs=1e-2)
    weights, others = (load_file(out / "adapter" / "adapter_model.safetensors") for out in (one, two))
    assert weights.keys() == others.keys()
    for name, weight in weights.items():
        torch.testing.assert_close(others[name], weight, rtol=0, atol=1e-3)
    assert max(weight.abs().max() for name, weight in weights.items() if "lora_B" in name) > 5e-3  # it has learned


@pytest.mark.slow
@pytest.mark.parametrize("wrapper", list(STARTS))
def test_checkpoints_resume(wrapper: str, qwen: Path, runs: dict[str, tuple[Path, str]], tmp_path: Path) -> None:
    whole, _ = runs[wrapper]
    shutil.copytree(whole, tmp_path / "out", ignore=shutil.ignore_patterns("checkpoint-6", "adapter", "curve.json"))
    assert "from checkpoint checkpoint-4" in launch(tmp_path / "out", qwen, wrapper)
    assert [entry["step"] for entry in curve(tmp_path / "out")] == [1, 2, 3, 4, 5, 6]
    for expected, found in zip(curve(whole), curve(tmp_path / "out"), strict=True):
        assert found == pytest.approx(expected, rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("wrapper", list(STARTS))
def test_adapters_have_the_names_of_vllms_wrapper(
    wrapper: str, qwen: Path, runs: dict[str, tuple[Path, str]], tmp_path: Path
) -> None:
    adapter = runs[wrapper][0] / "adapter"
    names = tensor_shapes(adapter / "adapter_model.safetensors")
    assert len(names) == 2 * (3 * 8 + 7)
    assert all(name.startswith("base_model.model.model.language_model.layers.") for name in names)
    assert check_base(read_adapter(adapter), qwen) == 31
    merge_adapter(adapter, tmp_path / "merged")
    assert tensor_shapes(tmp_path / "merged" / "model.safetensors") == tensor_shapes(qwen / "model.safetensors")


def grid(model: Path, adapter: Path | None = None) -> list[dict[str, float] | None]:
    settings = {"engine": "hf", "model": str(model), "adapter": str(adapter) if adapter else None}
    answers = HFEngine(EngineConfig.model_validate(settings)).compute(CALLS)
    return [getattr(answer, "grid_logprobs", None) for answer in answers]


@pytest.mark.parametrize("vision", [True, False])
def test_renamed_adapter_merged_weights_and_peft_agree(vision: bool, tmp_path: Path) -> None:
    """An adapter is trained on the language model alone; PEFT must find its weights again under the other names."""
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    model = write_qwen(tmp_path / "model", vision=vision)
    adapter = write_adapter(model, tmp_path / "adapter", size=3.0)
    trained = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32), adapter)
    ids = torch.tensor([load_tokenizer(model).encode(CALLS[0].prompt or "")])
    with torch.no_grad():
        expected = trained.eval()(input_ids=ids).logits[0, -1].log_softmax(-1)

    rename_to_base(adapter, model)
    note_base(adapter, model)
    prefix = "model.language_model." if vision else "model."
    names = list(tensor_shapes(adapter / "adapter_model.safetensors"))
    assert all(name.startswith(f"base_model.model.{prefix}layers.") for name in names)
    served = grid(model, adapter)
    assert served[0] is not None
    for digit, logprob in served[0].items():
        (token,) = load_tokenizer(model).encode(digit, add_special_tokens=False)
        assert logprob == pytest.approx(float(expected[token]), abs=1e-3)
    merge_adapter(adapter, tmp_path / "merged", model)
    wanted = read_json(model / "config.json")["architectures"]
    assert read_json(tmp_path / "merged" / "config.json")["architectures"] == wanted
    for one, other, base in zip(grid(tmp_path / "merged"), served, grid(model), strict=True):
        assert one == pytest.approx(other, abs=1e-3)
        assert one != pytest.approx(base, abs=1e-1)


def read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def test_adapters_of_other_models_keep_their_names(tmp_path: Path) -> None:
    model = write_model(tmp_path / "model")
    adapter = write_adapter(model, tmp_path / "adapter")
    before = (adapter / "adapter_model.safetensors").read_bytes()
    rename_to_base(adapter, model)
    assert (adapter / "adapter_model.safetensors").read_bytes() == before


def sft(start: list[str], model: Path, out: Path, **changes: str) -> subprocess.CompletedProcess[str]:
    """`training.sft` on the packaged sample ratings, two steps."""
    settings = {"model_name_or_path": str(model), "output_dir": str(out), "max_steps": "2", "report_to": "none"}
    options = [part for key, value in {**settings, **changes}.items() for part in (f"--{key}", value)]
    command = [*start, "-m", "training.sft", "--config", "configs/training/demo.yaml", *options]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=300)


def from_file(name: str) -> list[str]:
    return [*LAUNCH, "--config_file", f"configs/accelerate/{name}.yaml", "--main_process_port", "0"]


@pytest.mark.slow
@pytest.mark.skipif(torch.cuda.is_available(), reason="where there is a GPU, accelerate does not fall back")
@pytest.mark.parametrize(
    ("start", "asked", "words"),
    [
        ([*LAUNCH, "--cpu", "--num_processes", "2"], {"expect_world_size": "2"}, "but 1 process runs"),
        (
            [*from_file("fsdp2"), "--num_processes", "2"],
            {"expect_world_size": "2", "expect_wrapper": "fsdp2"},
            "the model's wrapper is ddp",
        ),
    ],
)
def test_silent_fallbacks_of_accelerate_are_refused(
    start: list[str], asked: dict[str, str], words: str, tmp_path: Path
) -> None:
    done = sft(start, write_model(tmp_path / "model"), tmp_path / "out", **asked)
    assert done.returncode != 0
    assert words in done.stderr
    assert not list((tmp_path / "out").glob("adapter"))


@pytest.mark.slow
def test_ddp_config_for_a_cpu_starts_two_processes(tmp_path: Path) -> None:
    model = write_model(tmp_path / "model")
    done = sft(from_file("ddp_cpu"), model, tmp_path / "out", expect_world_size="2", expect_wrapper="ddp")
    assert done.returncode == 0, done.stderr[-3000:]
    assert "launched: world size 2, wrapper ddp, device cpu" in done.stdout
    assert check_base(read_adapter(tmp_path / "out" / "adapter"), model) == 14


@pytest.mark.gpu
@pytest.mark.parametrize(("name", "wrapper"), [("single_gpu", "none"), ("fsdp2", "fsdp2"), ("zero3", "deepspeed")])
def test_accelerate_configs_train_on_gpus(name: str, wrapper: str, tmp_path: Path) -> None:
    if not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    if wrapper == "deepspeed":
        pytest.importorskip("deepspeed")
    count = 1 if wrapper == "none" else torch.cuda.device_count()
    model = write_qwen(tmp_path / "model")
    asked = {"expect_world_size": str(count), "expect_wrapper": wrapper, "use_cpu": "false", "bf16": "true"}
    done = sft([*from_file(name), "--num_processes", str(count)], model, tmp_path / "out", **asked)
    assert done.returncode == 0, done.stderr[-3000:]
    assert f"launched: world size {count}, wrapper {wrapper}" in done.stdout
    assert check_base(read_adapter(tmp_path / "out" / "adapter"), model) == 31


@pytest.mark.slow
def test_settings_of_the_9b_configs_train(qwen: Path, tmp_path: Path) -> None:
    """bfloat16 weights and products, gradient checkpointing and the LoRA targets, on the tiny model and a CPU."""
    config = read_yaml(ROOT / "configs" / "training" / "cgpst_sft_evidence_qwen9b.yaml")
    names = ("dtype", "bf16", "gradient_checkpointing", "gradient_checkpointing_kwargs", "lora_target_modules")
    taken = {name: json.dumps(config[name]) for name in names}
    done = sft([sys.executable], qwen, tmp_path / "out", **taken, expect_world_size="1", expect_wrapper="none")
    assert done.returncode == 0, done.stderr[-3000:]
    weights = load_file(tmp_path / "out" / "adapter" / "adapter_model.safetensors")
    assert len(weights) == 62
    assert all(weight.isfinite().all() and weight.any() for weight in weights.values())
