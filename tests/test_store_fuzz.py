"""Any byte of the chunk store may change: that is found, or does not matter, and what is lost can be ingested again."""

import random
import shutil

import pytest

from arag.errors import ARAGError
from arag.ingest.chunking import groups
from arag.ingest.documents import Document
from arag.ingest.maintenance import verify
from arag.ingest.writer import open_writer
from arag.models.embedders import load_embedder
from arag.retrieval.index import open_index
from arag.retrieval.local import verify as verify_module
from arag.retrieval.locations import backend_at
from arag.retrieval.tokens import load_token_counter
from fakes import HashEmbeddings

CHANGES = {
    "a bit": lambda rng, old: bytes([old[0] ^ (1 << rng.randrange(8))]),
    "a byte": lambda rng, old: rng.randbytes(1),
    "many bytes": lambda rng, old: rng.randbytes(64),
}


def document(n):
    text = f"Ship{n} was built in {1500 + n}. Its café-bar is Łódź{n}. {'It sailed to the island. ' * (n % 7)}"
    if n % 5:
        return Document(f"d{n}", f"The Ship {n}", text, f"fleet.jsonl, line {n + 1}", {"year": 1500 + n, "of": ["a"]})
    pages = [f"{text} This is page {page} of {n}.\n" for page in range(1, 8)]
    starts = tuple(sum(map(len, pages[:page])) for page in range(7))
    return Document(f"d{n}.pdf", "", "".join(pages), f"d{n}.pdf", page_starts=starts)


def write(folder, pack):
    with open_writer(
        backend_at(folder), embedder=load_embedder(HashEmbeddings()), chunk_tokens=60, packed=pack
    ) as writer:
        documents = [document(n) for n in range(50)]
        writer.put(list(groups(documents, pack=pack, chunk_tokens=60, count=load_token_counter().count_batch)))
        writer.commit()


def seen(folder):
    """All that users of an index can see."""
    with open_index(folder, embedder=HashEmbeddings()) as index:
        info = index.info()
        ids = list(index.chunk_ids())
        return (
            (info.documents, info.chunks, info.sentences, info.tokens),
            sorted(ids),
            {chunk.id: chunk for i in ids for chunk in index.read(i, 1).chunks},
            {i: index.document(i) for n in range(50) for i in (f"d{n}", f"d{n}.pdf")},
            [index.read(i).chunks for i in ("d7", "d8:99", "[d9:0]")],
            [index.keyword_search(words, 60) for words in (["ship7", "island"], "the ship 7", "cafe bar", "Lodz8")],
            [
                [(hit.chunk_id, round(hit.score, 4)) for hit in index.semantic_search(query, 60).hits]
                for query in ("ship7 was built", "the island", "page 3")
            ],
        )


@pytest.fixture(scope="module", params=[False, True], ids=["apart", "packed"])
def sound(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("sound") / "index"
    write(folder, request.param)
    return folder, request.param, seen(folder)


def change(sound, folder, rng, *, mend):
    """Change bytes of a copy of an index; return what was found."""
    source, pack, expected = sound
    shutil.copytree(source, folder)
    with (folder / "chunks.sqlite3").open("r+b") as file:
        at = rng.randrange((folder / "chunks.sqlite3").stat().st_size - 64)
        file.seek(at)
        old = file.read(64)
        file.seek(at)
        file.write(CHANGES[rng.choice(list(CHANGES))](rng, old))
    try:
        now = seen(folder)
    except ARAGError:
        now = None
    try:
        found = [str(damage) for damage in verify(folder)[0]]
    except ARAGError as error:
        found = [str(error)]
    assert found or now == expected, f"unnoticed: {at}"
    if mend and found and not any("another folder" in what for what in found):
        _, left = verify(folder, repair=True, embedder=HashEmbeddings())
        if not any("another folder" in damage.what for damage in left):
            assert not any(damage.repairable for damage in left), left
            assert seen(folder)
            write(folder, pack)
            assert verify(folder) == ([], []), at
            assert seen(folder) == expected, at
    shutil.rmtree(folder)
    return found


def test_changed_bytes_are_found_or_do_not_matter(sound, tmp_path, monkeypatch):
    monkeypatch.setattr(verify_module, "_check_chroma", lambda *_, **__: [])  # its folder is not changed
    rng = random.Random(1)
    found = [change(sound, tmp_path / "index", rng, mend=n % 4 == 0) for n in range(8)]
    assert any(found)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_many_changed_bytes_are_found_or_do_not_matter(sound, tmp_path, seed):
    rng = random.Random(f"{seed} {sound[1]}")
    found = [change(sound, tmp_path / "index", rng, mend=True) for _ in range(50)]
    assert any(found)
