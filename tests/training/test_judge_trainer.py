"""JudgeTrainer on a tiny random Llama: positions, buckets, a committed loss curve, exact resume."""

import json
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("peft")

from peft import LoraConfig, get_peft_model  # noqa: E402
from transformers import LlamaConfig, LlamaForCausalLM, set_seed  # noqa: E402

from inference.grid import GridReader, logits_only_at  # noqa: E402
from training.arguments import JudgeTrainingArguments  # noqa: E402
from training.checkpoints import newest_complete  # noqa: E402
from training.data import Row  # noqa: E402
from training.judge_trainer import BucketSampler, JudgeTrainer, ScoreCollator  # noqa: E402
from training.losses import ce_loss, raft_loss, score_tensor  # noqa: E402

torch.set_num_threads(1)  # tiny matrices: threads only wait for each other, endlessly so on a busy machine

DIGITS = {str(digit): 40 + digit for digit in range(10)}
READERS = (GridReader(("1", "2", "3", "4", "5"), DIGITS), GridReader(tuple(map(str, range(11))), DIGITS))
RANGES = ((1, 5), (0, 10))
CURVE = Path(__file__).parent / "loss_curve.json"


def tiny_model() -> Any:
    set_seed(0)
    config = LlamaConfig(
        vocab_size=64,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        tie_word_embeddings=True,
        initializer_range=0.2,  # small random embeddings would cap the logits, and nothing could be learned
    )
    return LlamaForCausalLM(config)


def rows(count: int = 48) -> list[Row]:
    generator = torch.Generator().manual_seed(1)
    made = []
    for index in range(count):
        length = int(torch.randint(2, 12, (1,), generator=generator))
        ids = torch.randint(1, 40, (length,), generator=generator).tolist()
        reader = index % 2
        low, high = RANGES[reader]
        made.append(Row(sample=index, input_ids=ids, reader=reader, target=low + (high - low) * (ids[-1] / 40)))
    return made


def trainer(out: Path, **settings: Any) -> JudgeTrainer:
    model = get_peft_model(tiny_model(), LoraConfig(r=4, target_modules="all-linear"))
    arguments = {
        "per_device_train_batch_size": 8,
        "learning_rate": 5e-3,
        "max_steps": 6,
        "raft_weight": 4.0,
        "logging_steps": 1,
        "use_cpu": True,
        "bf16": False,
        "save_strategy": "no",
        "report_to": "none",
        "dataloader_pin_memory": False,
        "seed": 0,
        **settings,
    }
    return JudgeTrainer(
        model=model,
        args=JudgeTrainingArguments(output_dir=str(out), **arguments),
        readers=READERS,
        ranges=RANGES,
        pad_token_id=0,
        train_rows=rows(),
    )


def losses(trained: JudgeTrainer) -> list[dict[str, float]]:
    return [{k: entry[k] for k in ("loss", "ce", "raft")} for entry in trained.state.log_history if "loss" in entry]


def test_logits_are_computed_at_the_score_positions_only() -> None:
    model = tiny_model().eval()
    ids = torch.randint(1, 60, (3, 9), generator=torch.Generator().manual_seed(2))
    picked, columns = torch.tensor([0, 1, 2]), torch.tensor([8, 4, 6])
    with torch.no_grad():
        everywhere = model(input_ids=ids).logits
        with logits_only_at(model.get_output_embeddings(), picked, columns):
            only = model(input_ids=ids).logits
        assert only.shape == (3, 64)
        torch.testing.assert_close(only, everywhere[picked, columns])
        assert model(input_ids=ids).logits.shape == everywhere.shape  # the hook is gone again


def test_batched_loss_equals_rows_one_by_one(tmp_path: Path) -> None:
    """Padding, order within the batch and rows with several sequences change nothing."""
    judge = trainer(tmp_path)
    chosen = rows()[:7]
    together = judge.compute_loss(judge.model, judge.data_collator([[row] for row in chosen]))
    alone = []
    for row in chosen:
        reader = READERS[row.reader]
        logits = torch.stack(
            [judge.model(input_ids=torch.tensor([ids])).logits[0, -1] for ids in reader.rows(row.input_ids)]
        )
        logprobs = reader.logprobs(logits[None])
        target, scores = torch.tensor([row.target]), score_tensor(*RANGES[row.reader])
        alone.append(ce_loss(logprobs, target, scores) + 4.0 * raft_loss(logprobs, target, scores))
    torch.testing.assert_close(together, torch.cat(alone).mean())


def test_collator_computes_shared_prompts_once_and_adds_a_sequence_for_each_branch() -> None:
    chain = [Row(0, [5, 6], 1, 10.0), Row(0, [5, 6, 8], 0, 4.0)]
    batch = ScoreCollator(READERS, 0)([chain, [Row(1, [7], 0, 2.0)]])
    assert batch["input_ids"].tolist() == [[5, 6, 8], [7, 0, 0], [5, 6, 41]]
    assert batch["readers"].tolist() == [0, 0, 1]
    assert batch["targets"].tolist() == [4.0, 2.0, 10.0]
    # The second row reads its prompt inside a longer sequence, and what follows a "1" in that one.
    assert list(zip(batch["sequence"].tolist(), batch["column"].tolist(), strict=True))[:2] == [(0, 2), (1, 0)]
    assert batch["column"].tolist()[2:] == [1, 2]
    assert batch["sequence"].tolist()[3] == 2


def test_scores_come_back_in_the_order_of_the_rows(tmp_path: Path) -> None:
    judge = trainer(tmp_path)
    chosen = rows()[:9]
    together = judge.score(chosen, batch_size=4)
    for row, found in zip(chosen, together, strict=True):
        assert list(found) == list(READERS[row.reader].grid)
        assert found == pytest.approx(judge.score([row], batch_size=1)[0], abs=1e-5)


def test_buckets_hold_every_index_once_and_little_padding() -> None:
    lengths = torch.randint(3, 60, (1000,), generator=torch.Generator().manual_seed(3)).tolist()
    sampler = BucketSampler(lengths, 16, seed=0)
    order = list(sampler)
    assert sorted(order) == list(range(1000))
    assert order == list(BucketSampler(lengths, 16, seed=0))

    def padded(indices: list[int]) -> int:
        batches = [indices[start : start + 16] for start in range(0, len(indices), 16)]
        return sum(len(batch) * max(lengths[i] for i in batch) for batch in batches)

    assert padded(order) < 1.1 * sum(lengths) < padded(list(range(1000)))
    sampler.set_epoch(1)
    assert list(sampler) != order
    first_lengths = [lengths[order[start]] for start in range(0, 990, 16)]
    assert first_lengths != sorted(first_lengths)  # batches come in shuffled order


def test_loss_curve_is_the_committed_one(tmp_path: Path) -> None:
    """Guards losses, batches, seeds and optimiser. To renew after a wanted change: delete the file and run twice."""
    judge = trainer(tmp_path)
    judge.train()
    found = losses(judge)
    if not CURVE.exists():
        CURVE.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        pytest.fail(f"{CURVE.name} was missing and has been written: look at it and commit it")
    expected = json.loads(CURVE.read_text(encoding="utf-8"))
    assert len(found) == len(expected) == 6
    for step, (one, other) in enumerate(zip(found, expected, strict=True)):
        assert one == pytest.approx(other, rel=2e-3), f"step {step + 1}"


def test_training_lowers_both_losses(tmp_path: Path) -> None:
    judge = trainer(tmp_path, max_steps=60, learning_rate=2e-2)
    judge.train()
    found = losses(judge)
    for name in ("ce", "raft"):
        first, last = ([entry[name] for entry in part] for part in (found[:6], found[-6:]))
        assert sum(last) < 0.8 * sum(first), name


def test_resumed_run_equals_the_uninterrupted_one(tmp_path: Path) -> None:
    # Six batches an epoch: step 8 lies in the second, so order, optimiser, scheduler and step have to come back.
    whole = trainer(tmp_path / "whole", max_steps=10)
    whole.train()
    settings = {"max_steps": 10, "save_strategy": "steps", "save_steps": 4}
    first = trainer(tmp_path / "parts", **settings)
    first.train()
    (tmp_path / "parts" / "checkpoint-10").rename(tmp_path / "parts" / "later")
    checkpoint = newest_complete(tmp_path / "parts")
    assert checkpoint is not None
    assert checkpoint.name == "checkpoint-8"
    second = trainer(tmp_path / "parts", **settings)
    second.train(resume_from_checkpoint=str(checkpoint))
    assert losses(second)[-2:] == losses(whole)[-2:]
    for one, other in zip(second.model.parameters(), whole.model.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-7)


def test_incomplete_checkpoint_is_skipped_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    judge = trainer(tmp_path, max_steps=4, save_strategy="steps", save_steps=2)
    judge.train()
    (tmp_path / "checkpoint-4" / "optimizer.pt").unlink()
    found = newest_complete(tmp_path)
    assert found is not None
    assert found.name == "checkpoint-2"
    assert "checkpoint-4" in capsys.readouterr().out
    (tmp_path / "checkpoint-2" / "trainer_state.json").write_text('{"global_step": 2, "ep', encoding="utf-8")
    assert newest_complete(tmp_path) is None


@pytest.mark.parametrize(("ce", "raft"), [(0.0, 0.0), (-1.0, 1.0)])
def test_weights_that_cannot_train_are_refused(tmp_path: Path, ce: float, raft: float) -> None:
    with pytest.raises(ValueError, match="ce_weight"):
        JudgeTrainingArguments(output_dir=str(tmp_path), ce_weight=ce, raft_weight=raft, use_cpu=True, bf16=False)
