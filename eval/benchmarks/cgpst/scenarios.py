"""The scenario file: ``{"FS10": {"theme": …, "text": …}}``."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eval.benchmarks.cgpst.layout import PUBLISHED, LineEnd, need, read_json, sound, write_json
from inference.errors import UserError, named, named_list


@dataclass(frozen=True)
class Scenario:
    """One future scenario."""

    theme: str
    text: str
    further: Mapping[str, Any] = field(default_factory=dict)
    """What else the file says of it."""

    @property
    def simulated(self) -> bool:
        """Whether the file marks it as one whose answers and ratings a program makes."""
        return self.further.get("simulated") is True


def read_scenarios(path: Path | str) -> dict[str, Scenario]:
    """Scenario id → scenario, in file order. Raises UserError, with the place, for anything else."""
    content = read_json(path)
    need(isinstance(content, dict), str(path), "a scenario file is a JSON object of scenarios by id")
    return {sound(name): _scenario(f"{path}: {named(name)}", value) for name, value in content.items()}


def write_scenarios(path: Path | str, scenarios: Mapping[str, Scenario], line_end: LineEnd = PUBLISHED) -> None:
    """Write the official layout: theme and text first, what else there is after them."""
    content = {name: {"theme": one.theme, "text": one.text, **one.further} for name, one in scenarios.items()}
    write_json(path, content, line_end)


def _scenario(place: str, value: Any) -> Scenario:
    fields = ("theme", "text")
    whole = isinstance(value, dict) and all(isinstance(value.get(key), str) for key in fields)
    need(whole, place, 'needs {"theme": text, "text": text}')
    further = {key: part for key, part in value.items() if key not in fields}
    return Scenario(sound(value["theme"]), sound(value["text"]), further)


def scenario_text(place: str, name: str, scenarios: Mapping[str, Scenario]) -> str:
    """The text of a scenario. Raises UserError where it is not among `scenarios`."""
    if name not in scenarios:
        have = named_list(scenarios) or "none"
        raise UserError(
            f"{place}: the scenario {named(name)} is not in the scenario file, which has {have}; add it there"
        )
    return scenarios[name].text


def scenario_subject(scenario: Scenario) -> str:
    """A scenario in one line: its theme, and its gist where the file has one (a sentence, at most about 40 tokens)."""
    gist = scenario.further.get("gist")
    return f"{scenario.theme}. {sound(gist)}" if isinstance(gist, str) and gist.strip() else scenario.theme
