"""A report mirrored to Weights & Biases: metric rows as a table, settings as config, the HTML as an artifact.

    python -m eval report runs/aut_published --wandb
    python -m eval report runs/aut_published --wandb online

The files of the run directory are the truth. Offline runs lie in its folder ``wandb``; ``wandb sync`` uploads them.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from eval.rows import MetricRow
from inference.errors import UserError

if TYPE_CHECKING:
    from eval.report import Report

PROJECT = "creajudge"


class Mirror:
    """An open W&B run. `open` raises for a wrong set-up; `send` only warns, because nothing is lost."""

    def __init__(self, run: Any) -> None:
        self._run = run

    @classmethod
    def open(cls, run_dir: Path, mode: Literal["offline", "online"]) -> "Mirror":
        """Start a W&B run, ``offline`` or ``online``.

        Raises UserError where wandb is missing, nobody is logged in for ``online``, or the run cannot be started.
        """
        if not run_dir.is_dir():
            raise UserError(f"{run_dir}: no such run directory; give the `out` of an evaluation that was run")
        os.environ.setdefault("WANDB_SILENT", "true")
        try:
            import wandb
        except ImportError:
            raise UserError("--wandb needs the package wandb, which is not installed: pip install wandb") from None
        if mode == "online" and not _logged_in(wandb):
            raise UserError("--wandb online needs a login and there is none: run `wandb login`, or leave `online` out")
        project = os.environ.get("WANDB_PROJECT", PROJECT)
        # No console, code or machine statistics: only what is sent here on purpose.
        settings = wandb.Settings(
            console="off", disable_git=True, save_code=False, x_disable_stats=True, x_disable_machine_info=True
        )
        try:
            run = wandb.init(
                project=project, name=run_dir.name, job_type="eval", dir=str(run_dir), mode=mode, settings=settings
            )
        except Exception as error:
            raise UserError(f"W&B could not start ({' '.join(str(error).split())}); leave --wandb out") from None
        return cls(run)

    def send(self, report: "Report") -> None:
        """Send settings, rows, the expected scores' metrics as summary, and the HTML file; then close the run."""
        import wandb

        def add_html() -> None:
            artifact = wandb.Artifact(f"report-{_plain(report.run.name)}", type="report")
            artifact.add_file(str(report.html))
            self._run.log_artifact(artifact)

        table = wandb.Table(
            columns=list(MetricRow.model_fields), data=[list(row.model_dump().values()) for row in report.rows]
        )
        _attempt("the settings", lambda: self._run.config.update(report.settings))
        _attempt("the metrics", lambda: self._run.log({"metrics": table}))
        _attempt("the summary", lambda: self._run.summary.update(_summary(report.rows)))
        _attempt("the report", add_html)
        _attempt("the end of the run", self._run.finish)


def _logged_in(wandb: Any) -> bool:
    """Whether the server accepts the user's key. Never asks for one."""
    try:
        return bool(wandb.login(prompt=False))
    except Exception as error:
        raise UserError(f"the W&B login was refused ({' '.join(str(error).split())}); leave `online` out") from None


def _summary(rows: list[MetricRow]) -> dict[str, float]:
    return {
        f"{row.split}/{row.judge}/{row.dimension}/{row.metric}": row.value
        for row in rows
        if row.score == "value" and row.value is not None
    }


def _plain(name: str) -> str:
    return "".join(character if character.isalnum() or character in "-_." else "-" for character in name)


def _attempt(what: str, action: Callable[[], Any]) -> None:
    try:
        action()
    except Exception as error:
        print(f"warning: {what} could not be sent to W&B ({type(error).__name__}: {error})", file=sys.stderr)
