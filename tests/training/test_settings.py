"""Settings: a truth value is no number in any config, and a run knows its rubric by file, by name and with variants."""

import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
import yaml
from pydantic import BaseModel, TypeAdapter, ValidationError
from tiny_model import write_model
from trace_files import benchmark, write_files

from eval.benchmarks.simulation.files import SPLITS
from eval.run import EvalConfig
from inference.errors import UserError
from inference.judge import JudgingConfig
from inference.rubric import Rubric
from inference.run_dir import differences
from inference.serve import ServeConfig
from inference.service import ServiceConfig
from training.settings import DataSettings, read_settings
from training.sot_settings import SotSettings
from training.traces.collect import collect_oracle
from training.traces.filter import FilterConfig
from training.tracking import contents

ROOTS = (JudgingConfig, EvalConfig, ServeConfig, ServiceConfig, Rubric, DataSettings, SotSettings, FilterConfig)
"""All that is read from a file under configs/."""


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models of settings that an annotation names, and those in them."""
    if isinstance(annotation, type) and not isinstance(annotation, types.GenericAlias):
        if issubclass(annotation, BaseModel):
            yield annotation
            for field in annotation.model_fields.values():
                yield from models_in(field.annotation)
        return
    for part in typing.get_args(annotation):
        yield from models_in(part)


MODELS = {model.__name__: model for root in ROOTS for model in models_in(root)}


def numbers_in(value: Any) -> list[Any]:
    """What of a value that was made of true alone is a number now."""
    if isinstance(value, dict):
        return [number for part in value.values() for number in numbers_in(part)]
    if isinstance(value, list | tuple):
        return [number for part in value for number in numbers_in(part)]
    return [value] if isinstance(value, int | float) and not isinstance(value, bool) else []


@pytest.mark.parametrize("name", MODELS)
def test_a_truth_value_is_no_number(name: str) -> None:
    for field, info in MODELS[name].model_fields.items():
        reader = TypeAdapter(Annotated[(info.annotation, *info.metadata)] if info.metadata else info.annotation)
        for given in (True, [True], [True, True], {"a": True}):
            try:
                found = reader.validate_python(given)
            except ValidationError:
                continue
            assert not numbers_in(found), f"{name}.{field} takes {given} as {found}"


def test_the_check_finds_what_is_lax() -> None:
    assert "JudgeGrid" in MODELS
    assert numbers_in(TypeAdapter(dict[str, int] | None).validate_python({"a": True})) == [1]


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, Any]:
    """Of a judge, with what it names."""
    write_files(tmp_path / "data")
    return {
        "rubric": "cgpst",
        "benchmark": {**benchmark(tmp_path / "data"), "splits": str(tmp_path / "data" / SPLITS)},
        "validation_share": 0.5,
        "model_name_or_path": str(write_model(tmp_path / "model")),
        "output_dir": str(tmp_path / "out"),
    }


def read(folder: Path, settings: dict[str, Any], **changes: Any) -> tuple[dict[str, Any], DataSettings]:
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump({**settings, **changes}), encoding="utf-8")
    return read_settings(path, {})


@pytest.mark.parametrize("key", ["validation_share", "split_seed", "max_rows", "max_prompt_tokens"])
def test_a_truth_value_is_named(key: str, settings: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f"{key}: .*is a truth value in YAML; write a number"):
        read(tmp_path, settings, **{key: True})


def test_rubrics_by_name_and_with_variants_are_known_again(settings: dict[str, Any], tmp_path: Path) -> None:
    by_name, by_file, variant = (
        contents(*read(tmp_path, settings, rubric=rubric))
        for rubric in ("cgpst", "configs/rubrics/cgpst.yaml", "configs/rubrics/cgpst.yaml#purpose_0_2")
    )
    assert by_name["sha256"] == by_file["sha256"] == variant["sha256"]
    assert by_name["sha256"].keys() == {"rubric", "ratings", "scenarios", "splits", "model"}
    assert differences(by_file, variant) == ["rubric"]


def test_another_rubric_of_the_same_name_is_noticed(settings: dict[str, Any], tmp_path: Path) -> None:
    rubric, cgpst = tmp_path / "mine.yaml", Path("configs/rubrics/cgpst.yaml").read_text(encoding="utf-8")
    found = []
    for text in (cgpst, cgpst.replace("description: ", "description: Now ", 1)):
        rubric.write_text(text, encoding="utf-8")
        found.append(contents(*read(tmp_path, settings, rubric=f"{rubric}#purpose_0_2")))
    assert differences(*found) == ["sha256.rubric"]


def test_an_analysts_run_knows_its_rubric_and_traces_too(settings: dict[str, Any], tmp_path: Path) -> None:
    collect_oracle(tmp_path / "data", tmp_path / "traces")
    data = SotSettings(rubric="cgpst", traces=str(tmp_path / "traces"))
    found = contents({"model_name_or_path": settings["model_name_or_path"]}, data)["sha256"]
    assert found.keys() == {"rubric", "traces", "model"}
    assert found["traces"].keys() == {"data-00000-of-00001.arrow", "traces.json"}
