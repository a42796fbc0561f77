"""The records that pass between all parts: Sample → Call → Completion → Score → Judgement."""

import hashlib
import json
from typing import Annotated, Literal

from pydantic import Field

from inference.config import StrictModel

Finite = Annotated[float, Field(allow_inf_nan=False)]


class Sample(StrictModel):
    """One response to be judged."""

    id: str
    scenario: str
    """What was responded to: an object, a scenario, a plot. Also the cluster of the resampling in `eval`."""
    scenario_id: str = ""
    """Short name of a scenario that is a text."""
    subject: str = ""
    """The scenario in one line, for prompts that have no room for it. Empty: the scenario itself."""
    responses: dict[str, str]
    """Raw response text by step name. Untrusted."""
    human: dict[str, dict[str, float]] = {}
    """Human scores: rater → "step.dimension" → score. Empty where nobody has rated the sample."""
    human_items: dict[str, tuple["Score", ...]] = {}
    """Rater → ratings of single items, where the rubric has items and they are known."""

    @property
    def blank(self) -> bool:
        """Whether there is no response, so that no model is asked."""
        return not any(text.strip() for text in self.responses.values())


class Message(StrictModel):
    role: Literal["system", "user", "assistant"]
    content: str


class Call(StrictModel):
    """One request to an engine; its content (with the engine's identity) is the key of the store.

    Exactly one of `messages` (chat template of the model) and `prompt` (plain text, no template) is set.
    """

    messages: tuple[Message, ...] | None = None
    prompt: str | None = None
    grid: tuple[str, ...] | None = None
    """Score strings whose log-probabilities are wanted as the very next text. The engine returns `grid_logprobs`."""
    json_schema: dict | None = None  # type: ignore[type-arg]  # a JSON schema is free-form JSON
    max_tokens: int = 1
    temperature: float = 0.0
    seed: int = 0
    repeat: int = 0
    """Index of a repetition: same content, another sample, another key."""

    def key(self, engine_identity: dict[str, str]) -> str:
        """SHA-256 hex digest of everything that determines the completion."""
        content = {"engine": engine_identity, "call": self.model_dump(mode="json")}
        # Half a surrogate pair, as a cut-off answer may hold one, becomes its JSON escape.
        text = json.dumps(content, sort_keys=True, ensure_ascii=False).encode("utf-8", "backslashreplace")
        return hashlib.sha256(text).hexdigest()


class Token(StrictModel):
    """One generated token with the alternatives the engine reported at its position."""

    text: str
    logprob: float
    top: dict[str, float] = {}
    """Token text → log-probability (natural logarithm), as many as the engine gives."""


class Usage(StrictModel):
    """Tokens billed or computed for one call."""

    prompt: int = 0
    cached: int = 0
    """Prompt tokens served from a prefix cache, part of `prompt`."""
    completion: int = 0
    reasoning: int = 0
    """Hidden reasoning tokens, part of `completion`."""
    known: bool = True
    """False where the server did not report what it used; missing counts are then 0."""


class Completion(StrictModel):
    """What an engine returned for a call."""

    text: str
    reasoning: str = ""
    """Thinking that the server reports apart from the text; a model's thinking inside the text stays there."""
    finish_reason: Literal["stop", "length", "refusal", "other"] = "stop"
    grid_logprobs: dict[str, float] | None = None
    """Score string → natural log-probability of exactly that string coming next, not renormalised over the grid.
    Strings beyond an API's top-k are absent. None where no grid was asked for or no log-probabilities exist."""
    tokens: tuple[Token, ...] = ()
    usage: Usage = Usage()
    seconds: float = 0.0


class Score(StrictModel):
    """A judge's verdict on one dimension, as a distribution where the engine allows it."""

    step: str
    dimension: str
    item: int | None = Field(default=None, ge=1)
    """Number of the item that is scored; None where the whole step is."""
    value: Finite | None = None
    """Expected value over the grid, renormalised; equals `top` without log-probabilities. None: unscored or choice."""
    top: Finite | None = None
    """Most likely score."""
    choice: str | None = None
    """Most likely choice, for dimensions with choices in place of a range."""
    distribution: dict[str, Finite] | None = None
    """Score string or choice → probability, renormalised over the grid."""
    off_grid: Finite | None = Field(default=None, ge=0.0, le=1.0)
    """Probability mass that lay outside the grid (or outside an API's top-k) before renormalisation."""
    unscored: str | None = None
    """Why there is no score. Set exactly where `value` and `choice` are None."""

    @property
    def key(self) -> str:
        return f"{self.step}.{self.dimension}"


class StepEvidence(StrictModel):
    """What an analysis found in the response to one step. All that a judge of evidence gets to see of it."""

    step: str
    texts: dict[str, str] = {}
    """Dimension → evidence, for steps without items."""
    items: tuple[dict[str, str], ...] = ()
    """For each item, dimension → evidence."""
    memory: str = ""
    """Summary of the step for the analysis of later steps; never shown to a judge."""
    cut: int = 0
    """Quotations that were too long and have been cut."""


class Judgement(StrictModel):
    """All scores of one judge on one sample. A line of ``judgements.jsonl``."""

    sample_id: str
    judge: str
    method: str
    rubric: str
    """Name and digest of the rubric, ``aut@0123456789ab``."""
    repeat: int = 0
    scores: tuple[Score, ...]
    """One per dimension of ``rubric.scored``, derived ones included, in its order."""
    items: tuple[Score, ...] = ()
    """What the judge answered about single items; sums of it are in `scores`."""
    evidence: tuple[StepEvidence, ...] = ()
    """What the analysis before the scores found, for methods that have one."""
    calls: tuple[str, ...] = ()
    """Store keys of the calls behind the scores, sorted; empty for recorded judges."""


Sample.model_rebuild()
