"""Processes that start at once: a server forks them that has imported what they use.

There is one server for all test modules, and whoever sets what it imports last decides: it is set here alone.
"""

import multiprocessing

processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload(
    [
        "arag.cli",
        "arag.evaluation.runs",
        "arag.ingest.pipeline",
        "langchain_openai",
        "openai",
        "psycopg",
        "pytest",
        "spacy.lang.en",
    ]
)
