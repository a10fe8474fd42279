"""An agent loses no step to the tools: what their texts say so that it need not ask."""

import pytest

from arag.errors import IndexClosedError
from arag.retrieval.tools import make_tools
from fakes import after_reading

LONG = " ".join(f"In the year {n} nobody of note came to the fair." for n in range(1500, 1540))
DOCUMENTS = [
    {
        "id": "kenji",
        "title": "Akinoshū Kenji",
        "text": "Akinoshū Kenji is a former wrestler. He left the ring in 2001.",
    },
    {"id": "empire", "title": "Empire", "text": "Austria - Hungary was an empire. It fell in 1918."},
    {"id": "drive", "title": "Henday", "text": "The Henday Drive in the north is a road."},
    {"id": "twin", "title": "Admiral Twin", "text": "Admiral Twin is a band from Tulsa."},
    {"id": "fair", "title": "The Fair", "text": LONG},
    *({"id": f"b{n}", "title": f"Song {n}", "text": f"My brother sang song {n} to his brother."} for n in range(8)),
    {"id": "song", "title": "Brother (song)", "text": "A song by a band, once sung to a brother."},
    {"id": "rare", "title": "Rare", "text": "The gisvi grows here."},
]


@pytest.fixture
def call(make_index):
    index = make_index(DOCUMENTS)
    tools = {tool.name: tool for tool in make_tools(index)}

    def run(name, read=(), **arguments):
        arguments |= after_reading(*read)
        return tools[name].invoke({"name": name, "args": arguments, "id": "c", "type": "tool_call"})

    return run


@pytest.mark.parametrize(
    ("keyword", "said", "chunk"),
    [
        ("Akinoshu Kenji", "Akinoshu Kenji: none, searched as Akinoshū Kenji (1 chunk).", "kenji:0"),
        ("Austria-Hungary", "Austria-Hungary: none, searched as Austria - Hungary (1 chunk).", "empire:0"),
        ("Austria–Hungary", "Austria–Hungary: none, searched as Austria - Hungary (1 chunk).", "empire:0"),
    ],
)
def test_another_spelling_of_the_same_letters_is_searched_at_once(call, keyword, said, chunk):
    message = call("keyword_search", keywords=[keyword])
    assert message.content.startswith(said)
    assert message.artifact["chunk_ids"] == [chunk]


def test_words_that_are_only_similar_are_offered_and_not_searched(call):
    message = call("keyword_search", keywords=["drive-in"])
    assert message.content.startswith("drive-in: none (closest: Drive in (1 chunk)).")
    assert message.artifact["chunk_ids"] == []


def test_the_longest_part_that_occurs_is_offered_before_single_words(call):
    text = call("keyword_search", keywords=["Admiral Twin Theatre"]).content
    assert text.startswith("Admiral Twin Theatre: none (closest: Admiral Twin (1 chunk)).")


def test_a_keyword_whose_chunks_are_crowded_out_says_so(call):
    text = call("keyword_search", keywords=["brother", "gisvi"], top_k=3).content
    assert text.startswith(
        "brother: 9 chunks (title of [song:0] Brother (song)); gisvi: 1 chunk (not among those shown)."
    )


def test_what_is_left_out_of_a_document_is_marked(call):
    text = call("keyword_search", keywords=["1517"]).content
    assert "The Fair: … In the year 1517 nobody of note came to the fair. …" in text
    assert "whole chunk shown" not in text


def test_a_document_shown_whole_counts_as_read_and_is_not_shown_again(call):
    first = call("keyword_search", keywords=["wrestler"])
    assert "[kenji:0] score 8; wrestler ×1; whole chunk shown" in first.content
    assert "He left the ring in 2001." in first.content
    assert first.artifact["new_chunks"] == ["kenji:0"]
    again = call("keyword_search", read=["kenji:0"], keywords=["wrestler", "ring"])
    assert "already read" in again.content
    assert again.content.count("Kenji is a former wrestler") + again.content.count("He left the ring") == 1
    assert again.artifact["new_chunks"] == []
    read = call("chunk_read", read=["kenji:0"], chunk_ids=["kenji:0"])
    assert read.content == "[kenji:0] This chunk has been read before."
    assert read.artifact["retrieved_tokens"] == 0


def test_a_distant_semantic_hit_shows_its_sentences_and_similarity_too(call):
    """What a similarity is worth depends on the embedder: nothing is held back by it."""
    text = call("semantic_search", query="former wrestler Kenji", top_k=20).content
    blocks = {block.partition("]")[0].lstrip("["): block for block in text.split("\n\n")[1:]}
    assert "He left the ring in 2001." in blocks["kenji:0"]
    distant = blocks["empire:0"]
    assert float(distant.partition("similarity ")[2][:4]) < 0.4
    assert "was an empire. It fell in 1918." in distant


def test_chunk_read_says_the_title_once(call):
    text = call("chunk_read", chunk_ids=["twin:0"]).content
    assert text == "[twin:0] Admiral Twin\nAdmiral Twin is a band from Tulsa."


def test_a_closed_index_says_so(make_index):
    index = make_index(DOCUMENTS[:1])
    index.close()
    for use in (lambda: index.keyword_search("Kenji"), lambda: index.get("kenji:0"), lambda: index.read("kenji:0")):
        with pytest.raises(IndexClosedError, match="is closed"):
            use()
    (tool,) = make_tools(index, names=["keyword_search"])
    with pytest.raises(IndexClosedError):  # the model cannot mend it
        tool.invoke({"name": tool.name, "args": {"keywords": ["Kenji"]}, "id": "c", "type": "tool_call"})


def test_a_name_across_a_line_end_is_found(make_index):
    index = make_index({"wrapped": "The ship was built by Hesper\nQuillorne. It sank."})
    (tool,) = make_tools(index, names=["keyword_search"])
    call = {"name": tool.name, "args": {"keywords": ["Hesper Quillorne"]}, "id": "c", "type": "tool_call"}
    message = tool.invoke(call)
    assert message.content.startswith("Hesper Quillorne: 1 chunk.")
    assert message.artifact["chunk_ids"] == ["wrapped:0"]


def test_metadata_is_kept(make_index):
    index = make_index([{"id": "x", "title": "X", "text": "The mill.", "year": 1702, "tags": ["a"]}])
    assert index.document("x").metadata == {"year": 1702, "tags": ["a"]}
    assert index.document("y") is None


def test_of_a_long_keyword_the_rarest_words_are_offered(call):
    text = call("keyword_search", keywords=["the wrestler from Japan who left the ring of honour in 2001"]).content
    assert "none (closest: " in text
    assert "wrestler (1 chunk)" in text
