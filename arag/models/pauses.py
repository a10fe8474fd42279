"""When a failed call of a model is worth another try: its server is busy, or the connection broke."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

MAX_WAIT_SECONDS = 3600.0  # for one call in total: a run that nobody watches survives an hour without its server
_MAX_PAUSE_SECONDS = 60.0  # if the server asks for no pause of its own
_MAX_BROKEN_TRIES = 5  # about half a minute: the fault may be ours, such as a wrong address
_FIRST_PAUSE_SECONDS = 1.0  # doubles with each try
_BUSY = {429, 503, 529}  # 529 is Anthropic's
_BROKEN = {408, 409, 500, 502, 504}
_CONNECTION_ERRORS = {"APIConnectionError", "TransportError", "ConnectionError", "TimeoutError"}  # of any client
_TIMEOUTS = {"APITimeoutError", "TimeoutException", "Timeout"}
# Refusals that another sample of the model may avoid, and refusals that no pause mends.
_BAD_SAMPLES = ("tool_use_failed", "failed_generation", "error parsing tool call", "validation error for ChatResponse")
_HOPELESS = (
    "insufficient_quota",
    "exceeded your current quota",
    "requires more system memory",
    "CERTIFICATE_VERIFY_FAILED",
    "WRONG_VERSION_NUMBER",
    "RECORD_LAYER_FAILURE",
    "Name or service not known",
    "nodename nor servname",
    "Illegal header value",
)


def find_pause(error: BaseException | None, tries: int) -> float | None:
    """Return how long to wait before failed work is tried again.

    Args:
        error: The failure, as a provider's client raises it, or with that as its cause.
        tries: How often the work has failed before.

    Returns:
        The seconds to wait; None if another try is of no use.
    """
    said = " ".join(str(link) for link in list_causes(error))
    if any(phrase in said for phrase in _HOPELESS):
        return None
    while error is not None:
        headers = _find_headers(error)
        if headers.get("x-should-retry") == "false":  # for example, no credit is left
            return None
        if _is_busy(error) or (_is_broken(error) and tries < _MAX_BROKEN_TRIES):
            return _choose_pause(headers, tries)
        error = error.__cause__
    return None


def _is_busy(error: BaseException) -> bool:
    return not _BUSY.isdisjoint(find_statuses(error))


def _is_broken(error: BaseException) -> bool:
    if not _BROKEN.isdisjoint(find_statuses(error)) or is_connection_error(error):
        return True
    text = str(error)
    return any(phrase in text for phrase in _BAD_SAMPLES)


def list_causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and what caused it, also where a client hides that."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def asked_pause(error: BaseException) -> float | None:
    """Return how many seconds a server asks to wait, if it does."""
    return _read_pause(_find_headers(error))


def _read_pause(headers: Mapping[str, str]) -> float | None:
    asked = headers.get("retry-after", "")
    return float(asked) if asked.isdecimal() else None


def _choose_pause(headers: Mapping[str, str], tries: int) -> float:
    """Return the pause that the server asks for, or else one that doubles with each try."""
    asked = _read_pause(headers)
    if asked:
        return asked
    return min(_FIRST_PAUSE_SECONDS * 2.0**tries, _MAX_PAUSE_SECONDS)


def _find_headers(error: BaseException) -> Mapping[str, str]:
    response = getattr(error, "response", None)
    headers: Mapping[str, str] = getattr(response, "headers", {})
    return headers


def find_statuses(error: BaseException) -> Iterator[int]:
    """Yield the HTTP statuses that an error names; the clients' errors have no base class in common."""
    response = getattr(error, "response", None)
    bodies = [argument for argument in error.args if isinstance(argument, dict)]  # of replies
    codes = [
        getattr(error, "status_code", None),
        getattr(error, "code", None),
        getattr(response, "status_code", None),
        getattr(response, "code", None),
        *(body.get("code") for body in bodies),
    ]
    for code in codes:
        if isinstance(code, int):
            yield code


def is_connection_error(error: BaseException) -> bool:
    """Return whether a client could not reach a server, or lost the connection to it."""
    return _is_of_kind(error, _CONNECTION_ERRORS)


def is_timeout(error: BaseException) -> bool:
    """Return whether a client waited longer than its own limit."""
    return _is_of_kind(error, _TIMEOUTS)


def _is_of_kind(error: BaseException, names: set[str]) -> bool:
    own = {kind.__name__ for kind in type(error).__mro__}
    return not own.isdisjoint(names)
