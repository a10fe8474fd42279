"""Ingest several sources into one index at once with Ray: a process for each source, on as many machines as Ray has.

    pip install ray 'langgraph-arag[postgres]'
    ARAG_INDEX=postgresql://ingester@db.example.com/library python ray_embed.py ships.jsonl people.jsonl places/

Ray only starts the processes; any other launcher does, too. The sources must be readable under the same paths
everywhere, and the password is in ~/.pgpass or PGPASSWORD there.
"""

from __future__ import annotations

import os
import sys

from arag import run_ingest


def ingest_part(source: str, index: str) -> int:
    """Ingest one source.

    Args:
        source: A file or a folder.
        index: Address of the index.

    Returns:
        How many sentences this process embedded.
    """
    return run_ingest([source], index).embedded


def main(sources: list[str], index: str) -> None:
    """Ingest sources, and print what each process did."""
    import ray

    ray.init()
    start = ray.remote(num_cpus=1)(ingest_part)  # num_gpus=1 if the embedder uses one
    for source, embedded in zip(sources, ray.get([start.remote(source, index) for source in sources]), strict=True):
        print(f"{source}: its process embedded {embedded:,} sentences")


if __name__ == "__main__":
    main(sys.argv[1:], os.environ["ARAG_INDEX"])
