"""What methods that retrieve passages by their vectors share: a setting, and the work before the first question."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from pydantic import Field

from arag.evaluation.methods.baselines.passages import By, Passages
from arag.evaluation.methods.interface import Settings
from arag.evaluation.workplace import Workplace


class DenseSettings(Settings):
    """Settings of a method that retrieves passages by their vectors."""

    passages: By = Field(
        default="chunk",
        description="What is compared with the question: the whole chunk, or the sentence in it that is nearest.",
    )


def passage_work(name: str, settings: type[DenseSettings]) -> Callable[[Workplace], Coroutine[Any, Any, None]]:
    """Return the index-time work of a method that only needs the passages' vectors.

    Args:
        name: The method's name.
        settings: The class of its settings.
    """

    async def work(place: Workplace) -> None:
        await embed_passages(place, place.options.of(name, settings).passages)

    return work


async def embed_passages(place: Workplace, by: By) -> None:
    """Embed the passages of an index, as far as they are not embedded yet.

    Args:
        place: The workplace.
        by: What is embedded.
    """
    total = place.index.info().chunks
    passages = Passages(place.index, place.store, by)
    await asyncio.to_thread(passages.prepare, lambda done: place.on_progress("Embedding chunks", done, total))
