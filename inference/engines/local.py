"""What the engines with a model of their own share: its directory, the adapter, the tokenizer, prompts as token ids."""

from abc import abstractmethod
from collections.abc import Sequence
from importlib.util import find_spec
from itertools import groupby

from inference.adapters import Adapter, check_base, model_digest, read_adapter
from inference.engines.base import EngineConfig, EngineError
from inference.engines.batching import BatchingEngine
from inference.errors import UserError
from inference.records import Call, Completion
from inference.tokens import encode_chat, encode_plain, load_tokenizer, model_directory


def require(package: str, command: str) -> None:
    """Raise UserError naming the install `command` where `package` is missing. Imports nothing."""
    if find_spec(package) is None:
        raise UserError(f"this engine needs the package {package}, which is not installed: {command}")


class LocalEngine(BatchingEngine):
    """Encodes calls and answers them in groups."""

    kind: str

    def __init__(self, config: EngineConfig) -> None:
        """Reads and checks the files; the weights are loaded with the first batch. Raises UserError."""
        super().__init__(config.batch_size)
        self.config = config
        self.folder = model_directory(config.model)
        self.adapter: Adapter | None = None
        if config.adapter is not None:
            self.adapter = read_adapter(config.adapter)
            check_base(self.adapter, self.folder)
        self.tokenizer = load_tokenizer(self.folder)

    @property
    def identity(self) -> dict[str, str]:
        """See `Engine`."""
        identity = {"engine": self.kind, "model": model_digest(self.folder), "dtype": self.config.dtype}
        return {**identity, "adapter": self.adapter.digest} if self.adapter else identity

    def encode(self, call: Call) -> list[int]:
        """Token ids of a call's prompt. Raises EngineError where it leaves less than half of the answer's room.

        `max_tokens` is what an answer may need at worst, so an answer is given what the context leaves.
        """
        if call.prompt is not None:
            ids = encode_plain(self.tokenizer, call.prompt)
        else:
            ids = encode_chat(self.tokenizer, call.messages or ())
        if not ids:
            raise EngineError("the prompt is empty")
        if len(ids) + (call.max_tokens + 1) // 2 > self.config.max_model_len:
            raise EngineError(
                f"a prompt of {len(ids)} tokens and an answer of up to {call.max_tokens} exceed max_model_len "
                f"{self.config.max_model_len}; raise it, or shorten the response"
            )
        return ids

    def compute(self, calls: Sequence[Call]) -> list[Completion | EngineError]:
        """See `BatchingEngine`. A call whose prompt doesn't fit fails alone."""
        results: list[Completion | EngineError | None] = [None] * len(calls)
        calls = list(calls)
        prompts: dict[int, list[int]] = {}
        for index, call in enumerate(calls):
            try:
                prompts[index] = self.encode(call)
                left = self.config.max_model_len - len(prompts[index])
                calls[index] = call.model_copy(update={"max_tokens": min(call.max_tokens, left)})
            except EngineError as error:
                results[index] = error
        places = sorted(prompts, key=lambda index: (self.group(calls[index]), len(prompts[index])))
        for _, group in groupby(places, key=lambda index: self.group(calls[index])):
            members = list(group)
            done = self.answer([calls[index] for index in members], [prompts[index] for index in members])
            for index, completion in zip(members, done, strict=True):
                results[index] = completion
        return [result for result in results if result is not None]

    @abstractmethod
    def group(self, call: Call) -> str:
        """Calls of one group are answered together."""

    @abstractmethod
    def answer(self, calls: Sequence[Call], prompts: Sequence[list[int]]) -> Sequence[Completion]:
        """Answers calls of one group; `prompts` holds the token ids of each."""
