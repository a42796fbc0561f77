"""A run to be killed: ``python kill_run.py RUN_DIR SENT_LOG [cut]``.

Judges scripted samples into RUN_DIR and notes the key of every call that reaches the engine in SENT_LOG. With `cut` it
kills itself after the 20th judgement reached the store and before that judgement reaches the file.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from inference.engines.base import EngineConfig
from inference.engines.scripted import ScriptedEngine
from inference.judgement_file import JudgementFile
from inference.judges import JudgeConfig, resolved_judge
from inference.records import Call, Completion, Judgement, Sample
from inference.rubric import load_rubric
from inference.run_dir import RunDir
from inference.runner import run_judges

ROOT = Path(__file__).parents[2]
CUT_AT = 20


class NotingEngine(ScriptedEngine):
    """Notes each call before it is answered."""

    def __init__(self, config: EngineConfig, log: Path) -> None:
        super().__init__(config)
        self._log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    async def complete(self, call: Call) -> Completion:
        os.write(self._log, (call.key(self.identity) + "\n").encode())
        return await super().complete(call)


def main(run_dir: Path, log: Path, cut: bool) -> None:
    rubric = load_rubric(ROOT / "configs" / "rubrics" / "aut.yaml")
    samples = [
        Sample(id=f"s{i}", scenario=("rope", "tin", "shoe")[i % 3], responses={"use": f"use {i}"}) for i in range(150)
    ]
    common = {"engine": "scripted", "concurrency": 4}
    judges = [
        JudgeConfig.model_validate({"id": "a", "model": "a:0.01", "method": "compact", **common}),
        JudgeConfig.model_validate({"id": "b", "model": "b:0.01", "method": "direct", "repeats": 2, **common}),
    ]
    if cut:
        kill_before_append()
    with RunDir.open(run_dir, {"judges": [resolved_judge(judge) for judge in judges]}) as run:
        work = run_judges(
            samples,
            judges,
            rubric,
            run.store,
            run.judgements,
            quiet=True,
            build=lambda config: NotingEngine(config, log),
        )
        asyncio.run(work)


def kill_before_append() -> None:
    append = JudgementFile.append

    def append_or_die(file: JudgementFile, judgements: Sequence[Judgement]) -> None:
        if file.length + len(judgements) > CUT_AT:
            os.kill(os.getpid(), signal.SIGKILL)
        append(file, judgements)

    JudgementFile.append = append_or_die  # type: ignore[method-assign, assignment]


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), "cut" in sys.argv[3:])
