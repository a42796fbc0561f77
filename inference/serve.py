"""Serve a model and its adapters with vLLM over the OpenAI protocol.

    python -m inference serve --config configs/serving/aut_smollm2.yaml

Every adapter is checked against the model first and served as ``name@digest`` of its content: a changed adapter has
another name, so neither the server's prefix cache nor a judge's store can mix it up with an older one.
"""

import errno
import os
import shlex
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from inference.adapter_notes import AnalystNote, note_of
from inference.adapters import Adapter, check_base, read_adapter
from inference.config import StrictModel, Whole, load_config
from inference.engines.local import require
from inference.engines.vllm_model import INSTALL, block_size, lora_rank, prepare_environment, whole_prompts
from inference.errors import UserError
from inference.tokens import model_context, model_directory


class ServeConfig(StrictModel):
    """What to serve, and where."""

    model: str
    """Model directory. Its name is the served name of the model without an adapter."""
    adapters: dict[str, str] = Field(default_factory=dict)
    """Name → directory of a PEFT LoRA adapter."""
    host: str = "127.0.0.1"
    """Address to listen on. The server asks for no key, so keep it local unless the network is yours."""
    port: Whole = Field(default=8000, ge=1, le=65535)
    max_model_len: Whole = Field(default=2048, ge=8)
    """Longest prompt plus answer, in tokens."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    max_loras: Whole | None = Field(default=None, ge=1)
    """Adapters that one batch may mix. Default: all of them."""
    extra: dict[str, str | int | float | bool] = Field(default_factory=dict)
    """More options of the vLLM server, by name without dashes: ``{tensor-parallel-size: 2}``."""

    @field_validator("adapters")
    @classmethod
    def _plain_names(cls, value: dict[str, str]) -> dict[str, str]:
        bad = [name for name in value if not name.replace("-", "").replace("_", "").replace(".", "").isalnum()]
        if bad:
            raise ValueError(f"the adapter name {bad[0]!r} has other characters than letters, digits, '-', '_' and '.'")
        return value


def serve(config_path: Path) -> int:
    """Check, print the served names and become the vLLM server; returns only where the server doesn't start.

    Raises UserError for a missing model, an adapter that doesn't fit it, and a port in use.
    """
    config = load_config(config_path, ServeConfig)
    require("vllm", INSTALL)
    adapters = served_adapters(config)
    check_port(config.host, config.port)
    command = server_command(config, adapters)
    print(f"serving at http://{config.host}:{config.port}/v1 as model:")
    for name in served_names(config, adapters):
        print(f"  {name}")
    print(shlex.join(command), flush=True)
    prepare_environment()
    os.execv(command[0], command)


def served_adapters(config: ServeConfig) -> dict[str, Adapter]:
    """Name → adapter, each checked against the model. Raises UserError for the first that doesn't fit, and for a
    context that is longer than the model's, or shorter than the rows that an adapter was trained on."""
    adapters = {name: read_adapter(path) for name, path in config.adapters.items()}
    for adapter in adapters.values():
        check_base(adapter, config.model)
    check_context(config, adapters)
    return adapters


def check_context(config: ServeConfig, adapters: Mapping[str, Adapter]) -> None:
    """Raise UserError where `max_model_len` doesn't fit the model or an adapter."""
    context = model_context(config.model)
    # Who overrides the model's settings may stretch its context as well; vLLM knows the outcome.
    if context is not None and config.max_model_len > context and "hf-overrides" not in config.extra:
        raise UserError(
            f"max_model_len is {config.max_model_len}, but the model {config.model} reads {context} tokens at most: "
            "lower it, or serve a model with a longer context"
        )
    for name, adapter in adapters.items():
        note = note_of(adapter.path)
        longest = note.max_row_tokens if isinstance(note, AnalystNote) else None
        if longest is not None and longest > config.max_model_len:
            raise UserError(
                f"max_model_len is {config.max_model_len}, too short for the adapter {name}: it was trained on rows of "
                f"up to {longest} tokens; set max_model_len to {longest} or more"
            )


def served_names(config: ServeConfig, adapters: Mapping[str, Adapter]) -> list[str]:
    """Names that a judge's `model` may have: the model's own and one per adapter."""
    own = model_directory(config.model).resolve().name
    return [own, *(adapter.served_name(name) for name, adapter in adapters.items())]


def server_command(config: ServeConfig, adapters: Mapping[str, Adapter]) -> list[str]:
    """The command line of the vLLM server.

    The module is started instead of the ``vllm`` command, which does not work in the CPU build.
    """
    own, *names = served_names(config, adapters)
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(Path(config.model).resolve())]
    command += ["--served-model-name", own, "--host", config.host, "--port", str(config.port)]
    command += ["--dtype", config.dtype, "--max-model-len", str(config.max_model_len), "--generation-config", "vllm"]
    command += ["--enable-prefix-caching", "--block-size", str(block_size())]
    command += ["--enable-prompt-tokens-details", "--enable-tokenizer-info-endpoint"]
    command += ["--structured-outputs-config", '{"backend": "xgrammar", "disable_any_whitespace": true}']
    command += _extra_options({name.replace("_", "-"): v for name, v in whole_prompts(config.max_model_len).items()})
    if adapters:
        modules = [f"{name}={adapter.path.resolve()}" for name, adapter in zip(names, adapters.values(), strict=True)]
        command += ["--enable-lora", "--max-lora-rank", str(lora_rank(list(adapters.values())))]
        command += ["--max-loras", str(config.max_loras or len(adapters)), "--lora-modules", *modules]
    return [*command, *_extra_options(config.extra)]


def _extra_options(extra: Mapping[str, str | int | float | bool]) -> Sequence[str]:
    options = []
    for name, value in extra.items():
        if isinstance(value, bool):
            options.append(f"--{name}" if value else f"--no-{name}")
        else:
            options += [f"--{name}", str(value)]
    return options


def check_port(host: str, port: int) -> None:
    """Raise UserError where nothing can listen at `host`:`port`, before minutes are spent on loading."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise UserError(f"port {port} of {host} is in use: stop what runs there, or set another `port`") from None
        raise UserError(f"cannot listen at {host}:{port} ({error.strerror}); check `host` and `port`") from None
