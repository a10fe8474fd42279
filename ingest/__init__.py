"""Ingestion: reading, sentence splitting, chunking, and the pipeline that writes an index.

The package can be called: `arag.ingest` is also the function `arag.ingest.pipeline.ingest`, so that
`from arag import ingest` means the same whichever module was imported first.
"""

import sys
from inspect import Signature, signature
from types import ModuleType
from typing import Any


class _CallablePackage(ModuleType):
    def __call__(self, *args: Any, **options: Any) -> Any:
        from arag.ingest.pipeline import ingest

        return ingest(*args, **options)

    @property
    def __signature__(self) -> Signature:
        from arag.ingest.pipeline import ingest

        return signature(ingest)


sys.modules[__name__].__class__ = _CallablePackage
