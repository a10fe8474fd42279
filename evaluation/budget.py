"""What a run has cost, and how much it may cost."""

from __future__ import annotations

from dataclasses import dataclass, field

from arag.errors import InputError
from arag.evaluation.records import Record
from arag.models.prices import PRICES_VARIABLE, cost


@dataclass
class Budget:
    """A limit in US dollars, shared by everything that is run with it.

    Attributes:
        limit: The limit, after which no more questions are started; None for no limit.
        spent: What has been spent, as far as prices are known.
        unpriced: The models without a known price, in order.
    """

    limit: float | None = None
    spent: float = 0.0
    unpriced: list[str] = field(default_factory=list)

    def pay(self, dollars: float | None, *models: str) -> None:
        """Add a payment.

        Args:
            dollars: How much; None if unknown.
            *models: The models without a known price, if it is unknown.
        """
        self.spent += dollars or 0.0
        if dollars is None:
            self.unpriced = list(dict.fromkeys([*self.unpriced, *models]))

    def count(self, record: Record) -> None:
        """Add what a question has cost so far, over all attempts and verdicts."""
        calls = [*record["earlier_calls"], *record["model_calls"]]
        self.pay(record["paid"], *(call["model"] or "a model without a name" for call in calls if cost([call]) is None))
        self.pay(record["judge_paid"], record["judgement"]["model"] if record["judgement"] else "the judge")

    def is_used_up(self) -> bool:
        """Return whether no more may be spent. With an unknown price, nothing more may be."""
        return self.limit is not None and (self.spent >= self.limit or bool(self.unpriced))

    def check(self) -> None:
        """Check that a limit can be enforced.

        Raises:
            InputError: There is a limit, but the price of a model is unknown.
        """
        if self.limit is not None and self.unpriced:
            raise InputError(
                f"--max-cost cannot be enforced: the price of {', '.join(self.unpriced)} is unknown. Give it in a JSON "
                f"file that the environment variable {PRICES_VARIABLE} names, in US dollars per million tokens: "
                '{"prices": [{"model": "...", "input": 0.1, "cached_input": 0.1, "output": 0.4}]}. '
                "Recorded verdicts and index-time work keep an unknown price, and so do calls whose tokens the "
                "provider does not report: continue without --max-cost, or in another folder with --out."
            )
