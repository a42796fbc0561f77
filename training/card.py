"""The model card of an adapter: base, data, split, figures, intended use, limits."""

from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined

from inference.adapters import adapter_digest
from inference.rubric import Rubric
from inference.run_dir import environment
from training.arguments import JudgeTrainingArguments
from training.settings import DataSettings
from training.validation import Figures


def write_card(
    adapter: Path,
    *,
    data: DataSettings,
    model: str,
    rubric: Rubric,
    counts: list[dict[str, Any]],
    args: JudgeTrainingArguments,
    figures: dict[str, Figures],
) -> None:
    """Write ``README.md`` into the adapter's directory, in place of the empty card that PEFT leaves there."""
    text = files("training").joinpath("templates/card.md").read_text(encoding="utf-8")
    jinja = Environment(undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True)
    jinja.filters["figure"] = lambda value: "–" if value is None else f"{value:.3f}"
    template = jinja.from_string(text)
    card = template.render(
        name=args.run_name or adapter.parent.name,
        data=data,
        model=model,
        rubric=rubric,
        digest=adapter_digest(adapter),
        counts=counts,
        args=args,
        figures=figures,
        environment=environment(),
    )
    (adapter / "README.md").write_text(card, encoding="utf-8")
