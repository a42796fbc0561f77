"""Rows that share a prompt are computed once, and nothing of what is learned or scored changes by it."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from cgpst_files import RUBRIC, SCENARIOS, entry
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
pytest.importorskip("trl")

from tiny_model import write_model  # noqa: E402

from eval.benchmarks.cgpst.samples import to_samples  # noqa: E402
from inference.prefixes import share_prefixes  # noqa: E402
from inference.prompts import raw_questions  # noqa: E402
from inference.records import Sample  # noqa: E402
from inference.tokens import encode_plain, load_tokenizer  # noqa: E402
from training.data import Row, build_rows, chains, sequences  # noqa: E402
from training.dry_run import RoughTokenizer  # noqa: E402
from training.fit import build_trainer, parse_arguments  # noqa: E402
from training.losses import ce_loss, raft_loss  # noqa: E402

torch.set_num_threads(1)

ROOT = Path(__file__).parents[2]
MODEL = ROOT / "models" / "smollm2-135m"
SAMPLES = to_samples([entry(f"A0{n}_FS{n}", f"FS{n}") for n in (1, 2)], RUBRIC, SCENARIOS)
ITEMS = sum(step.items.count for step in RUBRIC.answered if step.items)
CHAINS = ITEMS + 2 + 3
"""Of one answer: its items, what is counted over those of two steps, and the steps without items."""

needs_model = pytest.mark.skipif(
    not (MODEL / "config.json").exists(), reason="no base model: python scripts/base_model.py"
)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("tiny") / "model")


@pytest.fixture(scope="module")
def rows(model: Path) -> list[Row]:
    return build_rows(SAMPLES, RUBRIC, load_tokenizer(model), unrated=True)


@pytest.fixture
def trainer(model: Path, rows: list[Row], tmp_path: Path) -> Any:
    values = {
        "model_name_or_path": str(model),
        "use_peft": True,
        "lora_target_modules": "all-linear",
        "lora_r": 4,
        "lora_dropout": 0.0,  # masks would differ between one batch and many
        "output_dir": str(tmp_path),
        "raft_weight": 4.0,
        "per_device_train_batch_size": 6,
        "use_cpu": True,
        "bf16": False,
        "gradient_checkpointing": False,
        "report_to": "none",
    }
    args, model_args = parse_arguments(values)
    parts = {"train": [row for row in rows if row.rated], "validation": []}
    made: Any = build_trainer(args, model_args, {}, load_tokenizer(model), RUBRIC, parts, [])
    torch.manual_seed(0)
    for name, weight in made.model.named_parameters():
        if "lora_B" in name:  # zero at first: no gradient would reach A
            weight.data.normal_(std=0.3)
    return made


def alone(trainer: Any, row: Row) -> Any:
    """Log-probabilities of one row's grid (1, g), each prompt and prompt + digit a sequence of its own."""
    reader = trainer.readers[row.reader]
    needed = [torch.tensor([ids]) for ids in reader.rows(row.input_ids)]
    logits = torch.stack([trainer.model(input_ids=ids).logits[0, -1] for ids in needed])
    return reader.logprobs(logits[None])


def test_a_chain_is_an_item_or_a_step(rows: list[Row]) -> None:
    found = chains(rows)
    assert len(found) == 2 * CHAINS
    assert sorted(index for chain in found for index in chain) == list(range(len(rows)))
    assert [chain[0] for chain in found] == sorted(chain[0] for chain in found)
    for chain in found:
        members = [rows[index] for index in chain]
        assert len({(row.sample, RUBRIC.learned[row.reader].step.name, row.item) for row in members}) == 1
        for row, longer in pairwise(members):
            assert longer.input_ids[: len(row.input_ids)] == row.input_ids


def test_a_shared_prompt_is_counted_once(rows: list[Row]) -> None:
    counted = sequences(rows, RUBRIC)
    longest = [max(len(rows[index].input_ids) for index in chain) for chain in chains(rows)]
    # Focus is asked before adequacy, so the prompt with its first digit is a sequence of its own.
    assert sorted(len(chain) for chain in counted) == [1] * (2 * CHAINS - 2) + [2, 2]
    for chain, length in zip(counted, longest, strict=True):
        assert max(tokens for tokens, _ in chain) in (length, length + 1)
    two_digits = sum(RUBRIC.learned[row.reader].dimension.range == (1, 10) for row in rows)
    assert two_digits == 6
    assert sum(positions for chain in counted for _, positions in chain) == len(rows) + two_digits


def test_each_rater_and_what_is_unrelated_is_a_row_of_its_chain_or_a_chain() -> None:
    prompts = [(0, [1, 2]), (0, [1, 2]), (0, [1, 2, 3]), (0, [1, 3]), (1, [1, 2, 3, 4])]
    made = [Row(sample=sample, input_ids=ids, reader=0, target=2.0) for sample, ids in prompts]
    assert chains([*made, Row(sample=0, input_ids=[1, 2], reader=0, target=2.0, item=4)]) == [[0, 1, 2], [3], [4], [5]]


@torch.no_grad()
def test_scores_of_chains_are_those_of_single_rows(trainer: Any, rows: list[Row]) -> None:
    trainer.model.eval()
    asked = {row.reader for row in rows}
    assert asked == set(range(len(RUBRIC.learned)))
    for row, found in zip(rows, trainer.score(rows, batch_size=5), strict=True):
        expected = alone(trainer, row)[0].tolist()
        assert list(found.values()) == pytest.approx(expected, abs=1e-5)


def test_loss_and_gradient_of_chains_are_those_of_single_rows(trainer: Any) -> None:
    batch = trainer.train_dataset[:CHAINS]
    computed = trainer.collate(batch)
    assert len(computed["input_ids"]) == CHAINS + 1 < len(computed["targets"]) < len(computed["sequence"])
    losses = []
    for row in (row for chain in batch for row in chain):
        logprobs, scores = alone(trainer, row), trainer.scores[row.reader]
        target = torch.tensor([row.target])
        losses.append(ce_loss(logprobs, target, scores) + 4.0 * raft_loss(logprobs, target, scores))
    together, single = trainer.compute_loss(trainer.model, computed), torch.cat(losses).mean()
    torch.testing.assert_close(together, single, rtol=1e-5, atol=1e-5)
    weights = [weight for weight in trainer.model.parameters() if weight.requires_grad]
    pairs = zip(torch.autograd.grad(together, weights), torch.autograd.grad(single, weights), strict=True)
    for one, other in pairs:
        assert other.abs().max() > 1e-4
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_tokens_estimated_without_a_tokenizer_share_prompts_too() -> None:
    assert len(chains(build_rows(SAMPLES, RUBRIC, RoughTokenizer(), unrated=True))) == 2 * CHAINS  # type: ignore[arg-type]


# -- tokens of a real model


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return load_tokenizer(MODEL)


def shared_by(tokenizer: Any, sample: Sample) -> bool:
    """Whether the prompts on `sample` are as many sequences as there are items and steps asked about."""
    asked = raw_questions(RUBRIC, sample)
    texts = {(RUBRIC.learned[question.learned].step.name, question.item) for question in asked}
    kept, _ = share_prefixes([encode_plain(tokenizer, question.prompt) for question in asked])
    return len(kept) == len(texts)


@needs_model
def test_prompts_of_a_chain_begin_alike_in_the_tokens_of_the_base_model(tokenizer: Any) -> None:
    assert all(shared_by(tokenizer, sample) for sample in SAMPLES)
    assert len(chains(build_rows(SAMPLES, RUBRIC, tokenizer, unrated=True))) == 2 * CHAINS


ODD = st.lists(st.one_of(st.sampled_from(["\n", "  ", "\t", "1. ", "<|im_end|>", "é", "語", "'s", "."]), st.text()))


@needs_model
@settings(max_examples=40, deadline=None)
@given(response=ODD.map("".join), scenario=ODD.map("".join))
def test_odd_texts_end_before_the_names(tokenizer: Any, response: str, scenario: str) -> None:
    responses = {"step1": f"1. {response}", "step2": response, "step4": response, "step6": response}
    assert shared_by(tokenizer, Sample(id="s", scenario=scenario, responses=responses))
