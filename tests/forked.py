"""Processes that start at once: a server forks them that has imported what they use.

There is one server for all test modules, and whoever sets what it imports last decides: it is set here alone.
"""

import multiprocessing
import os
import runpy
import sys
import traceback
from contextlib import redirect_stdout
from pathlib import Path

processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload(
    [
        "arag.cli",
        "arag.evaluation.experiment",
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


def run_script(name, folder):
    """Run a Python script in its folder, as `python name` does; return what it prints, with the error that ends it."""
    printed = Path(folder, f"{name}.out")
    process = processes.Process(target=_run_script, args=(name, folder, printed))
    process.start()
    process.join()
    return printed.read_text()


def _run_script(name, folder, printed):
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    with printed.open("w") as out, redirect_stdout(out):
        try:
            runpy.run_path(name, run_name="__main__")
        except Exception:  # noqa: BLE001 - it is printed, as Python prints it
            traceback.print_exc(file=out)
