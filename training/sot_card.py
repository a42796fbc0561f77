"""What is written beside the weights of an analyst (SoT-LLM): its card, and what it was trained on."""

from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined

from inference.adapter_notes import AnalystNote, write_note
from inference.adapters import adapter_digest
from inference.files import write_text
from inference.run_dir import environment
from training.sot_rows import prompt_version
from training.sot_settings import SotSettings, TraceParts
from training.traces.records import Trace


def note_of(data: SotSettings, parts: TraceParts) -> AnalystNote:
    return AnalystNote(
        profile=data.profile,
        rubric=f"{parts.rubric.name}@{parts.rubric.digest}",
        prompts=prompt_version(parts.rubric, data.profile),
        simulated=parts.info.simulated,
        max_row_tokens=data.max_row_tokens,
        trained_on=tuple(sorted(_ids([*parts.train, *parts.validation]))),
    )


def _ids(traces: list[Trace]) -> set[str]:
    return {trace.sample_id for trace in traces}


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
    write_note(adapter, note)
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
