"""Scripted engines for commands that build their own."""

from collections.abc import Callable

from inference.engines.base import EngineConfig
from inference.engines.scripted import ScriptedEngine
from inference.records import Call, Completion

Answer = Callable[[Call], Completion]


class ScriptedEngines:
    """Makes scripted engines that share one `answer`, and keeps the calls."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.calls: list[Call] = []

    def __call__(self, config: EngineConfig) -> ScriptedEngine:
        def keep(call: Call) -> Completion:
            self.calls.append(call)
            return self.answer(call)

        return ScriptedEngine(config, keep)
