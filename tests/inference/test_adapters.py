"""Adapters as files: digests, refusals, and the fit to a base model."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from inference.adapters import adapter_digest, check_base, model_digest, read_adapter, tensor_shapes
from inference.errors import UserError

CONFIG = {
    "peft_type": "LORA",
    "r": 2,
    "lora_alpha": 4,
    "target_modules": ["q_proj", "v_proj"],
    "bias": "none",
    "base_model_name_or_path": "models/base",
}
Shapes = dict[str, tuple[int, ...]]


def write_tensors(path: Path, shapes: Shapes, fill: bytes = b"\0") -> None:
    """A safetensors file whose tensors hold `fill`."""
    header: dict[str, Any] = {}
    end = 0
    for name, shape in shapes.items():
        size = 4
        for side in shape:
            size *= side
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + fill * end)


def lora(module: str, rank: int, outputs: int, inputs: int) -> Shapes:
    prefix = f"base_model.model.{module}"
    return {f"{prefix}.lora_A.weight": (rank, inputs), f"{prefix}.lora_B.weight": (outputs, rank)}


FITTING = {**lora("model.layers.0.q_proj", 2, 8, 6), **lora("model.layers.0.v_proj", 2, 4, 6)}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model directory with two linear layers."""
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    shapes = {"model.layers.0.q_proj.weight": (8, 6), "model.layers.0.v_proj.weight": (4, 6), "model.norm.weight": (6,)}
    write_tensors(folder / "model.safetensors", shapes)
    return folder


def write_adapter(folder: Path, shapes: Shapes = FITTING, fill: bytes = b"\0", **config: Any) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "adapter_config.json").write_text(json.dumps({**CONFIG, **config}))
    write_tensors(folder / "adapter_model.safetensors", shapes, fill)
    return folder


def test_adapter_is_read(tmp_path: Path, model: Path) -> None:
    adapter = read_adapter(write_adapter(tmp_path / "a", rank_pattern={"q_proj": 7}))
    assert (adapter.rank, adapter.base_model) == (7, "models/base")
    assert adapter.served_name("aut") == f"aut@{adapter.digest}"
    assert len(adapter.digest) == 12
    assert check_base(adapter, model) == 2


def test_digest_follows_the_content_alone(tmp_path: Path) -> None:
    digest = adapter_digest(write_adapter(tmp_path / "a"))
    other = write_adapter(
        tmp_path / "b", target_modules=["v_proj", "q_proj"], base_model_name_or_path="elsewhere", peft_version="9"
    )
    assert adapter_digest(other) == digest
    changed = [
        write_adapter(tmp_path / "c", fill=b"\1"),
        write_adapter(tmp_path / "d", lora_alpha=8),
        write_adapter(tmp_path / "e", use_rslora=True),
    ]
    assert len({digest, *map(adapter_digest, changed)}) == 4


def test_digest_notices_a_file_written_anew(tmp_path: Path) -> None:
    before = adapter_digest(write_adapter(tmp_path / "a"))
    assert adapter_digest(write_adapter(tmp_path / "a", shapes=lora("x", 2, 3, 3), fill=b"\2")) != before


def test_model_digest_covers_weights_and_configuration(model: Path) -> None:
    first = model_digest(model)
    (model / "README.md").write_text("notes")
    assert model_digest(model) == first
    (model / "config.json").write_text('{"rope": 1}')
    second = model_digest(model)
    write_tensors(model / "model.safetensors", {"x": (2, 2)}, b"\3")
    assert len({first, second, model_digest(model)}) == 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"modules_to_save": ["lm_head"]}, "replaces whole modules"),
        ({"peft_type": "IA3"}, "a IA3 adapter"),
        ({"use_dora": True}, "DoRA or biases"),
        ({"bias": "all"}, "DoRA or biases"),
        ({"r": "four"}, "not the configuration of a PEFT adapter"),
    ],
)
def test_adapters_that_vllm_cannot_serve_are_refused(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        read_adapter(write_adapter(tmp_path / "a", **change))


def test_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no adapter_config\.json there"):
        read_adapter(tmp_path)
    folder = write_adapter(tmp_path / "a")
    (folder / "adapter_model.safetensors").rename(folder / "adapter_model.bin")
    with pytest.raises(UserError, match="may run code when it is loaded"):
        read_adapter(folder)
    (folder / "adapter_config.json").write_text("{")
    (folder / "adapter_model.bin").rename(folder / "adapter_model.safetensors")
    with pytest.raises(UserError, match="not valid JSON"):
        read_adapter(folder)


@pytest.mark.parametrize("keep", [0, 4, 40, -1])
def test_cut_off_weights_are_refused(tmp_path: Path, keep: int) -> None:
    folder = write_adapter(tmp_path / "a")
    weights = folder / "adapter_model.safetensors"
    weights.write_bytes(weights.read_bytes()[:keep])
    with pytest.raises(UserError, match="not a whole safetensors file"):
        read_adapter(folder)


def test_shapes_are_read_without_the_weights(tmp_path: Path) -> None:
    write_tensors(tmp_path / "x.safetensors", {"a": (2, 3), "b": (1,)})
    assert tensor_shapes(tmp_path / "x.safetensors") == {"a": (2, 3), "b": (1,)}


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({**FITTING, **lora("model.layers.7.q_proj", 2, 8, 6)}, r"7\.q_proj\.lora_A\.weight matches no linear module"),
        ({**FITTING, **lora("language_model.model.layers.0.q_proj", 2, 8, 6)}, "matches no linear module"),
        ({**FITTING, "base_model.model.x.bias": (3,)}, "matches no linear module"),
        (lora("model.layers.0.q_proj", 2, 8, 5), r"lora_A\.weight has shape \[2, 5\], which does not fit"),
        (lora("model.layers.0.q_proj", 2, 9, 6), r"lora_B\.weight has shape \[9, 2\], which does not fit"),
        ({"base_model.model.model.layers.0.q_proj.lora_A.weight": (2, 6)}, "only half of its weights"),
        ({}, "no weights"),
    ],
)
def test_adapter_for_another_base_is_refused(tmp_path: Path, model: Path, shapes: Shapes, message: str) -> None:
    adapter = read_adapter(write_adapter(tmp_path / "a", shapes))
    with pytest.raises(UserError, match=message):
        check_base(adapter, model)


def test_missing_model_says_how_to_make_it(tmp_path: Path) -> None:
    adapter = read_adapter(write_adapter(tmp_path / "a"))
    with pytest.raises(UserError, match=r"scripts/base_model\.py"):
        check_base(adapter, tmp_path / "nothing")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"r": 0}, "0 as a rank"),
        ({"r": True}, "True as a rank"),
        ({"rank_pattern": {"q_proj": "many"}}, "many as a rank"),
        ({"rank_pattern": [4]}, "as a rank"),
        ({"modules_to_save": [1]}, r"replaces whole modules \(1\)"),
        ({"modules_to_save": "lm_head"}, r"replaces whole modules \(lm_head\)"),
        ({"peft_type": ["x"]}, "a x adapter"),
    ],
)
def test_faulty_settings_are_a_sentence(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        read_adapter(write_adapter(tmp_path / "a", **change))


def test_a_missing_rank_and_deep_nesting_are_sentences(tmp_path: Path) -> None:
    folder = write_adapter(tmp_path / "a")
    (folder / "adapter_config.json").write_text('{"peft_type": "LORA"}')
    with pytest.raises(UserError, match="None as a rank"):
        read_adapter(folder)
    (folder / "adapter_config.json").write_text("[" * 200_000)
    with pytest.raises(UserError, match=r"not valid JSON \(nested too deeply"):
        read_adapter(folder)


def entry(**changes: Any) -> dict[str, Any]:
    return {"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4], **changes}}


@pytest.mark.parametrize(
    "header",
    [
        [],
        "x",
        {"a": 1},
        entry(data_offsets=[]),
        entry(data_offsets=[0]),
        entry(data_offsets=[0, -4]),
        entry(data_offsets="04"),
        entry(shape=["x"]),
        entry(shape="1"),
        entry(shape=None),
    ],
)
def test_faulty_headers_are_a_sentence(tmp_path: Path, header: Any) -> None:
    path = tmp_path / "x.safetensors"
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"\0" * 4)
    with pytest.raises(UserError, match="not a whole safetensors file") as caught:
        tensor_shapes(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("change", ["one-dimensional", "norm"])
def test_weights_that_are_no_matrices_are_refused(tmp_path: Path, model: Path, change: str) -> None:
    shapes = dict(FITTING)
    if change == "norm":
        shapes |= lora("model.norm", 2, 6, 6)
    else:
        shapes["base_model.model.model.layers.0.q_proj.lora_A.weight"] = (6,)
    adapter = read_adapter(write_adapter(tmp_path / "a", shapes))
    with pytest.raises(UserError, match=r"norm.* matches no linear module|has shape \[6\], which does not fit"):
        check_base(adapter, model)


def test_files_of_a_model_that_cannot_be_read_are_named(model: Path) -> None:
    (model / "tokenizer.json").symlink_to(model / "absent")
    with pytest.raises(UserError, match=r"tokenizer\.json: cannot be read"):
        model_digest(model)
