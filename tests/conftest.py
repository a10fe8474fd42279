from __future__ import annotations

import os
import re
import shutil
import sys
import warnings
from collections import defaultdict
from contextlib import ExitStack, suppress
from functools import cache
from itertools import count, product
from pathlib import Path
from string import ascii_lowercase
from tempfile import mkdtemp
from typing import ClassVar

import certifi
import pytest
import tiktoken.registry
import tiktoken_ext.openai_public
import typer.main
from filelock import FileLock
from hypothesis import HealthCheck, settings

from arag.cli import main
from arag.ingest import formats, progress
from arag.ingest.formats import Readers
from arag.ingest.formats.content import FormatError
from arag.ingest.pipeline import ingest, run_ingest
from arag.models import onnx
from arag.models.embedders import Embedder
from arag.models.onnx_models import find_files
from arag.retrieval.index import open_index
from arag.retrieval.storage.folder import chroma
from arag.system.worker_process import RaisedInWorkerError, WorkerError, WorkerProcess
from arag.text.tokens import ESTIMATE, count_batch, load_encoding, name_tokenizer, warn_of_estimates
from fakes import HashEmbeddings, write_corpus
from postgres_server import database, postgres, postgres_server, shared_database  # noqa: F401 - fixtures
from scripted import DOCUMENTS

_ROOT = Path(__file__).resolve().parent.parent

# Every ingestion waits for the disk dozens of times: memory is faster, where there is enough of it.
_MEMORY = Path("/dev/shm")
if os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > 8e9:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY))

_OWN = Path(mkdtemp())

# Token counts are estimates on every machine, in child processes, too: tiktoken finds a folder under the name of the
# file that holds the vocabulary of o200k_base, and neither reads nor downloads one.
(_OWN / "fb374d419588a4632f3f557e76b4b70aebbca790").mkdir()
os.environ["TIKTOKEN_CACHE_DIR"] = str(_OWN)
assert name_tokenizer() == ESTIMATE
with warnings.catch_warnings(action="ignore"):
    warn_of_estimates()

# A client of a model reads all certificates that it trusts, hundreds of times in these tests: one is enough here.
_CERTIFICATE = _OWN / "one.pem"
_CERTIFICATE.write_text(certifi.contents().partition("-----END CERTIFICATE-----")[0] + "-----END CERTIFICATE-----\n")
os.environ["SSL_CERT_FILE"] = str(_CERTIFICATE)

# Keys, addresses and proxies of clients: of models, of PostgreSQL (PG), of LangSmith.
_FOREIGN = re.compile(r"ARAG_|PG|OPENAI_|ANTHROPIC_|LANGSMITH_|(HTTP|HTTPS|ALL)_PROXY$", re.IGNORECASE)

# Property tests try few examples, the same each time; `make test-slow` lets them try many others. A loaded machine may
# take its time.
_UNHEALTHY = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
settings.register_profile("quick", max_examples=25, deadline=None, derandomize=True, suppress_health_check=_UNHEALTHY)
settings.register_profile("slow", settings.get_profile("quick"), max_examples=300, derandomize=False)
settings.load_profile("quick")


# Files that take long are begun first, the longest before the others: else one worker ends alone.
_LONG = (
    "crash docs onnx cli foreign_index marks query_tables hub eval_cli notebooks concurrency eval_runs fuzz mcp grep "
    "web languages mcp_stop eval_experiment locations list_documents mcp_resources store maintenance eval_failures "
    "server keywords chunking extractive semantic protocol cold_starts copy vectors way_on eval_forms waterway "
    "contents dci printing office_files trust child progress"
).split()


def pytest_collection_modifyitems(items):
    places = {f"test_{name}.py": place for place, name in enumerate(_LONG)}
    items.sort(key=lambda item: places.get(item.path.name, len(places)))
    for item in items:
        if item.path.name in places or "example_index" in item.fixturenames:  # which loads the default model
            item.add_marker(pytest.mark.heavy)


@pytest.fixture(scope="session", autouse=True)
def _own_configuration(tmp_path_factory):
    """Configuration and state folders of the tests' own, for child processes, too; nothing of the environment.

    Slow or not, an ingestion prints lines about its progress only where a test asks for them. Worker processes do not
    say that token counts are estimates.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.main, "get_command", cache(typer.main.get_command))  # hundreds of calls in one process
        patch.setattr(progress, "_SECONDS_BETWEEN_LINES", 600.0)
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("configuration")))
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        patch.setenv("PYTHONWARNINGS", "ignore:the vocabulary of o200k_base")
        for name in [name for name in os.environ if _FOREIGN.match(name)]:
            patch.delenv(name)
        yield


@pytest.fixture
def quick_embedder(monkeypatch):
    """The default embedder, without its weights."""
    original = Embedder.__init__
    monkeypatch.setattr(
        Embedder, "__init__", lambda self, name, _, **options: original(self, name, HashEmbeddings, **options)
    )


@pytest.fixture
def backend(request):
    """Where indexes are kept: `folder`, unless a test asks for `postgres` as well."""
    return getattr(request, "param", "folder")


@pytest.fixture(scope="session")
def places(request):
    """A function that returns a new place for an index: a folder, or one on PostgreSQL."""
    numbers = count()

    def place(kind, folder):
        if kind == "postgres":
            return f"{request.getfixturevalue('shared_database')}?index=i{next(numbers)}"
        return folder

    return place


class _LastingProcess(WorkerProcess):
    """A worker process that the next one of its kind takes over: to start one takes most of a small ingestion."""

    idle: ClassVar = defaultdict(list)

    @property
    def _kind(self):
        return os.getpid(), self._module, self._memory_bytes  # a fork starts its own

    def _launch(self):
        idle = self.idle[self._kind]
        return idle.pop() if idle else super()._launch()

    def close(self):
        if self._process is not None and not self.is_killed and not self._lock.locked():
            with suppress(WorkerError, RaisedInWorkerError):
                if self._module == chroma._PROCESS:
                    self.call("close", seconds=30)
                self.idle[self._kind].append((self._process, self._connection))
                self._process = None
        super().close()


@pytest.fixture(scope="session", autouse=True)
def _lasting_processes():
    with pytest.MonkeyPatch.context() as patch:
        for module in (chroma, formats):
            patch.setattr(module, "WorkerProcess", _LastingProcess)
        yield


@pytest.fixture(scope="session", autouse=True)
def _lasting_models():
    """A model that was loaded stays: to load one takes most of a small ingestion. Its files are checked each time."""
    load = onnx.load_onnx
    loaded = {}

    def load_once(model, weights):
        kind = os.getpid(), find_files(model, weights), weights  # a fork loads its own
        if kind not in loaded:
            loaded[kind] = load(model, weights)
        return loaded[kind]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(onnx, "load_onnx", load_once)
        yield


@pytest.fixture
def make_index(tmp_path, backend, places):
    """A function that writes documents, ingests them with HashEmbeddings and returns the open index."""
    made = []
    with ExitStack() as stack:

        def make(documents, **options):
            folder = tmp_path / f"made-{len(made)}"
            corpus = write_corpus(folder / "corpus", documents)
            options.setdefault("embedder", HashEmbeddings())
            place = places(backend, folder / "index")
            made.append(stack.enter_context(ingest(corpus, place, **options)))
            return made[-1]

        yield make


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory):
    """A folder that pytest's processes share."""
    folder = tmp_path_factory.getbasetemp()
    return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder


@pytest.fixture(scope="session")
def example_index(shared_folder):
    """The example corpus, embedded with the real default model."""
    with FileLock(shared_folder / "example.lock"):
        run_ingest(_ROOT / "examples" / "corpus", shared_folder / "example-index")
    with open_index(shared_folder / "example-index") as index:
        yield index


@pytest.fixture(scope="session")
def office_folder(shared_folder):
    """The files of an invented company."""
    from office_files import write_files  # slow: libraries that write office files

    folder = shared_folder / "office"
    with FileLock(shared_folder / "office.lock"):
        if not folder.exists():
            write_files(folder)
            run_ingest(folder, shared_folder / "office-index", embedder=HashEmbeddings())
    return folder


@pytest.fixture(scope="session")
def office(shared_folder, office_folder):
    """An index of these files."""
    with open_index(shared_folder / "office-index", embedder=HashEmbeddings()) as index:
        yield index


@pytest.fixture(scope="session")
def small_index(tmp_path_factory):
    """Three short documents that lead to each other, and a long one."""
    folder = tmp_path_factory.mktemp("small")
    with ingest(write_corpus(folder / "corpus", DOCUMENTS), folder / "index", embedder=HashEmbeddings()) as index:
        yield index


@pytest.fixture(params=["memory", "sqlite"])
def checkpointer(request, tmp_path):
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.checkpoint.sqlite import SqliteSaver

    if request.param == "memory":
        yield InMemorySaver()
    else:
        with SqliteSaver.from_conn_string(str(tmp_path / "threads.sqlite")) as saver:
            yield saver


@pytest.fixture
def count_exactly(monkeypatch):
    """Counts tokens as on a machine with tiktoken's vocabulary; this one holds only bytes and pairs of letters."""
    pairs = map(bytes, product(ascii_lowercase.encode(), repeat=2))
    tokens = [*(bytes([byte]) for byte in range(256)), *pairs]
    ranks = {token: rank for rank, token in enumerate(tokens)}
    monkeypatch.setattr(tiktoken_ext.openai_public, "load_tiktoken_bpe", lambda *_, **__: ranks)
    monkeypatch.setattr(tiktoken.registry, "ENCODINGS", {})
    encoding = load_encoding.__wrapped__()
    monkeypatch.setattr("arag.text.tokens.load_encoding", lambda: encoding)
    return count_batch


@pytest.fixture
def through_chroma(monkeypatch):
    """Make small indexes search in Chroma's graph, as large ones do."""
    monkeypatch.setattr("arag.retrieval.storage.vectors.MAX_MATRIX_BYTES", 0)


@pytest.fixture
def arag(monkeypatch, capsys):
    """Run a command line; returns exit code, stdout and stderr."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["arag", *map(str, arguments)])
        monkeypatch.setenv("COLUMNS", "300")
        code = 0
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


# --- files ---


@pytest.fixture(scope="module")
def readers():
    with Readers() as readers:
        yield readers


@pytest.fixture
def read(readers, tmp_path):
    """Write a file and read it."""

    def read(name, data):
        path = tmp_path / name
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return readers.read(path)

    return read


@pytest.fixture
def reason(read):
    """Return why a file cannot be read."""

    def reason(name, data):
        with pytest.raises(FormatError) as error:
            read(name, data)
        return str(error.value)

    return reason
