"""Waiting when a provider says that it is asked too much."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

_TOO_MUCH = frozenset({429, 529})  # 529 is Anthropic's, when it is overloaded
_NO_MONEY = "insufficient_quota"  # OpenAI's code of a 429 that no waiting helps
_FIRST_PAUSE, _MAX_PAUSE = 2.0, 60.0  # seconds
_MAX_PAUSES = 8  # in a row


class Patience:
    """Lets everybody wait when a provider says that it is asked too much."""

    def __init__(self) -> None:
        self._until = 0.0

    async def ask(
        self, call: Callable[[], Coroutine[Any, Any, Any]], *, progress: Callable[[], object] = lambda: None
    ) -> Any:
        """Ask, and ask again after a pause where a rate limit was met.

        Args:
            call: Asks.
            progress: Tells how far it has come: patience is lost over pauses without any progress only.
        """
        attempt, reached = 0, progress()
        while True:
            while (left := self._until - time.monotonic()) > 0:  # noqa: ASYNC110 - others may move the end meanwhile
                await asyncio.sleep(left)
            try:
                return await call()
            except Exception as error:
                if not is_rate_limit(error):
                    raise
                attempt = attempt + 1 if progress() == reached else 1
                reached = progress()
                if attempt > _MAX_PAUSES:
                    raise
                pause = _asked_for(error) or min(_FIRST_PAUSE * 2 ** (attempt - 1), _MAX_PAUSE)
                self._until = max(self._until, time.monotonic() + pause)


def is_rate_limit(error: Exception) -> bool:
    """Tell whether a provider may answer when it is asked again later; clients have several names for its status."""
    response = getattr(error, "response", None)
    code = getattr(error, "code", None)  # OpenAI's is a word, Google's the status
    status = getattr(error, "status_code", None) or getattr(response, "status_code", None) or code
    return status in _TOO_MUCH and code != _NO_MONEY


def _asked_for(error: Exception) -> float | None:
    """Return the seconds that a provider asks to wait."""
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    try:
        seconds = float(headers["retry-after"])
    except (KeyError, ValueError):
        return None
    return min(seconds, _MAX_PAUSE) if seconds > 0 else None
