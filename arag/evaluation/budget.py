"""What may be spent, checked before every model call that is to be paid for."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from arag.errors import InputError
from arag.evaluation.cache import Store
from arag.models.prices import cost


class BudgetError(InputError):
    """What may be spent is used up, or a price is unknown."""


class Budget:
    """A limit in US dollars for everything that its ledgers note, in this run and in earlier ones; None for none.

    Calls that are under way when it is reached are finished, and paid.
    """

    def __init__(self, ledgers: Sequence[Store], limit: float | None = None) -> None:
        self._limit = limit
        self._counted = dict.fromkeys(ledgers, 0)
        self._spent = 0.0
        self._lock = threading.Lock()

    def check(self) -> None:
        """Check that another call may be paid for.

        Raises:
            BudgetError: The limit is reached, or the price of a model is unknown.
        """
        if self._limit is None:
            return
        with self._lock:
            for ledger in self._counted:
                for call in ledger.payments(after=self._counted[ledger]):
                    price = cost([call])
                    if price is None:
                        raise BudgetError(
                            f"--max-cost cannot be enforced: the price of {call['model'] or 'a model without a name'} "
                            "is unknown, or its provider reports no tokens. Run without it, or with another model"
                        )
                    self._spent += price
                    self._counted[ledger] += 1
        if self._spent >= self._limit:
            raise BudgetError(
                f"--max-cost is reached: ${self._spent:.2f} are spent. What is finished is kept; with a higher limit, "
                "the next run goes on"
            )
