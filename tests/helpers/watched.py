"""A scripted engine that is watched."""

from collections.abc import Callable

from inference.engines.base import EngineConfig
from inference.engines.scripted import ScriptedEngine
from inference.records import Call, Completion


class Watched(ScriptedEngine):
    """Counts the calls, all and at the same time; knows whether it was closed."""

    def __init__(self, config: EngineConfig, answer: Callable[[Call], Completion] | None = None) -> None:
        super().__init__(config, answer)
        self.calls: list[Call] = []
        self.now = self.most = 0
        self.closed = False

    async def complete(self, call: Call) -> Completion:
        self.calls.append(call)
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            return await super().complete(call)
        finally:
            self.now -= 1

    async def close(self) -> None:
        self.closed = True
