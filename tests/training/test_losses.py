"""Losses and grid reading on values derived by hand, and against the plain-number formula of `scoring`."""

import math

import pytest

torch = pytest.importorskip("torch")

from inference.grid import GridReader  # noqa: E402
from inference.scoring import grid_branches, grid_logprobs  # noqa: E402
from training.losses import ce_loss, raft_loss, score_tensor, soft_targets  # noqa: E402

SCORES = score_tensor(1, 5)


def test_soft_targets_interpolate_between_neighbours() -> None:
    targets = soft_targets(torch.tensor([3.7, 1.0, 5.0, 2.5]), SCORES)
    expected = [[0, 0, 0.3, 0.7, 0], [1, 0, 0, 0, 0], [0, 0, 0, 0, 1], [0, 0.5, 0.5, 0, 0]]
    torch.testing.assert_close(targets, torch.tensor(expected))
    torch.testing.assert_close(targets @ SCORES, torch.tensor([3.7, 1.0, 5.0, 2.5]))


def test_ce_counts_mass_off_the_grid() -> None:
    # Half of the mass on the grid, all of it on "3": -ln(1/2).
    logprobs = torch.tensor([[-math.inf, -math.inf, math.log(0.5), -math.inf, -math.inf]]).clamp_min(-1e9)
    assert ce_loss(logprobs, torch.tensor([3.0]), SCORES).item() == pytest.approx(math.log(2))


def test_ce_of_a_fractional_target() -> None:
    # Target 3.7 on probabilities (.1, .1, .4, .2, .2): -(.3 ln .4 + .7 ln .2).
    logprobs = torch.tensor([[0.1, 0.1, 0.4, 0.2, 0.2]]).log()
    expected = -(0.3 * math.log(0.4) + 0.7 * math.log(0.2))
    assert ce_loss(logprobs, torch.tensor([3.7]), SCORES).item() == pytest.approx(expected, rel=1e-5)


def test_raft_is_the_squared_error_in_units_of_the_range() -> None:
    # Expected value .1 + .2 + 1.2 + .8 + 1.0 = 3.3, target 4.5, range 4: (1.2 / 4)² = .09.
    logprobs = torch.tensor([[0.1, 0.1, 0.4, 0.2, 0.2]]).log()
    assert raft_loss(logprobs, torch.tensor([4.5]), SCORES).item() == pytest.approx(0.09, rel=1e-5)


def test_raft_does_not_depend_on_the_mass_off_the_grid() -> None:
    logprobs = torch.tensor([[0.1, 0.1, 0.4, 0.2, 0.2]]).log()
    target = torch.tensor([2.0])
    torch.testing.assert_close(raft_loss(logprobs, target, SCORES), raft_loss(logprobs - 7.0, target, SCORES))


def test_raft_pulls_the_expected_score_towards_the_target() -> None:
    logprobs = torch.zeros(1, 5, requires_grad=True)
    raft_loss(logprobs, torch.tensor([5.0]), SCORES).sum().backward()
    assert logprobs.grad is not None
    assert (logprobs.grad[0, 1:] <= logprobs.grad[0, :-1]).all()  # the higher the score, the more it is raised


@pytest.mark.parametrize(("low", "high"), [(1, 5), (0, 10), (1, 16), (8, 12), (0, 25)])
def test_grid_reader_equals_the_plain_formula(low: int, high: int) -> None:
    grid = tuple(str(score) for score in range(low, high + 1))
    token_ids = {str(digit): digit + 3 for digit in range(10)}
    reader = GridReader(grid, token_ids)
    logits = torch.randn(4, len(reader.prefixes), 20, generator=torch.Generator().manual_seed(0))
    found = reader.logprobs(logits)
    for n in range(4):
        read = {
            prefix: {c: logits[n, row].log_softmax(-1)[token_ids[c]].item() for c in followers}
            for row, (prefix, followers) in enumerate(grid_branches(grid).items())
        }
        plain = grid_logprobs(grid, read)
        assert [plain[text] for text in grid] == pytest.approx(found[n].tolist(), abs=1e-5)


def test_probabilities_of_a_grid_with_shared_prefixes_are_disjoint() -> None:
    """P("1") leaves out what goes on to "10"…"16", so all strings together never exceed one."""
    reader = GridReader(tuple(str(score) for score in range(17)), {str(digit): digit for digit in range(10)})
    logits = torch.full((1, len(reader.prefixes), 10), 0.0)  # every digit equally likely, nothing else
    probabilities = dict(zip(reader.grid, reader.logprobs(logits).exp()[0].tolist(), strict=True))
    assert probabilities["2"] == pytest.approx(0.1)
    assert probabilities["12"] == pytest.approx(0.01)
    assert probabilities["1"] == pytest.approx(0.1 * (1 - 0.7))  # 0…6 of ten digits go on to 10…16
    assert sum(probabilities.values()) == pytest.approx(1.0)


def test_rows_of_a_grid_with_shared_prefixes() -> None:
    reader = GridReader(("1", "2", "10"), {"0": 7, "1": 8, "2": 9})
    assert reader.rows([4, 5]) == [[4, 5], [4, 5, 8]]


def test_gradients_stay_finite_where_every_continuation_is_certain() -> None:
    reader = GridReader(("1", "10"), {"0": 0, "1": 1})
    logits = torch.full((1, 2, 3), -50.0)
    logits[:, :, :2] = 50.0
    logits.requires_grad_()
    ce_loss(reader.logprobs(logits), torch.tensor([1.0]), torch.tensor([1.0, 10.0])).sum().backward()
    assert logits.grad is not None
    assert torch.isfinite(logits.grad).all()
