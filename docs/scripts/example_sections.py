"""Lets the API reference show `Example:` sections of docstrings as code, as it does `Examples:` sections."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object


class ExampleSections(Extension):
    """Renames the sections before the docstrings are parsed."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rename the sections of an object's docstring."""
        if obj.docstring is not None:
            obj.docstring.value = re.sub(r"^Example:$", "Examples:", obj.docstring.value, flags=re.MULTILINE)
