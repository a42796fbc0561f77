"""transformers' TrainingArguments with the weights of the numeric losses."""

from dataclasses import dataclass, field

from transformers import TrainingArguments


@dataclass
class JudgeTrainingArguments(TrainingArguments):
    """Overridden default: `remove_unused_columns` False (the collator needs the targets)."""

    ce_weight: float = field(default=1.0, metadata={"help": "Weight of the soft cross-entropy on neighbouring scores."})
    raft_weight: float = field(
        default=0.0, metadata={"help": "Weight of the squared error of the expected score, in units of the range."}
    )
    bucket_by_length: bool = field(
        default=True,
        metadata={"help": "Batches of similar length in shuffled order: less padding, same rows an epoch."},
    )
    resume: bool = field(
        default=True, metadata={"help": "Go on from the newest complete checkpoint in output_dir, where there is one."}
    )
    remove_unused_columns: bool = field(default=False, metadata={"help": "Keep the targets in the batch."})

    def __post_init__(self) -> None:
        if min(self.ce_weight, self.raft_weight) < 0 or self.ce_weight + self.raft_weight == 0:
            raise ValueError(
                f"ce_weight is {self.ce_weight} and raft_weight {self.raft_weight}: "
                "neither may be negative and one has to be above 0"
            )
        super().__post_init__()  # type: ignore[no-untyped-call]
