"""Fixtures of all tests."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from inference.judges import JudgeConfig
from inference.records import Sample
from inference.rubric import Dimension, Rubric, Step, load_rubric

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The real data that is not part of the repository."""
    named = os.environ.get("CREAJUDGE_DATA", "")
    if not named or not Path(named).is_dir():
        pytest.skip("CREAJUDGE_DATA does not name the directory of the real data")
    return Path(named)


@pytest.fixture(scope="session")
def aut_rubric() -> Rubric:
    """One dimension, originality 1 to 5, fractional."""
    return load_rubric(ROOT / "configs" / "rubrics" / "aut.yaml")


@pytest.fixture(scope="session")
def plan_rubric() -> Rubric:
    """Two steps, three dimensions, whole scores, one range of two digits."""

    def dimension(name: str, low: int, high: int) -> Dimension:
        return Dimension(name=name, description=f"How good the {name} is.", range=(low, high))

    return Rubric(
        name="plan",
        description="Plans are rated.",
        steps=(
            Step(
                name="ideas", task="List ideas.", dimensions=(dimension("fluency", 1, 16), dimension("novelty", 0, 3))
            ),
            Step(name="outcome", task="Write a plan.", dimensions=(dimension("clarity", 1, 5),)),
        ),
    )


@pytest.fixture
def make_samples() -> Callable[[int], list[Sample]]:
    """n AUT samples whose scenarios alternate, so that the sending order differs from the order of the file."""

    def make(count: int) -> list[Sample]:
        objects = ("rope", "tin", "shoe")
        return [
            Sample(id=f"s{i:03}", scenario=objects[i % 3], responses={"use": f"a use numbered {i}"})
            for i in range(count)
        ]

    return make


@pytest.fixture
def make_judge() -> Callable[..., JudgeConfig]:
    """A scripted judge, `compact`, with the settings given."""

    def make(**settings: object) -> JudgeConfig:
        chosen = {"id": "judge", "engine": "scripted", "model": "scripted", "method": "compact", **settings}
        return JudgeConfig.model_validate(chosen)

    return make
