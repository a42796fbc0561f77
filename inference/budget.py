"""What a run may spend. Finished calls of earlier starts count, so a budget holds for the run as a whole."""

from collections.abc import Iterable
from typing import Any

from inference.cost import model_prices
from inference.errors import UserError
from inference.judges import Budget, ModelConfig, Price
from inference.records import Usage
from inference.store import Store


class BudgetReached(UserError):
    """No further call is sent."""

    waiting: tuple[Any, ...] = ()
    """Records (of a run of judges: judgements) that are finished but not in the file yet, where earlier jobs come
    first."""


class Meter:
    """What has been spent, against a budget."""

    def __init__(self, budget: Budget | None, models: Iterable[ModelConfig], store: Store) -> None:
        self._budget = budget or Budget()
        self._prices = checked_prices(self._budget, models)
        self.tokens, self.cost = 0, 0.0
        self._uncounted = ""
        if budget is not None:
            for call in store.calls():
                self.add(call.model, call.completion.usage)

    def add(self, label: str, usage: Usage) -> None:
        """Count a finished call of the model `label`."""
        self.tokens += usage.prompt + usage.completion
        price = self._prices.get(label)
        self.cost += price.cost(usage) if price else 0.0
        limits = self._budget
        if not usage.known and (limits.max_tokens_total or (limits.max_cost and not (price and price.free))):
            self._uncounted = label

    def check_counted(self) -> None:
        """Raises BudgetReached where a finished call was not counted: whoever can't count can't keep to a budget."""
        if self._uncounted:
            raise BudgetReached(
                f"budget: the server of the model {self._uncounted.split('|')[1]} does not report the tokens that it "
                "used, so no budget can be kept; everything finished is kept: remove `budget`, or use a server that "
                "reports `usage`, and start the same command again"
            )

    def check(self) -> None:
        """Raises BudgetReached where nothing is left. Calls in flight may go over the budget by what they use."""
        self.check_counted()
        limits = self._budget
        if limits.max_tokens_total is not None and self.tokens >= limits.max_tokens_total:
            self._stop(f"{self.tokens:,} of {limits.max_tokens_total:,} tokens", "max_tokens_total")
        if limits.max_cost is not None and self.cost >= limits.max_cost:
            self._stop(f"{_money(self.cost)} of {_money(limits.max_cost)} in cost", "max_cost")

    @staticmethod
    def _stop(spent: str, name: str) -> None:
        raise BudgetReached(
            f"the budget is spent ({spent}); everything finished is kept: raise budget.{name} and start the same "
            "command again"
        )


def checked_prices(budget: Budget | None, models: Iterable[ModelConfig]) -> dict[str, Price | None]:
    """`ModelConfig.label` → price. Raises UserError where a budget of cost needs one that is missing."""
    prices = model_prices(models)
    unpriced = [label for label, price in prices.items() if price is None]
    if budget is not None and budget.max_cost is not None and unpriced:
        name = unpriced[0].split("|")[1]
        raise UserError(
            f"budget.max_cost: the model {name} has no `price`; give every model one (of 0 where it is free)"
        )
    return prices


def _money(amount: float) -> str:
    """Four decimals, or of small amounts four digits."""
    return f"{amount:.4f}" if amount >= 1 or amount == 0 else f"{amount:.4g}"
