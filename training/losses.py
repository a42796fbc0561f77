"""Losses of a numeric judge on the log-probabilities of its score strings.

`ce` teaches the distribution, `raft` the expected value; both keep fractional targets. Source of `raft`: regression-
aware fine-tuning (Lukasik et al., 2024), the squared error between the target and the score expected under the model.
Here the probabilities are renormalised over the grid first, so that mass on other tokens does not pull the score
towards zero, and the error is divided by the squared range, so that dimensions of different ranges weigh alike.
"""

import torch
from torch import Tensor


def soft_targets(targets: Tensor, scores: Tensor) -> Tensor:
    """Each target's mass on the two neighbouring scores, by linear interpolation: 3.7 → .3 on 3 and .7 on 4.

    Args:
        targets: (n,), within the range of `scores`.
        scores: (g,), ascending, one apart.

    Returns:
        (n, g), rows sum to one and have the target as expected value.
    """
    return (1.0 - (targets[:, None] - scores[None, :]).abs()).clamp_min(0.0)


def ce_loss(logprobs: Tensor, targets: Tensor, scores: Tensor) -> Tensor:
    """Cross-entropy in nats between `soft_targets` and the model's distribution over the whole vocabulary, (n,).

    `logprobs` (n, g) is not renormalised: mass off the grid is penalised, so a trained judge answers with scores alone.
    """
    return -(soft_targets(targets, scores) * logprobs).sum(dim=1)


def raft_loss(logprobs: Tensor, targets: Tensor, scores: Tensor) -> Tensor:
    """Squared error of the expected score in units of the range, (n,), between 0 and 1."""
    expected = (logprobs.softmax(dim=1) * scores).sum(dim=1)
    return ((expected - targets) / (scores[-1] - scores[0])).square()


def score_tensor(low: int, high: int) -> Tensor:
    """(high − low + 1,) float32, the whole scores of a range."""
    return torch.arange(low, high + 1, dtype=torch.float32)
