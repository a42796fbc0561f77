"""The card of a folder of traces: teacher, versions, counts, split, and what the filter did."""

from collections.abc import Sequence
from importlib.resources import files

from jinja2 import Environment, StrictUndefined

from inference.run_dir import environment
from training.traces.records import Trace, TracesInfo, counts


def card(traces: Sequence[Trace], info: TracesInfo) -> str:
    """``README.md`` of the folder."""
    text = files("training").joinpath("templates/traces.md").read_text(encoding="utf-8")
    template = Environment(
        undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True, trim_blocks=True, lstrip_blocks=True
    ).from_string(text)
    by_step = {
        step.name: counts([trace for trace in traces if trace.step == step.name]) for step in info.rubric.answered
    }
    return template.render(info=info, by_step=by_step, environment=environment())
