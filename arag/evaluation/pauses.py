"""When a failed call of a model is worth another try: its server is busy, or the connection broke."""

from __future__ import annotations

MAX_WAIT_SECONDS = 3600.0  # for one call, in all: a run goes on by itself in the night
_MAX_PAUSE_SECONDS = 60.0  # if the server names none
_MAX_BROKEN_TRIES = 5  # half a minute: the fault may be ours, such as a wrong address
_BUSY = {429, 503, 529}  # 529 is Anthropic's
_BROKEN = {408, 409, 500, 502, 504}
_CONNECTION_ERRORS = {"APIConnectionError", "TransportError", "ConnectionError", "TimeoutError"}  # of any client


def find_pause(error: BaseException | None, tries: int) -> float | None:
    """Return the seconds to wait before what failed is tried again; None if that is of no use.

    Args:
        error: The failure, as a provider's client raises it, or with that as its cause.
        tries: How often it has failed before.
    """
    while error is not None:
        # The clients have no error in common.
        response = getattr(error, "response", None)
        headers = getattr(response, "headers", {})
        if headers.get("x-should-retry") == "false":  # as where no credit is left
            return None
        codes = [getattr(each, name, None) for each in (error, response) for name in ("status_code", "code")]
        codes += [argument.get("code") for argument in error.args if isinstance(argument, dict)]  # of a reply's body
        statuses = {code for code in codes if isinstance(code, int)}
        is_broken = statuses & _BROKEN or _CONNECTION_ERRORS & {kind.__name__ for kind in type(error).__mro__}
        if statuses & _BUSY or (is_broken and tries < _MAX_BROKEN_TRIES):
            asked = headers.get("retry-after", "")
            return (asked.isdecimal() and float(asked)) or min(2**tries, _MAX_PAUSE_SECONDS)
        error = error.__cause__
    return None
