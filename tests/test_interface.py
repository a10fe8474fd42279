"""An agent loses no step to the tools: what their texts say so that it need not ask."""

import pytest
from langchain_core.messages import HumanMessage

from arag.errors import ARAGError, ModelError
from arag.retrieval.index import Index
from arag.retrieval.tools import make_tools

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

    def run(name, after=(), **arguments):
        arguments["messages"] = list(after)
        return tools[name].invoke({"name": name, "args": arguments, "id": "c", "type": "tool_call"})

    return run


def test_another_spelling_of_the_same_letters_is_searched_at_once(call):
    message = call("keyword_search", keywords=["Akinoshu Kenji", "Henday drive-in"])
    assert message.content.startswith(
        "Akinoshu Kenji: spelled Akinoshū Kenji (1 chunk); Henday drive-in: spelled Henday Drive in (1 chunk). All:"
    )
    assert message.artifact["chunk_ids"] == ["drive:0", "kenji:0"]


def test_words_that_are_only_similar_are_offered_and_not_searched(call):
    message = call("keyword_search", keywords=["Admiral Twim"])
    assert message.content.startswith("Admiral Twim: none (closest: Admiral Twin (1 chunk)")
    assert message.artifact["chunk_ids"] == []


def test_words_of_a_keyword_that_only_one_chunk_has_are_shown_together(call):
    message = call("keyword_search", keywords=["Admiral Tulsa", "gisvi"])
    assert message.content == (
        "Admiral Tulsa: only apart, in [twin:0]; gisvi: 1 chunk. All:\n\n"
        "[rare:0] Rare: The gisvi grows here.\n\n"
        "[twin:0] Admiral Twin: Admiral Twin is a band from Tulsa."
    )
    assert message.artifact["results"]["hits"][1]["apart"] == ("Admiral Tulsa",)
    assert message.artifact["results"]["keywords"][0]["apart"] == ("twin:0",)


def test_words_apart_are_looked_for_in_the_documents_of_the_search(make_index):
    index = make_index({"a": "Mara had a daughter.", "b": "Mara is old. A daughter left.", "c": "Mara, daughter, sea."})
    (tool,) = make_tools(index, names=["keyword_search"])
    assert tool.invoke({"keywords": ["daughter of Mara"]}).startswith("daughter of Mara: none")
    inside = tool.invoke({"keywords": ["daughter of Mara"], "within": "b"})
    assert inside.startswith("daughter of Mara: only apart, in [b:0]. All:\n\n[b:0]")
    assert index.keyword_search("daughter of Mara").hits == ()  # the paper's search does not know them


def test_a_common_keyword_takes_no_room_from_the_others(make_index):
    documents = {f"n{n}": f"Trade went well in the year {n}, and so it did later. " * 3 for n in range(9)}
    documents |= {"mara": "Mara kept the light.", "both": "Mara knew of trade."}
    (tool,) = make_tools(make_index(documents), names=["keyword_search"])
    content = tool.invoke({"keywords": ["Mara", "trade"]})
    shown, _, brief = content.partition("In brief:")
    assert content.startswith("Mara: 2 chunks; trade: 10 chunks. The best 2 of 11 chunks:")
    assert "Mara kept the light." in shown
    assert "Mara knew of trade." in shown
    assert brief == ""
    assert "[n0:0]" in tool.invoke({"keywords": ["trade", "nowhere"]}).partition("In brief:")[0]


def test_of_a_heading_in_brief_what_stands_below_it_is_shown(make_index):
    documents = {f"n{n}": f"## Launch\n\nIt is on day {n}.\n\n## More\n\nWords." for n in range(9)}
    (tool,) = make_tools(make_index(documents | {"mara": "Mara kept the light."}), names=["keyword_search"])
    content = tool.invoke({"keywords": ["Mara", "launch"]})
    assert "In brief:\n[n0:0] Launch: It is on day 0. …" in content


def test_a_keyword_counts_as_a_word_first(make_index):
    documents = {f"n{n}": "The ball rolled over the wall. " * 3 for n in range(8)} | {"w": "They sang it all."}
    (tool,) = make_tools(make_index(documents), names=["keyword_search"])
    content = tool.invoke({"keywords": ["all"]})
    assert content.startswith("all: 9 chunks (1 as a word). ")
    assert content.split("\n\n")[1].startswith("[w:0]")
    assert tool.invoke({"keywords": ["olle"]}).startswith("olle: 8 chunks. ")  # only inside words: these count then


def test_another_spelling_is_searched_along(make_index):
    documents = {"a": "The drive-in opened.", "b": "The drive - in closed.", "c": "Cars stood there."}
    (tool,) = make_tools(make_index(documents), names=["keyword_search"])
    content = tool.invoke({"keywords": ["drive-in"]})
    assert content.startswith("drive-in: 1 chunk (and 1 chunk as drive - in). All:")
    assert "[a:0]" in content
    assert "[b:0]" in content


def test_what_is_left_out_of_a_document_is_marked(call):
    message = call("keyword_search", keywords=["1517"])
    assert "The Fair: … In the year 1517 nobody of note came to the fair. …" in message.content
    assert message.artifact["new_chunks"] == []
    assert message.artifact["sentences"] == {"fair:0": [18]}  # after the title


def test_sentences_that_were_shown_are_not_shown_again(call):
    first = call("keyword_search", keywords=["1517"])
    again = call("keyword_search", after=[first], keywords=["1517", "1518"])
    assert "1517 nobody" not in again.content
    assert "… In the year 1518 nobody of note came to the fair. …" in again.content
    last = call("keyword_search", after=[first, again], keywords=["1518"])
    assert last.content.endswith("Shown above: [fair:0]\n\nNothing new was found.")


def test_a_sentence_that_was_cut_is_not_held(make_index):
    long = f"The alpha {'and so on ' * 60} the beta came."
    tool, *_ = make_tools(make_index({"a": f"{long} {LONG}"}))
    first = tool.invoke({"name": tool.name, "args": {"keywords": ["alpha"]}, "id": "1", "type": "tool_call"})
    assert "the beta came" not in first.content
    again = {"keywords": ["beta"], "messages": [first]}
    assert "the beta came" in tool.invoke({"name": tool.name, "args": again, "id": "2", "type": "tool_call"}).content


def test_the_same_sentence_beside_different_ones_is_shown_twice(make_index):
    rest = [f"{'Nobody knew of it in those days. ' * 30}" for _ in range(2)]
    texts = {"a": f"The gale came. It sank ten ships. {rest[0]}", "b": f"The gale came. It sank two ships. {rest[1]}"}
    content = make_tools(make_index(texts))[0].invoke({"keywords": ["gale"]})
    assert "It sank ten ships." in content
    assert "It sank two ships." in content


def test_the_papers_list_shows_every_sentence_that_was_found(make_index):
    text = " ".join(f"Gale {n} sank ships." for n in range(8))
    index = make_index({"a": f"{text} {LONG}"})
    tool = make_tools(index, presentation="paper")[1]
    (hit,) = index.semantic_search("the gale sank ships", 1).hits
    content = tool.invoke({"query": "the gale sank ships", "top_k": 1})
    assert len(hit.matches) > 2
    assert all(index.get("a:0").sentence_text(position) in content for position in hit.matches)


def test_equal_passages_are_shown_once(make_index):
    text = f"The gale sank many ships. {LONG}"
    index = make_index([{"id": "a", "text": text}, {"id": "b", "text": f"{text} The end."}])
    tool, _ = make_tools(index, names=["keyword_search", "chunk_read"])
    content = tool.invoke({"keywords": ["gale"]})
    assert content.count("The gale sank many ships.") == 1
    assert content.endswith("(the same text: [b:0])")


@pytest.mark.parametrize("within", ["song", "song:0", "BROTHER song"])
def test_a_search_within_a_document_finds_nothing_else(call, within):
    message = call("keyword_search", keywords=["brother"], within=within)
    assert message.content.startswith("brother: 1 chunk. All:")
    assert message.artifact["chunk_ids"] == ["song:0"]
    assert call("semantic_search", queries=["brother"], within=within).artifact["chunk_ids"] == ["song:0"]


def test_a_row_with_a_keyword_as_its_label_comes_first_also_with_a_note(make_index):
    label = "Capital expenditures (including software)"
    prose = {f"p{n}": "We discuss capital expenditures, and capital expenditures again." for n in range(4)}
    documents = prose | {"flows": f"Cash flows\n\nDividends | 9 | 8\n{label} | 23,087 | 20,286\n"}
    (tool,) = make_tools(make_index(documents), names=["keyword_search"], top_k=1)
    content = tool.invoke({"keywords": ["Capital expenditures"]})
    assert "[flows:0]" in content
    assert f"{label} | 23,087 | 20,286" in content


def test_a_document_that_a_query_names_is_shown_first(make_index):
    index = make_index(
        [
            {"id": "a", "title": "Orlath", "text": "The painter of great ships slept."},
            {"id": "b", "title": "Boats", "text": "The painter of great ships came home."},
        ]
    )
    (tool,) = make_tools(index, names=["semantic_search"], top_k=1)
    query = "The painter of great ships, Orlath, came home"
    assert [hit.chunk_id for hit in index.semantic_search(query, 1).hits] == ["b:0"]
    assert "[a:0] (" in tool.invoke({"queries": [query]}).split("\n\n")[1]


def test_a_read_about_something_shows_its_passages(call):
    message = call("chunk_read", chunk_ids=["fair:0", "twin:0"], about="the year 1517")
    assert "In the year 1517 nobody of note came to the fair." in message.content
    assert "1539" not in message.content
    assert message.artifact["new_chunks"] == ["twin:0"]  # a short chunk is read whole
    assert 18 in message.artifact["sentences"]["fair:0"]


def test_of_many_chunks_at_once_the_passages_on_the_question_are_shown(make_index):
    documents = {f"d{n}": f"{LONG} In {n} the gale sank Orlath." for n in range(3)} | {"x": LONG}
    (tool,) = make_tools(make_index(documents), names=["chunk_read"])
    question = {"messages": [HumanMessage("Who sank in the gale?")]}
    arguments = {"chunk_ids": ["d0:0", "d1:0", "x:0"], **question}
    message = tool.invoke({"name": tool.name, "args": arguments, "id": "c", "type": "tool_call"})
    assert "In 1 the gale sank Orlath." in message.content
    assert "[x:0]: left out: other passages are closer, or shown above. A chunk read alone" in message.content
    assert message.artifact["new_chunks"] == []
    arguments["chunk_ids"] = ["d0:0"]
    one = tool.invoke({"name": tool.name, "args": arguments, "id": "c", "type": "tool_call"})
    assert one.artifact["new_chunks"] == ["d0:0"]


def test_reading_does_not_depend_on_the_embedder(call, monkeypatch):
    def fail(*_):
        raise ModelError("the service is gone")

    monkeypatch.setattr(Index, "rate_sentences", fail)
    assert call("chunk_read", chunk_ids=["fair:0"], about="the year 1517").artifact["new_chunks"] == ["fair:0"]


def test_a_document_shown_whole_counts_as_read_and_is_not_shown_again(call):
    first = call("keyword_search", keywords=["wrestler"])
    assert "Akinoshū Kenji is a former wrestler. He left the ring in 2001." in first.content
    assert first.artifact["new_chunks"] == ["kenji:0"]
    again = call("keyword_search", after=[first], keywords=["wrestler", "ring"])
    assert "Shown above: [kenji:0]" in again.content
    assert "former wrestler" not in again.content
    assert again.artifact["new_chunks"] == []
    read = call("chunk_read", after=[first], chunk_ids=["kenji:0"])
    assert read.content == "[kenji:0] Shown in full above."
    assert read.artifact["evidence_tokens"] == 0


def test_a_closed_index_says_so(make_index):
    index = make_index(DOCUMENTS[:1])
    index.close()
    tool, *_ = make_tools(index)
    # A tool raises it, too: the model cannot mend it.
    for use in (lambda: index.get("kenji:0"), lambda: tool.invoke({"keywords": ["Kenji"]})):
        with pytest.raises(ARAGError, match="is closed"):
            use()
