"""The analyst's trainer: its loss is TRL's, computed at the supervised positions alone; steps that are repeated."""

import random
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("trl")

from peft import LoraConfig, get_peft_model  # noqa: E402
from tiny_model import write_model  # noqa: E402
from trace_files import write_files  # noqa: E402
from transformers import AutoModelForCausalLM  # noqa: E402
from trl.trainer.sft_trainer import SFTTrainer  # noqa: E402

from inference.errors import UserError  # noqa: E402
from inference.tokens import load_tokenizer  # noqa: E402
from training.sot_fit import prepare  # noqa: E402
from training.sot_rows import SotRow, rows_by_step  # noqa: E402
from training.sot_settings import SotSettings, load_parts  # noqa: E402
from training.sot_trainer import SotArguments, SotTrainer  # noqa: E402
from training.traces.collect import collect_oracle  # noqa: E402


@pytest.fixture
def trainer(tmp_path: Path) -> SotTrainer:
    write_model(tmp_path / "model")
    torch.manual_seed(0)
    base = AutoModelForCausalLM.from_pretrained(tmp_path / "model", dtype=torch.float32)
    model = get_peft_model(base, LoraConfig(r=4, target_modules="all-linear", init_lora_weights=False))
    draw = random.Random(0)
    lengths = [(9, 2), (14, 5), (14, 13), (20, 7)]
    rows = [SotRow("a", "s", None, [draw.randrange(5, 60) for _ in range(all_)], taught) for all_, taught in lengths]
    args = SotArguments(
        output_dir=str(tmp_path / "out"),
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        report_to="none",
        per_device_train_batch_size=4,
    )
    tokenizer = load_tokenizer(tmp_path / "model")
    return SotTrainer(rows=rows, validation=rows[:1], model=model, args=args, processing_class=tokenizer)


def gradients(trainer: SotTrainer, loss: Any) -> list[Any]:
    trainer.model.zero_grad()
    loss.backward()
    return [weight.grad.clone() for weight in trainer.model.parameters() if weight.grad is not None]


@pytest.mark.parametrize("items", [None, 100])
def test_the_loss_is_trls(trainer: SotTrainer, items: int | None) -> None:
    batch = next(iter(trainer.get_train_dataloader()))
    ours = trainer.compute_loss(trainer.model, dict(batch), num_items_in_batch=items)
    theirs = SFTTrainer.compute_loss(trainer, trainer.model, dict(batch), num_items_in_batch=items)
    torch.testing.assert_close(ours, theirs)
    for mine, other in zip(gradients(trainer, ours), gradients(trainer, theirs), strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-6)


def test_logits_are_computed_where_loss_falls(trainer: SotTrainer) -> None:
    seen = []
    trainer.head.register_forward_hook(lambda _module, _args, out: seen.append(tuple(out.shape[:-1])))
    batch = next(iter(trainer.get_train_dataloader()))
    trainer.compute_loss(trainer.model, dict(batch))
    assert seen == [(2 + 5 + 13 + 7,)]
    assert trainer.mean_loss() > 0


def test_rows_of_a_step_and_unknown_steps(tmp_path: Path) -> None:
    write_files(tmp_path / "data")
    collect_oracle(tmp_path / "data", tmp_path / "traces", splits=None)
    write_model(tmp_path / "model")
    settings = {"rubric": "cgpst", "traces": str(tmp_path / "traces"), "max_row_tokens": 8192}
    data = SotSettings.model_validate({**settings, "step_rows": {"step1": 3, "step2": 9}})
    tokenizer = load_tokenizer(tmp_path / "model")
    parts = load_parts(data)
    everything = prepare(parts, tokenizer, SotSettings.model_validate(settings))[0]["train"]
    limited, counts = prepare(parts, tokenizer, data)
    found = rows_by_step(limited["train"])
    assert rows_by_step(everything)["step2"] == 4
    assert found == rows_by_step(everything) | {"step1": 3, "step2": 9}
    assert {limited["train"].count(row) for row in everything if row.step == "step2"} == {2, 3}
    assert counts[0]["rows"] == sum(found.values())
    assert limited == prepare(parts, tokenizer, data)[0]
    assert limited != prepare(parts, tokenizer, data.model_copy(update={"split_seed": 1}))[0]
    with pytest.raises(UserError, match=r"step_rows: step9 is no step that is answered; those are step1"):
        load_parts(SotSettings.model_validate({**settings, "step_rows": {"step9": 2}}))
    with pytest.raises(ValueError, match="step2: 0 rows teach nothing"):
        SotSettings.model_validate({**settings, "step_rows": {"step2": 0}})
