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

# A program that is `arag`. What runs in the background is started to ignore Ctrl-C.
ARAG = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from arag.cli import main
main()
"""
