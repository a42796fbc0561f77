"""``judgements.jsonl``: the judgements of a run, judge by judge."""

from typing import Any

from inference.record_file import FAILED, RecordFile
from inference.records import Judgement

JobKey = tuple[str, str, int]
"""Judge id, sample id, repeat."""


def job_key(judgement: Judgement) -> JobKey:
    return judgement.judge, judgement.sample_id, judgement.repeat


class JudgementFile(RecordFile[Judgement]):
    """See `RecordFile`."""

    def parse(self, content: Any) -> Judgement:
        return Judgement.model_validate(content)

    def key(self, record: Judgement) -> JobKey:
        return job_key(record)

    def fault(self, record: Judgement) -> str | None:
        reasons = (score.unscored for score in record.scores if score.unscored)
        return next((reason for reason in reasons if reason.startswith(FAILED)), None)
