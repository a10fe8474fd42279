"""Which options of a model may hold secrets: their values stay out of a run's files and reports."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from arag.models.names import drop_credentials

HIDDEN = "***"

# `max_tokens`, `budget_tokens` and the like are token counts.
_SECRET = re.compile(
    r"key|header|token(?!s)|passw|passphrase|secret|credential|auth|bearer|cookie|query", re.IGNORECASE
)
_QUERY = re.compile(r"(?<=://)([^\s?#]*\?)\S+")


def without_secrets(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with possible secrets replaced by `***`, at any depth.

    The option's name decides. Users, passwords and queries of URLs are hidden in all strings.
    """
    return {name: HIDDEN if _SECRET.search(name) else _shown(value) for name, value in options.items()}


def _shown(value: Any) -> Any:
    if isinstance(value, Mapping):
        return without_secrets({str(name): each for name, each in value.items()})
    if isinstance(value, list | tuple):
        return [_shown(each) for each in value]
    if isinstance(value, str):
        return _QUERY.sub(rf"\1{HIDDEN}", drop_credentials(value))
    return value
