"""Parameters of which `make test` tries a few, and `make test-slow` all."""

import pytest

EVERYWHERE = ["folder", pytest.param("postgres", marks=pytest.mark.servers)]  # the places that an index may be in


def slow_except(*quick, among):
    """Return all parameters; those that are not named here are marked slow."""
    assert set(quick) <= set(among)
    return [pytest.param(name, marks=[] if name in quick else pytest.mark.slow) for name in among]
