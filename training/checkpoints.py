"""Which checkpoint a stopped run goes on from."""

import json
import re
from pathlib import Path

NEEDED = (
    "adapter_model.safetensors",
    "adapter_config.json",
    "optimizer.pt|optimizer.bin|global_step*",  # of one process and DDP, of FSDP2, of DeepSpeed
    "scheduler.pt",
    "rng_state*.pth",
    "trainer_state.json",
)


def newest_complete(out: Path) -> Path | None:
    """The checkpoint of `out` with the highest step that was written to its end; others are skipped by name.

    trainer_state.json is written last, so its being readable marks the end.
    """
    found = []
    for path in out.glob("checkpoint-*"):
        match = re.fullmatch(r"checkpoint-(\d+)", path.name)
        if match is None:
            continue
        missing = [names for names in NEEDED if not any(any(path.glob(name)) for name in names.split("|"))]
        if missing or not _readable(path / "trainer_state.json"):
            print(
                f"skipping the incomplete checkpoint {path} ({', '.join(missing) or 'trainer_state.json is cut off'})"
            )
            continue
        found.append((int(match.group(1)), path))
    return max(found)[1] if found else None


def _readable(path: Path) -> bool:
    try:
        json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return False
    return True
