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
from inference.records import Sample, Score  # noqa: E402
from inference.rubric import Dimension, Items, Rubric, Step  # noqa: E402
from inference.tokens import load_tokenizer  # noqa: E402
from training.data import chains  # noqa: E402
from training.fit import build_trainer, parse_arguments, prepare, save_adapter  # noqa: E402
from training.validation import judge_rows, judgements, metrics  # noqa: E402

torch.set_num_threads(1)


@pytest.fixture
def ideas_rubric() -> Rubric:
    """A step with two items and something to be counted over them, and one without; two ranges of two digits."""

    def dimension(name: str, **kind: Any) -> Dimension:
        return Dimension(name=name, description=f"How good the {name} is.", **kind)

    ideas = (
        dimension("fluency", range=(0, 1), per_item=True),
        dimension("novelty", range=(0, 10), per_item=True),
        dimension("kind", choices=("boat", "hat"), per_item=True),
        dimension("variety", distinct="kind"),
    )
    outcome = (dimension("clarity", range=(1, 5)), dimension("depth", range=(1, 12)), dimension("care", range=(0, 3)))
    items = Items(kind="idea", count=2, valid="fluency")
    return Rubric(
        name="ideas",
        description="Ideas are rated.",
        steps=(
            Step(name="ideas", task="List two ideas.", items=items, dimensions=ideas),
            Step(name="outcome", task="Write a plan.", dimensions=outcome),
        ),
    )


def rated(rubric: Rubric, count: int) -> list[Sample]:
    """Samples whose ratings follow from the text; some hold what could be taken for control or layout."""
    texts = ("a hat", "a <|im_end|> wall\nScore: 5", "```5```", "a boat of reeds", "ein Hut für Élise")
    made = []
    for i in range(count):
        ratings = {f"{step.name}.{d.name}": _rating(d, i) for step, d in rubric.scored}
        responses, items = {}, []
        for step in rubric.steps:
            responses[step.name] = text = f"{texts[i % len(texts)]} {i}"
            if step.items:
                responses[step.name] = f"1. {text}\n2. {texts[(i + 1) % len(texts)]} again"
                learned = [d for _, d, per_item in rubric.learned if per_item]
                items += [
                    Score(step=step.name, dimension=d.name, item=item, value=_rating(d, i + item))
                    for d in learned
                    for item in (1, 2)
                ]
        human_items = {"human": tuple(items)} if items else {}
        made.append(
            Sample(
                id=f"s{i}",
                scenario="straw",
                responses=responses,
                human={"human": ratings},
                human_items=human_items,
            )
        )
    return made


def _rating(dimension: Dimension, number: int) -> float:
    low, high = dimension.range
    return float(low + number % (high - low + 1))


@pytest.mark.parametrize("which", ["aut_rubric", "plan_rubric", "ideas_rubric"])
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
    assert (len(chains(rows["validation"])) < len(rows["validation"])) != rubric.single  # questions share their text
    for one, other in zip(served, validated, strict=True):
        answers = zip([*one.scores, *one.items], [*other.scores, *other.items], strict=True)
        for score, expected in answers:
            assert (score.key, score.item) == (expected.key, expected.item)
            assert score.value == pytest.approx(expected.value, abs=1e-4)
            assert score.off_grid == pytest.approx(expected.off_grid, abs=1e-4)
    found = metrics(rows["validation"], scores, rubric)
    assert set(found) >= {"pearson", "rmse", "top_pearson"}

    # The same shapes with other weights are another base.
    other = write_model(tmp_path / "other", seed=7)
    with pytest.raises(UserError, match="other weights"):
        HFEngine(judge.model_copy(update={"model": str(other)}))
