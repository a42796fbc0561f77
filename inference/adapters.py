"""PEFT adapters and model directories as files: content digests, validation and fit to a base model, without torch.

Adapters are named by their content wherever they are served or stored, because a server that sees a known name keeps
the old weights and the old prefix cache. A LoRA key that matches no module of the base model would be ignored in
silence and leave the base model's scores, so such a key is an error here.
"""

import hashlib
import json
import re
import struct
from pathlib import Path
from typing import Any

from pydantic import NonNegativeInt, ValidationError

from inference.config import StrictModel
from inference.errors import UserError, named, named_list
from inference.files import os_errors, parse_json, write_text
from inference.tokens import model_directory

# Settings that change what the adapter computes. Paths, versions and training options may differ between equals.
_SEMANTIC = (
    *("peft_type", "r", "lora_alpha", "target_modules", "rank_pattern", "alpha_pattern", "bias", "fan_in_fan_out"),
    *("use_rslora", "use_dora", "layers_to_transform", "layers_pattern", "layer_replication", "modules_to_save"),
)
PREFIX = "base_model.model."
"""PEFT's, before the name of a module."""
LANGUAGE_MODEL = "model.language_model."
"""How the names of a language model begin in a checkpoint that holds a vision model, too."""
TEXT_NAMES = {rf"^{re.escape(LANGUAGE_MODEL)}": "model."}
"""For PEFT: names of a checkpoint → names in transformers, which loads the language model of such a one alone."""
_MAX_HEADER_BYTES = 100_000_000

BASE_NOTE = "base_model.json"
"""File in an adapter's directory with the digest of the base model."""

_digests: dict[tuple[str, int, int], str] = {}


class _Tensor(StrictModel):
    """A tensor's entry in the header of a safetensors file."""

    dtype: str
    shape: tuple[NonNegativeInt, ...]
    data_offsets: tuple[NonNegativeInt, NonNegativeInt]


class Adapter(StrictModel):
    """A validated LoRA adapter."""

    path: Path
    digest: str
    """First 12 hex digits of the content's SHA-256."""
    base_model: str
    """What the adapter says it was trained on; a path or a hub name."""
    rank: int
    """Largest rank of any of its modules."""

    def served_name(self, name: str) -> str:
        """Name under which a server offers the adapter: ``name@digest``."""
        return f"{name}@{self.digest}"


def file_digest(path: Path) -> str:
    """SHA-256 hex digest of a file, kept in memory until its size or time of change differ. UserError if unreadable."""
    with os_errors(path, "cannot be read"):
        state = path.stat()
        key = (str(path.resolve()), state.st_size, state.st_mtime_ns)
        if key not in _digests:
            with path.open("rb") as file:
                _digests[key] = hashlib.file_digest(file, "sha256").hexdigest()
        return _digests[key]


def model_digest(model: Path | str) -> str:
    """First 12 hex digits of a SHA-256 over a model's weights, configuration, tokenizer and chat template."""
    folder = model_directory(model)
    with os_errors(folder, "cannot be read"):
        files = sorted(path for path in folder.iterdir() if path.suffix in (".json", ".jinja", ".safetensors"))
    content = "\n".join(f"{path.name} {file_digest(path)}" for path in files)
    return hashlib.sha256(content.encode()).hexdigest()[:12]


def adapter_digest(path: Path | str) -> str:
    """First 12 hex digits of a SHA-256 over what an adapter computes: its weights and the settings that shape them.

    Raises UserError where the directory holds no adapter in safetensors format.
    """
    config, weights = _adapter_files(Path(path))
    semantic = {key: _canonical(config[key]) for key in _SEMANTIC if key in config}
    content = json.dumps(semantic, sort_keys=True) + file_digest(weights)
    return hashlib.sha256(content.encode()).hexdigest()[:12]


def read_adapter(path: Path | str) -> Adapter:
    """The adapter in a directory. Raises UserError where it is not a plain LoRA adapter that vLLM can serve."""
    path = Path(path)
    config, weights = _adapter_files(path)
    if config.get("peft_type") != "LORA":
        raise UserError(
            f"{path}: a {_shown(config.get('peft_type'))} adapter; only LORA adapters can be served, train one"
        )
    if config.get("modules_to_save"):
        raise UserError(
            f"{path}: the adapter replaces whole modules ({_shown(config['modules_to_save'])}), which vLLM cannot "
            "serve; merge it into its base with `python -m training.export merge`, or train without modules_to_save"
        )
    if config.get("use_dora") or config.get("bias", "none") != "none":
        raise UserError(
            f"{path}: the adapter uses DoRA or biases, which vLLM cannot serve; merge it or train plain LoRA"
        )
    rank = _largest_rank(path, config)
    base = str(config.get("base_model_name_or_path") or "")
    tensor_shapes(weights)  # a cut-off file is noticed here, not by the server
    return Adapter(path=path, digest=adapter_digest(path), base_model=base, rank=rank)


def _largest_rank(path: Path, config: dict[str, Any]) -> int:
    pattern = config.get("rank_pattern") or {}
    ranks = [config.get("r"), *(pattern.values() if isinstance(pattern, dict) else [pattern])]
    bad = [rank for rank in ranks if type(rank) is not int or rank < 1]
    if bad:
        raise UserError(
            f"{path}: adapter_config.json gives {_shown(bad[0])} as a rank (r or rank_pattern) where a whole number "
            "from 1 is needed; export the adapter again"
        )
    return max(rank for rank in ranks if isinstance(rank, int))


def note_base(path: Path, model: Path | str) -> None:
    """Write into an adapter's directory which weights it was trained on."""
    write_text(path / BASE_NOTE, json.dumps({"base_model_digest": model_digest(model)}) + "\n")


def check_base(adapter: Adapter, model: Path | str) -> int:
    """Number of modules of the model in directory `model` that `adapter` changes.

    Raises UserError naming the first key that matches no module of the model, or whose shape does not fit it, and for
    a model of the same shapes with other weights, where the adapter says on which it was trained (`note_base`).
    """
    folder = model_directory(model)
    note = adapter.path / BASE_NOTE
    if note.is_file() and model_digest(folder) not in note.read_text(encoding="utf-8", errors="replace"):
        raise UserError(
            f"{adapter.path}: the adapter was trained on {adapter.base_model or 'another model'}, and {folder} has "
            "other weights: give that base model, or train an adapter for this one"
        )
    base = model_shapes(folder)
    shapes = tensor_shapes(adapter.path / "adapter_model.safetensors")
    modules: dict[str, set[str]] = {}
    for key in sorted(shapes):
        module, side = _module_of(key)
        shown = named(key, 200)
        weight = base.get(f"{module}.weight")
        if side is None or weight is None or len(weight) != 2:
            raise UserError(
                f"{adapter.path}: the adapter's key {shown} matches no linear module of {folder}; it was trained on "
                f"{adapter.base_model or 'an unnamed model'}: give that base model, or train an adapter for this one"
            )
        shape = shapes[key]
        axis = 1 if side == "A" else 0
        if len(shape) != 2 or shape[axis] != weight[axis]:
            raise UserError(
                f"{adapter.path}: the adapter's key {shown} has shape {list(shape)}, which does not fit the module's "
                f"{list(weight)} in {folder}; it was trained on another model, {adapter.base_model or 'without a name'}"
            )
        modules.setdefault(module, set()).add(side)
    halves = [module for module, sides in modules.items() if sides != {"A", "B"}]
    if halves or not modules:
        what = f"only half of its weights for {halves[0]}" if halves else "no weights"
        raise UserError(f"{adapter.path}: the adapter holds {what}; export it again from its checkpoint")
    return len(modules)


def tensor_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """Tensor name → shape, from the header of a safetensors file alone. Raises UserError for a damaged file."""
    try:
        with path.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            if length > _MAX_HEADER_BYTES:
                raise ValueError(f"a header of {length} bytes")
            header = parse_json(file.read(length))
        if not isinstance(header, dict):
            raise ValueError("the header is no JSON object")
        tensors = {name: _Tensor.model_validate(entry) for name, entry in header.items() if name != "__metadata__"}
        end = 8 + length + max((tensor.data_offsets[1] for tensor in tensors.values()), default=0)
        if path.stat().st_size < end:
            raise ValueError(f"{path.stat().st_size} of {end} bytes are there")
        return {name: tensor.shape for name, tensor in tensors.items()}
    except ValidationError as error:
        fault = error.errors()[0]
        reason = f"a tensor's {'.'.join(map(str, fault['loc'])) or 'entry'}: {fault['msg']}"
        raise UserError(f"{path}: not a whole safetensors file ({reason}); copy or export it again") from None
    except (OSError, ValueError, struct.error) as error:
        raise UserError(f"{path}: not a whole safetensors file ({error}); copy or export it again") from None


def model_shapes(folder: Path) -> dict[str, tuple[int, ...]]:
    """Tensor name → shape of a model directory, from the headers alone. UserError where it has no safetensors."""
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise UserError(f"{folder}: no safetensors weights; convert the model to safetensors first")
    return {name: shape for file in files for name, shape in tensor_shapes(file).items()}


def _adapter_files(path: Path) -> tuple[dict[str, Any], Path]:
    settings, weights = path / "adapter_config.json", path / "adapter_model.safetensors"
    if not settings.is_file():
        raise UserError(f"{path}: no adapter_config.json there; give the directory that training wrote the adapter to")
    if not weights.is_file():
        pickled = " (adapter_model.bin may run code when it is loaded, so it is refused)" if _has_pickle(path) else ""
        raise UserError(f"{path}: no adapter_model.safetensors there{pickled}; save the adapter in safetensors format")
    try:
        with os_errors(settings, "cannot be read"):
            config = parse_json(settings.read_bytes())
    except ValueError as error:
        raise UserError(f"{settings}: not valid JSON ({error}); export the adapter again") from None
    if not isinstance(config, dict) or not isinstance(config.get("r", 1), int):
        raise UserError(f"{settings}: not the configuration of a PEFT adapter; export the adapter again")
    return config, weights


def _shown(value: Any) -> str:
    return named_list(value if isinstance(value, list) else [value])


def _has_pickle(path: Path) -> bool:
    return any(path.glob("adapter_model*.bin"))


def _module_of(key: str) -> tuple[str, str | None]:
    """``base_model.model.X.lora_A.weight`` → (X, "A"); the side is None for a key of another form."""
    for side in ("A", "B"):
        ending = f".lora_{side}.weight"
        if key.startswith(PREFIX) and key.endswith(ending):
            return key[len(PREFIX) : -len(ending)], side
    return key, None


def _canonical(value: Any) -> Any:
    # PEFT writes these sets in any order.
    return sorted(value) if isinstance(value, list) and all(isinstance(item, str) for item in value) else value
