"""What several tests of traces start from. Nothing is imported before a test asks for it."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def simulation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Simulated CGPST with a file of few ratings, see `trace_runs`."""
    from trace_runs import write_few

    return write_few(tmp_path_factory.mktemp("simulated"))


@pytest.fixture(scope="session")
def run_dir(simulation: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An evaluation of some answers by two judges with an analyst, one of them asked twice, and one without."""
    from trace_runs import write_run

    out = tmp_path_factory.mktemp("runs") / "run"
    write_run(out, simulation)
    return out
