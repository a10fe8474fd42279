"""What a run has cost, and how much it may."""

from __future__ import annotations

from dataclasses import dataclass, field

from arag.errors import InputError
from arag.evaluation.records import Record
from arag.models.prices import PRICES_VARIABLE, cost


@dataclass
class Budget:
    """US dollars that may be spent, over all that is run with it.

    Attributes:
        limit: The most, after which no more questions are begun; None for no limit.
        spent: What has been spent, as far as prices are known.
        unpriced: The models whose price is not known, in order.
    """

    limit: float | None = None
    spent: float = 0.0
    unpriced: list[str] = field(default_factory=list)

    def pay(self, dollars: float | None, *models: str) -> None:
        """Count what has been paid.

        Args:
            dollars: How much; None where it is not known.
            *models: The models of whose calls it is then not known.
        """
        self.spent += dollars or 0.0
        if dollars is None:
            self.unpriced = list(dict.fromkeys([*self.unpriced, *models]))

    def count(self, record: Record) -> None:
        """Count what a question has cost until now, over all attempts and verdicts."""
        calls = [*record["earlier_calls"], *record["model_calls"]]
        self.pay(record["paid"], *(call["model"] or "a model without a name" for call in calls if cost([call]) is None))
        self.pay(record["judge_paid"], record["judgement"]["model"] if record["judgement"] else "the judge")

    def is_used_up(self) -> bool:
        """Tell whether no more may be spent; where a price is unknown, nobody knows."""
        return self.limit is not None and (self.spent >= self.limit or bool(self.unpriced))

    def check(self) -> None:
        """Check that what is limited is known.

        Raises:
            InputError: There is a limit, and the price of a model is not known.
        """
        if self.limit is not None and self.unpriced:
            raise InputError(
                f"--max-cost cannot be kept to: what calls of {', '.join(self.unpriced)} cost is not known. Give the "
                f"price in a JSON file that the environment variable {PRICES_VARIABLE} names, in US dollars per "
                'million tokens: {"prices": [{"model": "...", "input": 0.1, "cached_input": 0.1, "output": 0.4}]}. '
                "Verdicts and work at index time that are recorded already stay without a price, and so do calls whose "
                "tokens the provider does not report: go on without --max-cost, or in another folder with --out."
            )
