"""Alternate Uses Task: responses with mean human ratings of originality, and the split without leaks from training.

Random splits of pooled answers hold near duplicates: the same use, written in another case or with other punctuation,
in training and in test. ``test_clean`` is the test split without the rows that have such a match.
"""

import csv
from pathlib import Path
from typing import Literal

from eval.benchmarks.base import Benchmark
from inference.config import StrictModel
from inference.errors import UserError
from inference.rubric import Rubric
from inference.samples import Columns, read_samples

LEAK_KINDS = frozenset({"norm", "alnum"})
"""Matches of the same object and the same text: after lower-casing and collapsing blanks; letters and digits only."""


class AutConfig(StrictModel):
    """``benchmark:`` of an evaluation config."""

    name: Literal["aut"] = "aut"
    test: str
    """CSV or JSONL with the responses and ratings to evaluate on."""
    overlap: str | None = None
    """CSV of near duplicates with the columns id, file, matches_in, kind. With it there is a split ``test_clean``."""
    overlap_file: str = "ocsai1_test"
    """Name of the test file in the column ``file`` of `overlap`."""
    overlap_matches_in: str = "ocsai1_train"
    """Name of the training file in the column ``matches_in``."""
    columns: Columns = Columns(scenario="object")
    simulated: bool = False
    """True where the ratings were written for demonstration."""


def load(config: AutConfig, rubric: Rubric) -> Benchmark:
    """Rated samples with the splits ``test`` and, where `overlap` is given, ``test_clean``.

    Raises UserError for unreadable files, faulty rows, and an overlap file that does not name the two files.
    """
    samples = tuple(read_samples(config.test, rubric, config.columns, rated=True))
    ids = frozenset(sample.id for sample in samples)
    splits = {"test": ids}
    if config.overlap is not None:
        splits["test_clean"] = ids - leaked_ids(config.overlap, config.overlap_file, config.overlap_matches_in)
    return Benchmark(config.name, samples, splits, simulated=config.simulated)


def leaked_ids(path: Path | str, file: str, matches_in: str) -> frozenset[str]:
    """Ids of the rows of `file` that have a match of `LEAK_KINDS` in `matches_in`.

    Raises UserError for missing columns and where the pair of files never occurs: a wrong name would clean nothing.
    """
    path = Path(path)
    rows = _rows(path)
    pair = [row for row in rows if row["file"] == file and row["matches_in"] == matches_in]
    if not pair:
        pairs = sorted({f"{row['file']} in {row['matches_in']}" for row in rows})
        raise UserError(f"{path}: has no matches of {file} in {matches_in}; it has {', '.join(pairs) or 'no rows'}")
    return frozenset(row["id"] for row in pair if row["kind"] in LEAK_KINDS)


def _rows(path: Path) -> list[dict[str, str]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.DictReader(stream, strict=True)
            missing = {"id", "file", "matches_in", "kind"} - set(reader.fieldnames or [])
            if missing:
                raise UserError(f"{path}: missing columns {', '.join(sorted(missing))}; found {reader.fieldnames}")
            return list(reader)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; check the path, or leave `overlap` out") from None
    except IsADirectoryError:
        raise UserError(f"{path}: is a folder; name a file in it") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path}: cannot be read as a UTF-8 CSV file ({error})") from None
