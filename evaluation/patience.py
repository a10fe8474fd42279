"""Waits when a provider reports a rate limit."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

_TOO_MUCH = frozenset({429, 529})  # 529 is Anthropic's, when it is overloaded
_NO_MONEY = "insufficient_quota"  # OpenAI's code for a 429 that waiting does not resolve
_FIRST_PAUSE, _MAX_PAUSE = 2.0, 60.0  # seconds
_MAX_PAUSES = 8  # in a row


class Patience:
    """Lets all tasks wait when a provider reports a rate limit."""

    def __init__(self) -> None:
        self._until = 0.0

    async def ask(
        self, call: Callable[[], Coroutine[Any, Any, Any]], *, progress: Callable[[], object] = lambda: None
    ) -> Any:
        """Make a call, and repeat it after a pause if it hits a rate limit.

        Args:
            call: Makes the call.
            progress: Returns how far it has come: only pauses without progress count towards giving up.
        """
        attempt, reached = 0, progress()
        while True:
            while (left := self._until - time.monotonic()) > 0:  # noqa: ASYNC110 - other tasks may extend the wait
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
    """Return whether a later call may succeed; clients have several names for the status."""
    response = getattr(error, "response", None)
    code = getattr(error, "code", None)  # a word for OpenAI, the status for Google
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
