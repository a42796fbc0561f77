"""Calls in flight hide the server's latency: 1,400 calls of 500 ms, 64 at a time, everything written to disk."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LEAST_EFFICIENCY = 0.85
ATTEMPTS = 3
"""Other work on the machine can spoil one."""


def benchmark(*options: str) -> dict[str, float]:
    """The first number in each line of the benchmark."""
    command = [sys.executable, "scripts/benchmarks/concurrency.py", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stderr
    lines = re.findall(r"^(\S.*?)  +([\d.]+)", done.stdout, re.MULTILINE)
    return {name: float(value) for name, value in lines}


def test_a_small_run_reports_consistent_figures() -> None:
    found = benchmark("--samples", "6", "--in-flight", "3", "--latency", "0.02", "--sequential", "1")
    assert found["calls"] == 6 * 7
    assert found["ideal seconds"] == pytest.approx(6 * 7 * 0.02 / 3, abs=0.01)
    assert found["wall seconds"] >= found["ideal seconds"]
    assert found["sequential, extrapolated"] >= 6 * 7 * 0.02


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_64_calls_in_flight_take_a_64th_of_the_time() -> None:
    for _ in range(ATTEMPTS):
        found = benchmark()
        if found["wall seconds"] * LEAST_EFFICIENCY <= found["ideal seconds"]:
            break
    assert found["calls"] == 200 * 7
    assert found["wall seconds"] * LEAST_EFFICIENCY <= 200 * 7 * 0.5 / 64
    assert found["sequential, extrapolated"] >= 200 * 7 * 0.5
    assert found["speed-up"] >= LEAST_EFFICIENCY * 64
