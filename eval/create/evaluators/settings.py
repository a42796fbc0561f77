"""Settings of ``python -m eval create evaluate``, ``configs/eval/create_evaluate*.yaml``."""

from typing import Any, Literal

from pydantic import field_validator

from eval.create.evaluators.kinds import KindName
from eval.create.judging import Rules, ValidityRule
from eval.create.scoring import PATIENCES
from inference.config import Number, StrictModel
from inference.judges import Budget, JudgeConfig, ModelConfig


class PromptedEvaluator(ModelConfig):
    """Any chat model; one call per path."""

    method: Literal["prompted"] = "prompted"


class LearnedEvaluator(ModelConfig):
    """A model trained here on single triples; one call of one token per triple."""

    method: Literal["compact"]
    rubric: str
    """The rubric file that it was trained with."""


class RecordedEvaluator(StrictModel):
    """Replies that exist already."""

    recorded: str
    """JSONL: one path with its replies per line, or one answer with its lists of replies, as they are scored."""


AskedEvaluator = PromptedEvaluator | LearnedEvaluator
Evaluator = AskedEvaluator | RecordedEvaluator


class EvaluateConfig(StrictModel):
    """Which answers are evaluated, by whom, and how they are scored."""

    input: str
    """JSONL of answers: ``id``, ``entity_a``, ``entity_b``, and one of ``raw``, ``path_prediction``, ``samples``,
    ``paths``. Other keys are handed on."""
    out: str
    """Run directory. Starting again with the same settings resumes it."""
    specificity: Evaluator
    factuality: Evaluator
    evaluated: Literal["valid", "all"] = "valid"
    """Which paths evaluators see: those that are valid by any of the rules, so that each rule can be applied later, or
    all whose triples have three parts."""
    validity: ValidityRule = "strict"
    """Which paths count in the utility of the report."""
    require_relation: bool = False
    """Whether there the last relation has to be ``rel_b``."""
    patience: tuple[Number, ...] = PATIENCES
    budget: Budget | None = None
    """What both evaluators together may spend."""

    @field_validator("specificity", "factuality", mode="before")
    @classmethod
    def _by_keys(cls, value: Any) -> Any:
        # A plain union would report the faults of all three forms.
        if not isinstance(value, dict):
            return value
        if "recorded" in value:
            return RecordedEvaluator.model_validate(value)
        learned = value.get("method") == "compact"
        return (LearnedEvaluator if learned else PromptedEvaluator).model_validate(value)

    @field_validator("patience")
    @classmethod
    def _shares(cls, value: tuple[float, ...]) -> tuple[float, ...]:
        if not value or not all(0 <= patience <= 1 for patience in value):
            raise ValueError("give numbers from 0 to 1, as in [0.7, 0.9, 1]")
        return value

    @property
    def rules(self) -> Rules:
        return Rules(validity=self.validity, require_relation=self.require_relation)

    def evaluator(self, kind: KindName) -> Evaluator:
        return self.specificity if kind == "specificity" else self.factuality


def as_judge(kind: KindName, evaluator: AskedEvaluator) -> JudgeConfig:
    """The same model as a judge named `kind`, for what is checked, recorded and paid of every judge."""
    settings = evaluator.model_dump(exclude={"method", "rubric"}, exclude_unset=True)
    method = "compact" if isinstance(evaluator, LearnedEvaluator) else "direct"
    return JudgeConfig.model_validate({**settings, "id": kind, "method": method})
