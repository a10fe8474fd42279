"""Operations on a small index, and what the driver's processes do: the operations, and looks into what they left."""

from __future__ import annotations

import ctypes
import hashlib
import shutil
import sys
import zlib
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import test_crash
from arag.errors import IndexFormatError
from arag.ingest.maintenance import verify
from arag.retrieval import vectors
from arag.retrieval.index import open_index
from arag.retrieval.store.folder import FolderStore, is_index
from stores import trust

DOCUMENTS = 10


def texts(version):
    return {i: text for i, text in test_crash.corpus(version).items() if int(i[1:]) < DOCUMENTS}


def without(texts, *gone):
    return {i: text for i, text in texts.items() if i not in gone}


@dataclass(frozen=True)
class Operation:
    """A command on an index: what the index is like before, and the texts that it holds when all is done."""

    start: str
    command: tuple[str, ...]
    texts: dict[str, str]
    graph: bool = False  # search in Chroma's graph, as in large indexes


INGEST = ("ingest", "{source}", "--embedder", test_crash.EMBEDDER, "--chunk-tokens", "50", "--prune")
OPERATIONS = {
    "ingest, first": Operation("none", INGEST, texts(1)),
    "ingest, second": Operation("sound", INGEST, texts(2)),
    "remove": Operation("sound", ("remove", "d2", "d5"), without(texts(1), "d2", "d5")),
    "verify": Operation("sound", ("verify",), texts(1)),
    "verify --repair": Operation("damaged", ("verify", "--repair"), texts(1)),
    "search keyword": Operation("sound", ("search", "keyword", "revision 1", "line 9"), texts(1)),
    "search semantic": Operation("sound", ("search", "semantic", "The document w3 begins."), texts(1)),
    "search semantic, graph": Operation("sound", ("search", "semantic", "The document w3 begins."), texts(1), True),
    "ask": Operation("sound", ("ask", "How does the document w3 begin?"), texts(1)),
}
WRITING = ["ingest, first", "ingest, second", "remove", "verify --repair"]


class Room:
    """The indexes that operations begin with, and what they must be like in the end; made in a folder of a test's."""

    def __init__(self, folder):
        self.folder = folder
        shutil.copytree(self.target(OPERATIONS["verify"]), folder / "sound")
        shutil.copytree(folder / "sound", folder / "damaged")
        next((folder / "damaged").glob("keywords-*")).unlink()

    def begin(self, operation, index):
        """Put an index where an operation is to begin; return its command line."""
        index.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(index, ignore_errors=True)
        if operation.start != "none":
            shutil.copytree(self.folder / operation.start, index)
            trust(index)
        return [*(word.format(source=self.corpus(operation)) for word in operation.command), "--index", str(index)]

    def finish(self, operation, index):
        """Return the command line that must finish what an operation began, and the index that must come of it."""
        again = [word.format(source=self.corpus(operation)) for word in INGEST]
        return [*again, "--index", str(index)], str(self.target(operation))

    def corpus(self, operation):
        """Return the one folder of all operations, with the texts that the index of this one has in the end."""
        source = self.folder / "corpus"
        test_crash.write(source, operation.texts)
        return source

    def target(self, operation):
        """Return an index that was made of these in one go."""
        target = self.folder / f"{zlib.crc32(str(operation.texts).encode())}.index"
        if not target.exists():
            test_crash.ingest(self.corpus(operation), target)
        return target


# --- in the driver's processes ---


def prepare():
    """Import and load, before any process is forked, all that the operations need; no model is among it."""
    import spacy.lang.en  # noqa: F401

    from arag import cli  # noqa: F401
    from arag.models import chat, embedders, extractive  # noqa: F401
    from arag.retrieval import render, trust
    from arag.retrieval.tokens import load_token_counter

    embedders._load_service = lambda *_: test_crash.TextEmbeddings()
    trust._refuse = lambda *_: test_crash.TextEmbeddings()  # of an index that is opened without its embedder
    load_token_counter().count_batch(["loaded once"])
    assert render


def command(arguments, graph=False):
    """Run the command line."""
    from arag import cli

    sys.argv = ["arag", *arguments]
    if graph:
        vectors.MAX_MATRIX_BYTES = 0
    cli.main()


def command_then_lock(arguments, graph, index):
    """Run the command line, and fail where that leaves the index locked in its process."""
    try:
        command(arguments, graph)
    finally:
        ctypes.CDLL(None).shim_disarm(None)
        with FolderStore(Path(index))._lock() if Path(index).is_dir() else nullcontext():
            pass


def state(index):
    """Return what an index holds and finds, after a check that its parts belong together; None without an index."""
    try:
        held = test_crash.served(Path(index))
        if held is None:
            return None
        found = []
        for max_bytes in (vectors.MAX_MATRIX_BYTES, 0):  # searched without Chroma's graph, and with it
            vectors.MAX_MATRIX_BYTES = max_bytes
            with open_index(index) as opened:
                found += [opened.keyword_search(word, 50).hits for word in ("revision 1", "begins", "Line 3")]
                found += [
                    [(hit.chunk_id, round(hit.score, 4)) for hit in opened.semantic_search(text, 3).hits]
                    for text in ("The document w1 begins.", "Line 2 is of revision 1 of document w3.")
                ]
    except IndexFormatError as error:
        return f"damaged: {error.args[0].replace(str(index), '')}"
    return hashlib.sha256(repr((sorted(held.items()), found)).encode()).hexdigest()


def recovered(index, arguments, target):
    """Return what an index is like, and how it differs from another one after a command that is to finish it."""
    # Chroma's process alone was hit: the index was published without its graph, and a warning named this command.
    damage = verify(index)[0] if is_index(Path(index)) else []
    if [(each.part.partition("-")[0], each.what) for each in damage] == [("chroma", "it is missing")]:
        verify(index, repair=True)
    before = state(index)
    try:
        command(arguments)
    except SystemExit as end:
        if end.code:
            return before, f"the next run failed: {end.code}"
    here, there = test_crash.contents(Path(index)), test_crash.contents(Path(target))
    if here != there:
        differing = [(one, other) for one, other in zip(here, there, strict=True) if one != other]
        return before, f"it is not like a new one: {str(differing)[:500]}"
    return before, ""
