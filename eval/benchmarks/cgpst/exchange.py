"""Files of the released pipeline, both ways: responses and evidence by answer id. Scores are in `score_json`.

    responses  {"A01_FS1": {"Step-1": "text", …}}
    evidence   {"A01_FS1": {"Step-1": {"sot_evidence": {"item_1": {"Fluency": "text", …}, …},
                                       "task_status_memory": "text"},
                            "Step-2": {"sot_evidence": {"Focus": "text", …}, "task_status_memory": "text"}, …}}

The evidence on an item's category stands under ``Flexibility``. Reading what was written gives the same records, and
writing what was read the same bytes, where texts are texts (not lists of them).
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from eval.benchmarks.cgpst.layout import PUBLISHED, LineEnd, need, read_json, sound, write_json
from eval.benchmarks.cgpst.names import TWICE, counted_choice, keys, official, official_steps, scenario_of
from eval.benchmarks.cgpst.scenarios import Scenario, scenario_subject, scenario_text
from inference.errors import UserError, named, named_list
from inference.records import Sample, StepEvidence
from inference.rubric import Rubric, Step

EVIDENCE = "sot_evidence"
MEMORY = "task_status_memory"
ITEM = "item_"


def read_by_id(path: Path | str, what: str) -> dict[str, dict[str, Any]]:
    """A JSON object of objects, by answer id. Raises UserError for anything else."""
    content = read_json(path)
    need(isinstance(content, dict), str(path), f"a file of {what} is a JSON object by answer id")
    for name, value in content.items():
        need(isinstance(value, dict), f"{path}: {named(name)}", "needs an object of steps")
    return dict(content)


def steps_of(place: str, value: Mapping[str, Any], rubric: Rubric) -> dict[str, Step]:
    """The steps that an answer has, by their label, in its order. Raises UserError for an unknown one."""
    known = {step.label: step for step in official_steps(rubric)}
    for label in value:
        need(label in known, f"{place}, {named(label)}", f"no step of the benchmark, which has {named_list(known)}")
    return {label: known[label] for label in value}


def read_responses(path: Path | str, rubric: Rubric, scenarios: Mapping[str, Scenario]) -> list[Sample]:
    """Samples without ratings, in file order; the scenario is the one the id ends in. Missing steps stay missing.

    Raises UserError, with the place, for another structure, and for scenarios that are not in `scenarios`.
    """
    samples = []
    for name, value in read_by_id(path, "responses").items():
        place = f"{path}: {named(name)}"
        steps = steps_of(place, value, rubric)
        texts = {step.name: _text(f"{place}, {label}", value[label]) for label, step in steps.items()}
        scenario_id = scenario_of(sound(name))
        scenario = scenario_text(place, scenario_id, scenarios)
        samples.append(
            Sample(
                id=sound(name),
                scenario=scenario,
                scenario_id=scenario_id,
                subject=scenario_subject(scenarios[scenario_id]),
                responses=texts,
            )
        )
    return samples


def _text(place: str, value: Any) -> str:
    parts = value if isinstance(value, list) else [value]
    need(all(isinstance(part, str) for part in parts), place, "needs a text or a list of texts")
    return sound("\n".join(parts))


def write_responses(path: Path | str, samples: Iterable[Sample], rubric: Rubric, line_end: LineEnd = PUBLISHED) -> None:
    """Write the responses of `samples`; of each the steps that it has."""
    labels = {step.name: step.label for step in official_steps(rubric)}
    content = {
        sample.id: {labels[step]: text for step, text in sample.responses.items() if step in labels}
        for sample in samples
    }
    write_json(path, content, line_end)


def read_evidence(path: Path | str, rubric: Rubric) -> dict[str, tuple[StepEvidence, ...]]:
    """Answer id → evidence by step, in file order. Raises UserError, with the place, for another structure."""
    found = {}
    for name, value in read_by_id(path, "evidence").items():
        place = f"{path}: {named(name)}"
        steps = steps_of(place, value, rubric)
        found[sound(name)] = tuple(
            _step_evidence(f"{place}, {label}", step, value[label]) for label, step in steps.items()
        )
    return found


def _step_evidence(place: str, step: Step, value: Any) -> StepEvidence:
    whole = isinstance(value, dict) and set(value) == {EVIDENCE, MEMORY} and isinstance(value[EVIDENCE], dict)
    need(whole, place, f'needs {{"{EVIDENCE}": {{…}}, "{MEMORY}": text}}')
    evidence, memory = value[EVIDENCE], value[MEMORY]
    need(isinstance(memory, str), f"{place}, {MEMORY}", "needs a text")
    if step.items is None:
        return StepEvidence(step=step.name, texts=_texts(place, step, evidence), memory=sound(memory))
    wanted = [f"{ITEM}{number}" for number in range(1, len(evidence) + 1)]
    need(list(evidence) == wanted, place, f"needs {ITEM}1, {ITEM}2, … in order, found {named_list(evidence)}")
    items = tuple(_texts(f"{place} item {i}", step, part) for i, part in enumerate(evidence.values(), start=1))
    return StepEvidence(step=step.name, items=items, memory=sound(memory))


def _texts(place: str, step: Step, value: Any) -> dict[str, str]:
    """Dimension → evidence. What is written under a dimension that counts choices is about the choice."""
    known = keys(step.dimensions)
    need(isinstance(value, dict), place, "needs an object of dimensions")
    texts: dict[str, str] = {}
    for key, text in value.items():
        need(key in known, f"{place}, {named(key)}", f"no dimension of {step.label}, which has {named_list(known)}")
        need(isinstance(text, str), f"{place}, {named(key)}", "needs a text")
        name = counted_choice(step, known[key]).name
        need(name not in texts, f"{place}, {named(key)}", TWICE)
        texts[name] = sound(text)
    return texts


def write_evidence(
    path: Path | str,
    evidence: Mapping[str, Sequence[StepEvidence]],
    rubric: Rubric,
    line_end: LineEnd = PUBLISHED,
) -> None:
    """Write evidence by answer id, steps in the order given. Raises UserError for steps of another rubric."""
    steps = {step.name: step for step in official_steps(rubric)}
    content: dict[str, dict[str, Any]] = {}
    for name, parts in evidence.items():
        unknown = [part.step for part in parts if part.step not in steps]
        if unknown:
            raise UserError(f"{named(name)}: the evidence is on {named_list(unknown)}, no step of {rubric.name}")
        content[name] = {steps[part.step].label: _evidence_json(steps[part.step], part) for part in parts}
    write_json(path, content, line_end)


def _evidence_json(step: Step, part: StepEvidence) -> dict[str, Any]:
    # What counts a choice comes last, so that its name stands in the file in place of the choice's own.
    names = {counted_choice(step, d).name: official(d) for d in sorted(step.dimensions, key=lambda d: bool(d.distinct))}
    if step.items is None:
        texts: Any = {names[key]: text for key, text in part.texts.items()}
    else:
        items = enumerate(part.items, start=1)
        texts = {f"{ITEM}{i}": {names[key]: text for key, text in item.items()} for i, item in items}
    return {EVIDENCE: texts, MEMORY: part.memory}
