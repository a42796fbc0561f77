"""A generation to be killed: ``python kill_generation.py RUN_DIR SENT_LOG``. Notes each call that is sent."""

import asyncio
import os
import sys
from pathlib import Path

from eval.create.generation.records import ANSWERS, AnswerFile
from eval.create.generation.run import run_generators
from eval.create.generation.settings import Generator
from eval.create.queries.records import Query
from inference.engines.base import EngineConfig
from inference.engines.scripted import ScriptedEngine
from inference.judges import resolved_model
from inference.records import Call, Completion
from inference.run_dir import RunDir

QUERIES = [
    Query(id=f"q{i:02}", query=f"Connect A{i} with B{i}?", entity_a=f"A{i}", rel_b="part of", entity_b=f"B{i}")
    for i in range(40)
]
STRATEGIES = ("base", "iterate", "resample")


class NotingEngine(ScriptedEngine):
    def __init__(self, config: EngineConfig, log: Path) -> None:
        super().__init__(config, lambda call: Completion(text=f"<think>hm</think>answer {call.key(self.identity)}"))
        self._log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    async def complete(self, call: Call) -> Completion:
        os.write(self._log, (call.key(self.identity) + "\n").encode())
        return await super().complete(call)


def main(run_dir: Path, log: Path) -> None:
    generators = [
        Generator.model_validate(
            {"id": strategy, "engine": "scripted", "model": "m:0.01", "concurrency": 4, "strategy": strategy}
        )
        for strategy in STRATEGIES
    ]
    with RunDir.open(run_dir, {"generators": [resolved_model(one) for one in generators]}, judged=False) as run:
        sink = run.keep(AnswerFile(run.path / ANSWERS))
        asyncio.run(
            run_generators(
                QUERIES, generators, run.store, sink, build=lambda config: NotingEngine(config, log), quiet=True
            )
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
