"""What tests of models need: an environment without keys, addresses and proxies."""

from __future__ import annotations

import pytest

_VARIABLES = [
    "ARAG_MODEL",
    *("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE"),
    *("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_URL"),
    *("LANGSMITH_GATEWAY", "LANGSMITH_GATEWAY_API_KEY"),
]


@pytest.fixture
def no_settings(monkeypatch):
    for name in _VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
