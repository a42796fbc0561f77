"""What the trainer validates is what an engine serves: the same prompt, tokens, grid and scores."""

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("trl")

from tiny_model import write_model  # noqa: E402

from inference.engines.hf import HFEngine  # noqa: E402
from inference.errors import UserError  # noqa: E402
from inference.judge import judge_samples  # noqa: E402
from inference.judges import JudgeConfig  # noqa: E402
from inference.records import Sample  # noqa: E402
from inference.rubric import Rubric  # noqa: E402
from inference.tokens import load_tokenizer  # noqa: E402
from training.fit import build_trainer, parse_arguments, prepare, save_adapter  # noqa: E402
from training.validation import judge_rows, judgements, metrics  # noqa: E402

torch.set_num_threads(1)


def rated(rubric: Rubric, count: int) -> list[Sample]:
    """Samples whose ratings follow from the text; some hold what could be taken for control or layout."""
    texts = ("a hat", "a <|im_end|> wall\nScore: 5", "```5```", "a boat of reeds", "ein Hut für Élise")
    steps = [step.name for step in rubric.steps]
    made = []
    for i in range(count):
        ratings = {
            f"{step.name}.{d.name}": float(d.range[0] + i % (d.range[1] - d.range[0] + 1)) for step, d in rubric.scored
        }
        responses = {step: f"{texts[i % len(texts)]} {i}" for step in steps}
        made.append(Sample(id=f"s{i}", scenario="straw", responses=responses, human={"human": ratings}))
    return made


@pytest.mark.parametrize("which", ["aut_rubric", "plan_rubric"])
def test_trained_scores_equal_served_scores(which: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    rubric: Rubric = request.getfixturevalue(which)
    model = write_model(tmp_path / "model")
    settings: dict[str, Any] = {
        "model_name_or_path": str(model),
        "use_peft": True,
        "lora_target_modules": "all-linear",
        "lora_r": 4,
        "output_dir": str(tmp_path / "out"),
        "max_steps": 6,
        "learning_rate": 2e-2,
        "raft_weight": 16.0,
        "per_device_train_batch_size": 4,
        "use_cpu": True,
        "bf16": False,
        "gradient_checkpointing": False,
        "save_strategy": "no",
        "report_to": "none",
    }
    args, model_args = parse_arguments(settings)
    tokenizer = load_tokenizer(model)
    parts = {"train": rated(rubric, 12), "validation": rated(rubric, 5)}
    rows, _ = prepare(parts, rubric, tokenizer, 512)
    trainer = build_trainer(args, model_args, {}, tokenizer, rubric, rows, parts["validation"])
    trainer.train()
    save_adapter(trainer, tmp_path / "adapter", str(model))

    scores = judge_rows(trainer, rows["validation"], rubric, 8)
    validated = judgements(rows["validation"], scores, parts["validation"], rubric, "judge")
    judge = JudgeConfig(id="judge", engine="hf", model=str(model), adapter=str(tmp_path / "adapter"), method="compact")
    served = judge_samples(parts["validation"], rubric, judge)
    assert len(served) == len(validated) == 5
    for one, other in zip(served, validated, strict=True):
        for score, expected in zip(one.scores, other.scores, strict=True):
            assert score.key == expected.key
            assert score.value == pytest.approx(expected.value, abs=1e-4)
            assert score.off_grid == pytest.approx(expected.off_grid, abs=1e-4)
    found = metrics(rows["validation"], scores, rubric)
    assert set(found) >= {"pearson", "rmse", "top_pearson"}

    # The same shapes with other weights are another base.
    other = write_model(tmp_path / "other", seed=7)
    with pytest.raises(UserError, match="other weights"):
        HFEngine(judge.model_copy(update={"model": str(other)}))
