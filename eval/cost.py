"""What the judges of an evaluation used, from the store of its run directory; `inference.cost` adds up."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from inference.cost import Costs, judge_costs
from inference.judges import JudgeConfig
from inference.records import Judgement
from inference.store import Store


def run_costs(store: Path, judgements: Sequence[Judgement], judges: Mapping[str, JudgeConfig]) -> Costs | None:
    """Use of the judges whose calls are in the file `store`; None where there is no such file or no such call.

    Judges by id. Raises UserError for a damaged store.
    """
    if not store.is_file():
        return None
    with Store(store) as opened:
        found = judge_costs(opened.calls(), judgements, judges)
    return found if found.judges else None
