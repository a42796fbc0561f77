"""What is written beside the weights of an analyst (SoT-LLM): its card, and what it was trained on."""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined

from inference.adapters import adapter_digest
from inference.config import StrictModel, validate
from inference.errors import UserError
from inference.files import os_errors, parse_json, write_text
from inference.run_dir import environment
from training.sot_rows import prompt_version
from training.sot_settings import Profile, SotSettings, TraceParts
from training.traces.records import Trace

NOTE = "analyst.json"
"""File in an adapter's directory."""


class AnalystNote(StrictModel):
    """``analyst.json``: how the adapter is asked, and which responses it has seen."""

    profile: Profile
    rubric: str
    """Name and digest, ``cgpst@0123456789ab``."""
    prompts: str
    """Digest of the prompts that it was trained on (`sot_rows.prompt_version`)."""
    simulated: bool
    trained_on: tuple[str, ...]
    """Ids of the responses."""


def note_of(data: SotSettings, parts: TraceParts) -> AnalystNote:
    return AnalystNote(
        profile=data.profile,
        rubric=f"{parts.rubric.name}@{parts.rubric.digest}",
        prompts=prompt_version(parts.rubric, data.profile),
        simulated=parts.info.simulated,
        trained_on=tuple(sorted(_ids([*parts.train, *parts.validation]))),
    )


def _ids(traces: list[Trace]) -> set[str]:
    return {trace.sample_id for trace in traces}


def read_note(adapter: Path) -> AnalystNote:
    """Raises UserError for an adapter that is no analyst's."""
    path = adapter / NOTE
    if not path.is_file():
        raise UserError(f"{adapter}: has no {NOTE}, so it is no analyst's; train one with `training.sot`")
    try:
        with os_errors(path, "cannot be read"):
            content = parse_json(path.read_bytes())
    except ValueError as error:
        raise UserError(f"{path}: not valid JSON ({error}); copy the adapter again") from None
    return validate(content if isinstance(content, dict) else {}, AnalystNote, str(path))


def write_card(
    adapter: Path,
    *,
    data: SotSettings,
    parts: TraceParts,
    model: str,
    counts: list[dict[str, Any]],
    args: Any,
    figures: dict[str, dict[str, float | None]],
) -> None:
    """Write ``analyst.json`` and ``README.md``, the latter in place of the empty card that PEFT leaves there."""
    note = note_of(data, parts)
    write_text(adapter / NOTE, json.dumps(note.model_dump(mode="json"), indent=1) + "\n")
    text = files("training").joinpath("templates/sot_card.md").read_text(encoding="utf-8")
    template = Environment(
        undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True, trim_blocks=True, lstrip_blocks=True
    ).from_string(text)
    card = template.render(
        name=args.run_name or adapter.parent.name,
        data=data,
        info=parts.info,
        note=note,
        model=model,
        rubric=parts.rubric,
        digest=adapter_digest(adapter),
        counts=counts,
        args=args,
        figures=figures,
        environment=environment(),
    )
    write_text(adapter / "README.md", card)
