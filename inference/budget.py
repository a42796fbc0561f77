"""What a run may spend. Finished calls of earlier starts count, so a budget holds for the run as a whole."""

from collections.abc import Iterable

from inference.cost import model_prices
from inference.errors import UserError
from inference.judges import Budget, ModelConfig
from inference.records import Usage
from inference.store import Store


class BudgetReached(UserError):
    """No further call is sent."""


class Meter:
    """What has been spent, against a budget."""

    def __init__(self, budget: Budget | None, models: Iterable[ModelConfig], store: Store) -> None:
        self._budget = budget or Budget()
        self._prices = model_prices(models)
        unpriced = [label for label, price in self._prices.items() if price is None]
        if self._budget.max_cost is not None and unpriced:
            name = unpriced[0].split("|")[1]
            raise UserError(
                f"budget.max_cost: the model {name} has no `price`; give every model one (of 0 where it is free)"
            )
        self.tokens, self.cost = 0, 0.0
        if budget is not None:
            for call in store.calls():
                self.add(call.model, call.completion.usage)

    def add(self, label: str, usage: Usage) -> None:
        """Count a finished call of the model `label`."""
        self.tokens += usage.prompt + usage.completion
        price = self._prices.get(label)
        self.cost += price.cost(usage) if price else 0.0

    def check(self) -> None:
        """Raises BudgetReached where nothing is left. Calls in flight may go over the budget by what they use."""
        limits = self._budget
        if limits.max_tokens_total is not None and self.tokens >= limits.max_tokens_total:
            self._stop(f"{self.tokens:,} of {limits.max_tokens_total:,} tokens", "max_tokens_total")
        if limits.max_cost is not None and self.cost >= limits.max_cost:
            self._stop(f"{self.cost:.4f} of {limits.max_cost:.4f} in cost", "max_cost")

    @staticmethod
    def _stop(spent: str, name: str) -> None:
        raise BudgetReached(
            f"the budget is spent ({spent}); everything finished is kept: raise budget.{name} and start the same "
            "command again"
        )
