"""What training notes beside an adapter's weights: how the adapter is asked, and which responses it has seen.

``judge.json`` is a learned judge's, ``analyst.json`` an analyst's; weights that an adapter was merged into have the
same. Adapters and models made elsewhere have neither, and pass.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, TypeVar

from inference.config import StrictModel, validate
from inference.errors import UserError, named_list
from inference.files import os_errors, parse_json, write_text
from inference.judges import JudgeConfig, ModelConfig
from inference.prompts import evidence_questions, raw_questions
from inference.records import Sample, StepEvidence
from inference.rubric import Rubric, Step

JUDGE_NOTE, ANALYST_NOTE = "judge.json", "analyst.json"
"""Files beside the weights."""
Recipe = Literal["sft_raw", "sft_evidence"]
"""Whether a judge has learned from raw responses, or from evidence on them."""
Profile = Literal["compact", "chat"]
"""How an analyst is asked: by plain prompts, an item or a step a call, or by chat messages, a step a call."""
RECIPES: dict[str, Recipe] = {"compact": "sft_raw", "compact_creaeval": "sft_evidence"}
"""Method → how its judge has to be trained."""
PROFILES: dict[str, Profile] = {"compact_creaeval": "compact", "creaeval": "chat"}
"""Method → how its analyst has to be trained."""


class _Note(StrictModel):
    rubric: str
    """Name and digest, ``cgpst@0123456789ab``."""
    prompts: str
    """Digest of the prompts that the adapter was trained on."""
    trained_on: tuple[str, ...]
    """Ids of the responses, those of the validation among them."""


class JudgeNote(_Note):
    """``judge.json``."""

    recipe: Recipe
    dimensions: tuple[str, ...]
    """What it has learned to score, as ``step.dimension``."""


class AnalystNote(_Note):
    """``analyst.json``."""

    profile: Profile
    simulated: bool
    max_row_tokens: int | None = None
    """Longest prompt and evidence together that it was trained on."""


N = TypeVar("N", bound=_Note)


def weights_of(model: ModelConfig) -> Path:
    """Where training may have noted something: the adapter's directory, or that of a model it was merged into."""
    return Path(model.adapter or model.model)


def write_note(adapter: Path, note: JudgeNote | AnalystNote) -> None:
    """Write `note` into the directory of `adapter`."""
    name = JUDGE_NOTE if isinstance(note, JudgeNote) else ANALYST_NOTE
    write_text(adapter / name, json.dumps(note.model_dump(mode="json"), indent=1) + "\n")


def read_analyst(adapter: Path) -> AnalystNote:
    """Raises UserError for an adapter that is no analyst's."""
    note = _read(adapter / ANALYST_NOTE, AnalystNote)
    if note is None:
        raise UserError(f"{adapter}: has no {ANALYST_NOTE}, so it is no analyst's; train one with `training.sot`")
    return note


def note_of(adapter: Path) -> JudgeNote | AnalystNote | None:
    """What is noted beside `adapter`; None for one without a note. Raises UserError for a damaged note."""
    return _read(adapter / JUDGE_NOTE, JudgeNote) or _read(adapter / ANALYST_NOTE, AnalystNote)


def _read(path: Path, kind: type[N]) -> N | None:
    if not path.is_file():
        return None
    try:
        with os_errors(path, "cannot be read"):
            content = parse_json(path.read_bytes())
    except ValueError as error:
        raise UserError(f"{path}: not valid JSON ({error}); copy the adapter again") from None
    return validate(content if isinstance(content, dict) else {}, kind, str(path))


def copy_note(adapter: Path, merged: Path) -> None:
    """Note beside `merged` what is noted beside the `adapter` whose weights it holds."""
    note = note_of(adapter)
    if note is not None:
        write_note(merged, note)


def judge_note(rubric: Rubric, recipe: Recipe, samples: Iterable[Sample]) -> JudgeNote:
    """The note of a judge that has learned from `samples`."""
    learned = [(step, d) for step, d, _ in rubric.learned if recipe == "sft_raw" or not d.distinct]
    return JudgeNote(
        rubric=_named(rubric),
        prompts=judge_prompts(rubric, recipe),
        trained_on=tuple(sorted({sample.id for sample in samples})),
        recipe=recipe,
        dimensions=tuple(f"{step.name}.{d.name}" for step, d in learned),
    )


def judge_prompts(rubric: Rubric, recipe: Recipe) -> str:
    """Digest, 12 hex digits, of the prompts that a learned judge is asked with; changes with their wording."""
    if recipe == "sft_raw":
        responses = {step.name: "\n".join(f"{number}. text" for number in _numbers(step)) for step in rubric.answered}
        asked = raw_questions(rubric, Sample(id="", scenario="scenario", subject="subject", responses=responses))
    else:
        asked = evidence_questions(rubric, [_some_evidence(step) for step in rubric.answered])
    return hashlib.sha256("\0".join(question.prompt for question in asked).encode()).hexdigest()[:12]


def _numbers(step: Step) -> range:
    return range(1, 1 + (step.items.count if step.items else 1))


def _some_evidence(step: Step) -> StepEvidence:
    texts = {d.name: "text" for d in step.asked}
    if step.items is None:
        return StepEvidence(step=step.name, texts=texts)
    return StepEvidence(step=step.name, items=(texts,) * step.items.count)


def check_trained_for(judges: Iterable[JudgeConfig], rubric: Rubric) -> None:
    """Raise UserError where a judge's adapter, or its analyst's, notes that it was trained for something else.

    Checked are learned judges and analysts, against method, rubric and prompts; models that are prompted with the
    rubric may have any adapter.
    """
    for judge in judges:
        if judge.asked in RECIPES:
            _check_judge(judge, weights_of(judge), rubric)
        if judge.analyses:
            _check_analyst(judge, weights_of(judge.analyst or judge), rubric)


def _check_judge(judge: JudgeConfig, adapter: Path, rubric: Rubric) -> None:
    note, wanted = note_of(adapter), RECIPES[judge.asked]
    if isinstance(note, AnalystNote):
        raise UserError(
            f"judge {judge.id}: {adapter} is an analyst's; give it to the `analyst`, and the judge one "
            f"that was trained with `recipe: {wanted}`"
        )
    if note is None:
        return
    if note.recipe != wanted:
        way_out = next(method for method, recipe in RECIPES.items() if recipe == note.recipe)
        raise UserError(
            f"judge {judge.id}: {adapter} was trained with `recipe: {note.recipe}`, but method {judge.method} needs "
            f"{wanted}; use `method: {way_out}`, or another adapter"
        )
    _check_rubric(judge, adapter, note, rubric)
    if note.prompts != judge_prompts(rubric, note.recipe):
        raise UserError(
            f"judge {judge.id}: {adapter} was trained on the prompts {note.prompts}, but this program asks with "
            f"{judge_prompts(rubric, note.recipe)}; train it again"
        )


def _check_analyst(judge: JudgeConfig, adapter: Path, rubric: Rubric) -> None:
    note, wanted = note_of(adapter), PROFILES[judge.asked]
    if isinstance(note, JudgeNote):
        raise UserError(
            f"judge {judge.id}: {adapter} is a judge's, which writes no evidence; give an `analyst` with "
            "an adapter of its own, or an `evidence_file`"
        )
    if note is None:
        return
    if note.profile != wanted:
        way_out = next(method for method, profile in PROFILES.items() if profile == note.profile)
        raise UserError(
            f"judge {judge.id}: the analyst {adapter} was trained with `profile: {note.profile}`, but method "
            f"{judge.method} needs {wanted}; use `method: {way_out}`, or another analyst"
        )
    _check_rubric(judge, adapter, note, rubric)


def _check_rubric(judge: JudgeConfig, adapter: Path, note: _Note, rubric: Rubric) -> None:
    if note.rubric != _named(rubric):
        raise UserError(
            f"judge {judge.id}: {adapter} was trained for the rubric {note.rubric}, but is asked about "
            f"{_named(rubric)}; use the rubric that it knows, or train one for this rubric"
        )


def _named(rubric: Rubric) -> str:
    return f"{rubric.name}@{rubric.digest}"


def refuse_trained_on(judges: Iterable[JudgeConfig], samples: Sequence[Sample]) -> None:
    """Raise UserError where one of `samples`, to be evaluated on, is among those that an adapter has learned from."""
    for judge, weights in [(one, weights_of(model)) for one in judges for model in one.models]:
        note = note_of(weights)
        seen = set(note.trained_on) if note else set()
        found = [sample.id for sample in samples if sample.id in seen]
        if found:
            raise UserError(
                f"judge {judge.id}: {weights} has learned from {len(found)} of the responses to be evaluated on "
                f"({named_list(found)}); a test needs responses that it has not seen: evaluate on another part of the "
                "split, or take an adapter trained without them"
            )
