"""Exact log-probabilities of score strings from a model's logits, in torch: the trainer's losses and the `hf` engine.

`scoring.grid_logprobs` is the same formula for engines that return plain numbers; a test holds the two together.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from inference.scoring import grid_branches

SMALLEST = 1e-30
"""Floor of the probability that no longer score string continues, so that its logarithm and gradient stay finite."""


class GridReader:
    """Reads one grid such as 1..5 or 1..16.

    Every prefix in `grid_branches` needs the logits after prompt + prefix: one row for the prompt itself and one more
    for each prefix that longer strings share ("1" where the grid holds 1 and 10…16).
    """

    def __init__(self, grid: Sequence[str], token_ids: Mapping[str, int]) -> None:
        """`token_ids`: character → id of its single token (`tokens.score_token_ids`)."""
        self.grid = tuple(grid)
        branches = grid_branches(grid)
        self.prefixes = tuple(branches)
        self.suffixes = tuple(tuple(token_ids[character] for character in prefix) for prefix in self.prefixes)
        row = {prefix: index for index, prefix in enumerate(self.prefixes)}
        self._reads = {
            text: [(row[text[:end]], token_ids[text[end]]) for end in range(len(text))] for text in self.grid
        }
        self._longer = {
            text: (row[text], [token_ids[character] for character in branches[text]])
            for text in self.grid
            if text in branches
        }

    def rows(self, prompt: Sequence[int]) -> list[list[int]]:
        """Token sequences whose next-token logits are needed, one per prefix, in the order `logprobs` expects."""
        return [[*prompt, *suffix] for suffix in self.suffixes]

    def logprobs(self, logits: Tensor) -> Tensor:
        """Natural log P(string) over the whole vocabulary, differentiable.

        Args:
            logits: (n, number of prefixes, vocabulary), next-token logits after each row of `rows`.

        Returns:
            (n, size of the grid), float32, not renormalised over the grid.
        """
        logprobs = logits.float().log_softmax(dim=-1)
        return torch.stack([self._string(text, logprobs) for text in self.grid], dim=1)

    def _string(self, text: str, logprobs: Tensor) -> Tensor:
        total = torch.stack([logprobs[:, row, token] for row, token in self._reads[text]]).sum(dim=0)
        if text in self._longer:
            row, tokens = self._longer[text]
            total = total + (1.0 - logprobs[:, row, tokens].exp().sum(dim=-1)).clamp_min(SMALLEST).log()
        return total


@contextmanager
def logits_only_at(head: nn.Module, rows: Tensor, columns: Tensor) -> Iterator[None]:
    """While active, the output head sees only the hidden states at (rows, columns) and returns (p, vocabulary) logits.

    A hook keeps the model's own forward, so data-parallel and sharding wrappers see the call they expect.
    """

    def select(_: nn.Module, args: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return (args[0][rows, columns], *args[1:])

    handle = head.register_forward_pre_hook(select)
    try:
        yield
    finally:
        handle.remove()
