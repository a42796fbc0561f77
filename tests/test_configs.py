"""Every file under configs/ is read by the class that uses it, and opens with a command that uses it."""

import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from inference.config import load_config, read_yaml
from inference.rubric import load_rubric

ROOT = Path(__file__).parents[1]
CONFIGS = sorted(path.relative_to(ROOT) for path in (ROOT / "configs").rglob("*") if path.is_file())
TRAINING = [path for path in CONFIGS if path.parts[1] == "training" and path.name != "traces.yaml"]
COMMAND = re.compile(r"^#\s+((?:python -m|accelerate launch|bash scripts/)\b.*)$", re.MULTILINE)


@pytest.fixture(autouse=True)
def _in_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths in configs are relative to the repository root."""
    monkeypatch.chdir(ROOT)


def _load_judging(path: Path) -> None:
    from inference.judge import JudgingConfig

    load_config(path, JudgingConfig)


def _load_eval(path: Path) -> None:
    from eval.create.evaluators.settings import EvaluateConfig
    from eval.create.generation.settings import GenerationConfig
    from eval.create.queries.settings import BuildConfig
    from eval.create.reasoning.settings import ReasoningConfig
    from eval.run import EvalConfig

    of_command = {
        "python -m eval create evaluate": EvaluateConfig,
        "python -m eval create generate": GenerationConfig,
        "python -m eval create queries build": BuildConfig,
        "python -m eval create reasoning": ReasoningConfig,
        "python -m eval run": EvalConfig,
    }
    found = [kind for start, kind in of_command.items() for command in commands(path) if command.startswith(start)]
    assert found, f"{path}: no command says which class reads it: add it to of_command"
    load_config(path, found[0])


def _load_serving(path: Path) -> None:
    from inference.serve import ServeConfig
    from inference.service import ServiceConfig

    served = any(command.startswith("python -m inference serve ") for command in commands(path))
    load_config(path, ServeConfig if served else ServiceConfig)


def _training_settings(path: Path) -> dict[str, Any]:
    """The settings of the first command in the file's opening comment that trains."""
    from training.command import parse
    from training.settings import DataSettings, read_settings_of
    from training.sot_settings import SotSettings

    words = shlex.split(_launch(path))
    named, overrides = parse(words[words.index("--config") :])
    settings, _ = read_settings_of(SotSettings if "training.sot" in words else DataSettings, named, overrides)
    return settings


def _launch(path: Path) -> str:
    """The command among those in the opening comment that trains."""
    return next((command for command in commands(path) if command.startswith("accelerate launch")), "")


def _load_training(path: Path) -> object:
    if _launch(path):
        return _training_settings(path)
    from training.traces.filter import FilterConfig

    return load_config(path, FilterConfig)


def _load_accelerate(path: Path) -> Any:
    """By accelerate's own class; what it hands on unread has to be options of its launcher, which ignores others."""
    from accelerate.commands.config.config_args import load_config_from_file
    from accelerate.commands.launch import launch_command_parser

    config = load_config_from_file(str(path))
    known = {action.dest for action in launch_command_parser()._actions}
    assert {*config.fsdp_config, *config.deepspeed_config} <= known
    return config


LOADERS: dict[str, Callable[[Path], object]] = {
    "rubrics": load_rubric,
    "judging": _load_judging,
    "eval": _load_eval,
    "serving": _load_serving,
    "training": _load_training,
    "accelerate": _load_accelerate,
}


def commands(path: Path) -> list[str]:
    """The commands in the comment that opens a config, lines ending in a backslash joined."""
    head = "".join(opening_comment(path))
    return [match.group(1) for match in COMMAND.finditer(re.sub(r"\\\n#\s*", "", head))]


def opening_comment(path: Path) -> Iterator[str]:
    for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
        if not line.startswith("#"):
            return
        yield line


def paths_in(node: Any) -> Iterator[str]:
    """Values that name a file of the repository."""
    if isinstance(node, dict):
        node = list(node.values())
    if isinstance(node, list):
        for item in node:
            yield from paths_in(item)
    elif isinstance(node, str) and node.startswith(("configs/", "eval/", "inference/")):
        yield node


def test_every_kind_of_config_is_there() -> None:
    assert {path.parts[1] for path in CONFIGS} >= set(LOADERS)


@pytest.mark.parametrize("path", CONFIGS, ids=str)
def test_config_is_claimed_and_loads(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert path.parts[1] in LOADERS, f"no loader claims {path}: add its class to LOADERS"
    assert path.suffix == ".yaml"
    assert len(path.parts) == 3
    monkeypatch.setattr("inference.tokens.model_directory", Path)  # the base model need not be there
    LOADERS[path.parts[1]](path)


@pytest.mark.parametrize("path", CONFIGS, ids=str)
def test_config_opens_with_a_command_that_uses_it(path: Path) -> None:
    found = commands(path)
    assert found, f"{path}: its opening comment has no command"
    for word in (word for command in found for word in shlex.split(command)):
        assert not word.startswith("configs/") or (ROOT / word).is_file(), f"{path}: {word} does not exist"
    if path.parts[1] != "rubrics":
        assert any(str(path) in shlex.split(command) for command in found)


@pytest.mark.parametrize("path", CONFIGS, ids=str)
def test_files_of_the_repository_that_a_config_names_exist(path: Path) -> None:
    missing = [name for name in paths_in(read_yaml(path)) if not (ROOT / name).exists()]
    assert not missing


@pytest.mark.parametrize(
    ("path", "command"),
    [(path, command) for path in CONFIGS for command in commands(path) if "--config_file" in command],
    ids=lambda value: value.stem if isinstance(value, Path) else "",
)
def test_launch_that_a_training_config_expects_is_what_its_command_starts(path: Path, command: str) -> None:
    from accelerate.commands.launch import launch_command_parser

    words = shlex.split(command)
    assert str(path) in words
    args = launch_command_parser().parse_args(words[2 : words.index("--config")])
    config = _load_accelerate(Path(args.config_file))
    settings = read_yaml(words[words.index("--config") + 1])
    overrides = dict(zip(words[words.index("--config") + 2 :: 2], words[words.index("--config") + 3 :: 2], strict=True))
    size = overrides.get("--expect_world_size", settings.get("expect_world_size"))
    wrapper = overrides.get("--expect_wrapper", settings.get("expect_wrapper"))
    assert int(size) == (args.num_processes or config.num_processes)
    started = {"NO": "none", "MULTI_GPU": "ddp", "FSDP": "fsdp2", "DEEPSPEED": "deepspeed"}
    assert wrapper == started[config.distributed_type.value]
    assert config.fsdp_config.get("fsdp_version", 2) == 2


@pytest.mark.slow
@pytest.mark.parametrize("path", TRAINING, ids=str)
def test_training_config_has_known_keys(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest of a training config belongs to transformers and TRL, whose imports take 10 s."""
    from training.fit import parse_arguments, parse_arguments_of

    monkeypatch.setattr("inference.tokens.model_directory", Path)
    # On a machine without a GPU transformers refuses bf16, whatever else is right or wrong.
    settings = {**_training_settings(path), "use_cpu": True}
    if "training.sot" in _launch(path):
        from training.sot_fit import OURS
        from training.sot_trainer import SotArguments

        assert parse_arguments_of(SotArguments, settings, OURS)[1].use_peft
        return
    args, model_args = parse_arguments(settings)
    assert args.ce_weight + args.raft_weight > 0
    assert model_args.use_peft
