"""``python -m eval create generate``: its settings."""

from pydantic import Field, field_validator, model_validator

from eval.create.generation.prompts import Strategy
from inference.config import Number, StrictModel, Whole
from inference.judges import ID, LONGEST_ID, Budget, ModelConfig, refuse_repeated

ANSWER_TOKENS = 4096
RESAMPLES = 3


class Generator(ModelConfig):
    """A model and how it is asked for paths."""

    id: str = Field(pattern=ID, max_length=LONGEST_ID)
    """Name in answers and tables."""
    strategy: Strategy = "base"
    """`base`: one answer. `creative`: asked to be creative in the relations. `verbalized`: each path with a
    probability. `iterate`: a second turn that asks for more. `resample`: several answers, each by itself. The paths of
    all answers to a query are united. In one run the first answer of `iterate` and `resample` is that of `base`."""
    samples: Whole | None = Field(default=None, ge=1, le=1000)
    """`resample`: number of answers. Default: 3."""
    encourage_guessing: bool = False
    """Whether the prompt prefers a guess to no answer. Published rankings mix both, so it is recorded."""
    temperature: Number = Field(default=0.7, ge=0)
    reasoning_tokens: Whole = Field(default=0, ge=0)
    """Tokens for thinking, on top of those of the answer (`max_tokens`, by default 4096): a model may use all of both
    for either. How much a model thinks is set by `reasoning_effort` where its server has that."""

    @field_validator("encourage_guessing", mode="before")
    @classmethod
    def _is_truth_value(cls, value: object) -> object:
        if not isinstance(value, bool):
            raise ValueError("needs true or false")
        return value

    @model_validator(mode="after")
    def _samples_fit(self) -> "Generator":
        if self.samples is not None and self.strategy != "resample":
            raise ValueError(f"samples: no option of strategy {self.strategy}, remove it")
        return self

    @property
    def answer_tokens(self) -> int:
        """Longest answer, thinking included."""
        return (self.max_tokens or ANSWER_TOKENS) + self.reasoning_tokens

    @property
    def repeats(self) -> int:
        return self.samples or RESAMPLES


class GenerationConfig(StrictModel):
    """Paths are relative to the working directory."""

    queries: str
    """A query set: a JSONL or Parquet file, or a folder of them."""
    generators: tuple[Generator, ...] = Field(min_length=1)
    budget: Budget | None = None
    """What all generators together may spend."""
    out: str
    """Run directory. Starting again with the same settings resumes it."""

    @model_validator(mode="after")
    def _ids_of_their_own(self) -> "GenerationConfig":
        refuse_repeated((generator.id for generator in self.generators), "generator")
        return self
