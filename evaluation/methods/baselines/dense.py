"""What methods that retrieve passages by their vectors share: a setting, and the work before the first question."""

from __future__ import annotations

import asyncio

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


async def embed_passages(place: Workplace, by: By) -> None:
    """Embed the passages of an index, as far as they are not embedded yet.

    Args:
        place: The workplace.
        by: What is embedded.
    """
    total = place.index.info().chunks
    passages = Passages(place.index, place.store, by)
    await asyncio.to_thread(passages.prepare, lambda done: place.on_progress("Embedding chunks", done, total))
