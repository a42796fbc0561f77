"""What a judge is: a model, a method and how often to ask, as settings in a config; and grids of judges."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from inference.adapters import adapter_digest, file_digest, model_digest
from inference.config import FaultAt, Number, StrictModel, Whole
from inference.engines.base import EngineConfig
from inference.errors import named_list
from inference.methods.base import Settings
from inference.records import Usage

FREE_SETTINGS = ("batch_size", "concurrency", "max_retries", "timeout", "api_key_env", "price")
"""Settings of a model that may change when a run is resumed: they don't touch what is asked or answered."""


class Price(StrictModel):
    """Price of tokens in the currency of your bill, per million."""

    input: Number = Field(ge=0)
    cached: Number | None = Field(default=None, ge=0)
    """Prompt tokens served from the provider's cache. Default: the price of `input`."""
    output: Number = Field(ge=0)

    @property
    def free(self) -> bool:
        return not (self.input or self.cached or self.output)

    def cost(self, usage: Usage) -> float:
        """What `usage` costs; reasoning tokens are part of the completion and billed with it."""
        cached = self.input if self.cached is None else self.cached
        fresh = usage.prompt - usage.cached
        return (fresh * self.input + usage.cached * cached + usage.completion * self.output) / 1e6


class ModelConfig(EngineConfig):
    """A model and how it is asked."""

    temperature: Number = Field(default=0.0, ge=0)
    max_tokens: Whole | None = Field(default=None, ge=1)
    """Longest answer in tokens. Default: what the method's answer needs; models that reason first need more."""
    concurrency: Whole | None = Field(default=None, ge=1)
    """Most calls in flight. Default: 16 for `openai` and `scripted`; for `hf` and `vllm` four times `batch_size`, so
    that the engine has a choice of calls of similar length for each batch."""
    max_retries: Whole = Field(default=4, ge=0)
    """Extra tries of a call that failed for a passing reason (rate limit, time-out, server error)."""
    price: Price | None = None

    @property
    def calls_in_flight(self) -> int:
        return self.concurrency or (4 * self.batch_size if self.engine in ("hf", "vllm") else 16)

    @property
    def label(self) -> str:
        """Which model a finished call went to, for its price."""
        return "|".join([self.engine, self.model, self.adapter or "", self.base_url or ""])


class Budget(StrictModel):
    """``budget:`` of a config. A run that reaches it stops; with a larger one the same command goes on."""

    max_tokens_total: Whole | None = Field(default=None, ge=1)
    """Prompt and completion tokens of all calls together."""
    max_cost: Number | None = Field(default=None, gt=0)
    """In the currency of the prices; every model needs a price."""


MethodName = Literal["direct", "cot", "tot", "got", "tat", "creaeval", "compact", "compact_creaeval"]
"""A name of `inference.methods.METHODS`."""
ANALYSED = ("creaeval", "compact_creaeval")
"""Methods with an analysis of their own."""
LONGEST_ID = 80
ID = r"^[A-Za-z0-9][A-Za-z0-9_.-]*$"


_WITHOUT_EFFECT = {
    "evidence": ("decoupled", "memory", "stepwise"),
    "decoupled": ("judge_scope", "memory", "stepwise"),
    "stepwise": ("memory",),
}
"""Option of `creaeval`, where it is false → the options that it leaves without effect."""


class MethodConfig(StrictModel):
    """A method with its options."""

    method: MethodName
    judge_scope: Literal["response", "step"] = "response"
    """`direct`, `creaeval`: one judging call for the whole response, or one per step, for small models."""
    memory: bool = True
    """`creaeval`: whether the analysis of a step gets the memories of the earlier ones."""
    stepwise: bool = True
    """`creaeval`: whether each step is analysed in a call of its own, or all in one."""
    decoupled: bool = True
    """`creaeval`: false has one call write evidence and scores together, which is `tat`."""
    evidence: bool = True
    """`creaeval`: false leaves the analysis out, which is `direct`."""
    evidence_file: str | None = None
    """`creaeval`, `compact_creaeval`: evidence that exists already, in place of an analysis: a file by answer id in the
    released layout. `python -m eval run` reads it."""

    @model_validator(mode="after")
    def _options_fit(self) -> "MethodConfig":
        options = ("judge_scope", "memory", "stepwise", "decoupled", "evidence")
        changed = {name for name in options if getattr(self, name) != MethodConfig.model_fields[name].default}
        allowed = {"creaeval": changed, "direct": {"judge_scope"}}.get(self.method, set())
        if changed - allowed:
            raise ValueError(f"{', '.join(sorted(changed - allowed))}: no option of method {self.method}, remove it")
        for option, without in _WITHOUT_EFFECT.items():
            idle = sorted(changed.intersection(without)) if option in changed else []
            if idle:
                raise ValueError(f"{', '.join(idle)}: no effect beside `{option}: false`, remove one of them")
        return self

    @model_validator(mode="after")
    def _evidence_fits(self) -> "MethodConfig":
        if self.evidence_file is None:
            return self
        if self.asked not in ANALYSED:
            raise ValueError(f"evidence_file: method {self.method} scores no evidence of an analyst, remove it")
        idle = [name for name in ("memory", "stepwise") if not getattr(self, name)]
        if idle:
            raise ValueError(f"{', '.join(idle)}: no effect beside `evidence_file`, remove one of them")
        return self

    @property
    def analyses(self) -> bool:
        """Whether an analyst is asked."""
        return self.asked in ANALYSED and self.evidence_file is None

    @property
    def asked(self) -> MethodName:
        """The method whose calls are made: two ablations of `creaeval` are other methods."""
        if self.method == "creaeval" and not self.evidence:
            return "direct"
        return "tat" if self.method == "creaeval" and not self.decoupled else self.method


class JudgeConfig(ModelConfig, MethodConfig):
    """One judge. Its model's settings stand beside its own: ``{id: …, engine: hf, model: …, method: compact}``."""

    id: str = Field(pattern=ID, max_length=LONGEST_ID)
    """Name in judgements, tables and columns."""
    repeats: Whole = Field(default=1, ge=1)
    """Judgements per sample, each from calls of its own."""
    analyst: ModelConfig | None = None
    """`creaeval`, `compact_creaeval`: the model that writes the evidence (SoT-LLM). Default: the judge's own."""

    @model_validator(mode="after")
    def _analyst_fits(self) -> "JudgeConfig":
        if self.analyst and self.asked not in ANALYSED:
            raise ValueError(f"analyst: method {self.method} has no analysis of its own, remove it")
        if self.analyst and not self.analyses:
            raise ValueError("analyst: no effect beside `evidence_file`, which stands in its place; remove one of them")
        return self

    def settings(self, repeat: int) -> Settings:
        """How the method asks in a repetition."""
        return Settings(
            temperature=self.temperature,
            max_tokens=self.max_tokens,
            analysis_tokens=(self.analyst or self).max_tokens,
            repeat=repeat,
            judge_scope=self.judge_scope,
            memory=self.memory,
            stepwise=self.stepwise,
        )

    @property
    def models(self) -> tuple[ModelConfig, ...]:
        """The judge's model, and the analyst where it is another."""
        return (self,) if self.analyst is None else (self, self.analyst)


class NamedModel(ModelConfig):
    """A model of a grid."""

    id: str = Field(pattern=ID, max_length=40)


class NamedMethod(MethodConfig):
    """A method of a grid; a bare name stands for one without options."""

    id: str = Field(default="", pattern=r"^[A-Za-z0-9_.-]*$", max_length=40)
    """Name in the judges' ids. Default: the method."""

    @property
    def name(self) -> str:
        return self.id or self.method


class JudgeGrid(StrictModel):
    """Every judge model × method, and for methods with an analysis × analyst: judges with ids ``model.method`` and
    ``model.method.analyst``. Evidence of one analyst is asked for once and shared by all judges."""

    judges: tuple[NamedModel, ...] = Field(min_length=1)
    analysts: tuple[NamedModel, ...] = ()
    """Default: each judge model analyses for itself."""
    methods: tuple[NamedMethod, ...] = Field(min_length=1)
    repeats: Whole = Field(default=1, ge=1)

    @field_validator("methods", mode="before")
    @classmethod
    def _bare_names(cls, value: Any) -> Any:
        if not isinstance(value, list):
            return value
        return [{"method": method} if isinstance(method, str) else method for method in value]

    @model_validator(mode="after")
    def _analysts_asked(self) -> "JudgeGrid":
        if self.analysts and not any(method.analyses for method in self.methods):
            raise FaultAt("no method of the grid has an analysis; remove the analysts, or add creaeval", "analysts")
        return self

    def expand(self) -> tuple[JudgeConfig, ...]:
        """The judges, model by model, in it method by method."""
        return tuple(
            self._judge(model, method, analyst)
            for model in self.judges
            for method in self.methods
            for analyst in (self.analysts if method.analyses and self.analysts else (None,))
        )

    def _judge(self, model: NamedModel, method: NamedMethod, analyst: NamedModel | None) -> JudgeConfig:
        names = [model.id, method.name] + ([analyst.id] if analyst else [])
        if len(".".join(names)) > LONGEST_ID:
            raise ValueError(
                f"the id of the judge made of {named_list(names)} has more than {LONGEST_ID} characters; give its "
                "model, method or analyst a shorter id"
            )
        settings = model.model_dump(exclude_unset=True) | method.model_dump(exclude_unset=True)
        settings |= {"id": ".".join(names), "repeats": self.repeats}
        if analyst:
            settings["analyst"] = analyst.model_dump(exclude_unset=True, exclude={"id"})
        return JudgeConfig.model_validate(settings)


class Judges(StrictModel):
    """The part of a config that names judges, one by one, as a grid, or both."""

    judges: tuple[JudgeConfig, ...] = ()
    """One judge or a list of judges."""
    grid: JudgeGrid | None = None
    budget: Budget | None = None
    """What all judges together may spend."""

    @field_validator("judges", mode="before")
    @classmethod
    def _one_or_more(cls, value: Any) -> Any:
        return [value] if isinstance(value, dict) else value

    @model_validator(mode="after")
    def _ids_of_their_own(self) -> "Judges":
        refuse_repeated((judge.id for judge in self.asked), "judge")
        return self

    @model_validator(mode="after")
    def _one_price_per_model(self) -> "Judges":
        prices: dict[str, Price] = {}
        for model in (model for judge in self.asked for model in judge.models):
            if model.price and prices.setdefault(model.label, model.price) != model.price:
                raise ValueError(f"the model {model.model} has two different prices; give it the same one everywhere")
        return self

    @property
    def asked(self) -> tuple[JudgeConfig, ...]:
        """All judges, those of the grid last."""
        return (*self.judges, *(self.grid.expand() if self.grid else ()))


def refuse_repeated(ids: Iterable[str], kind: str) -> None:
    """Raise ValueError, for validators, where two of a `kind` have the same id."""
    repeated = sorted(name for name, count in Counter(ids).items() if count > 1)
    if repeated:
        raise ValueError(f"the {kind} ids {repeated} occur twice; give each {kind} an id of its own")


def resolved_judge(judge: JudgeConfig) -> dict[str, Any]:
    """The settings as plain data for a run directory, with digests of the local models, adapters and evidence.

    What was made anew under the same name so counts as a changed setting. Raises UserError where something is missing.
    """
    resolved = resolved_model(judge)
    if judge.analyst:
        resolved["analyst"] = resolved_model(judge.analyst)
    if judge.evidence_file is None:
        del resolved["evidence_file"]  # directories from before there was such a setting go on
    else:
        resolved["evidence_sha256"] = file_digest(Path(judge.evidence_file))
    return resolved


def refuse_evidence_files(judges: Iterable[JudgeConfig]) -> None:
    """Raise ValueError, for validators, where a judge names evidence and nobody can read its layout."""
    named_in = [judge.id for judge in judges if judge.evidence_file is not None]
    if named_in:
        raise ValueError(
            f"judge {named_in[0]}: evidence_file is read by `python -m eval run` alone; evaluate this judge there, or "
            "give it an `analyst` in place of the file"
        )


def resolved_model(model: ModelConfig) -> dict[str, Any]:
    """The same of a model alone, or of anything that has one."""
    found = model.model_dump(mode="json")
    if model.reasoning_effort is None:
        del found["reasoning_effort"]  # directories from before there was such a setting go on
    if model.engine in ("hf", "vllm"):
        found["model_digest"] = model_digest(model.model)
    if model.adapter:
        found["adapter_digest"] = adapter_digest(model.adapter)
    return found
