"""What a model sees of the tools, what it may send, what it is shown, and what goes into the trace."""

from __future__ import annotations

import copy
import json
import re

import pytest
from langchain_core.utils.function_calling import convert_to_openai_tool

from arag.errors import IndexNotFoundError, InputError, ModelError
from arag.evaluation.paper_tools import PAPER_TOOLS
from arag.ingest.pipeline import ingest
from arag.retrieval.index import Index
from arag.retrieval.tools.sets import PAPER, make_tools
from arag.text.tokens import count_tokens
from fakes import HashEmbeddings, write_corpus

LONG = " ".join(f"In the year {n} the harbour of Vellin was frozen and nobody sailed." for n in range(1700, 2100))
FAIR = " ".join(f"In the year {n} nobody of note came to the fair." for n in range(1500, 1540))
WRESTLER = "Akinoshū Kenji is a former wrestler. He left the ring in 2001."
RECORDS = [
    {"id": "gale", "title": "The Gale", "text": "Many ships sank in the gale. Few came home."},
    {"id": "12", "text": "Orlath was a painter. He saw the gale."},
    {"id": "long", "title": "Vellin", "text": LONG},
    {"id": "kenji", "title": "Akinoshū Kenji", "text": WRESTLER},
    {"id": "drive", "title": "Henday", "text": "The Henday Drive in the north is a road."},
    {"id": "twin", "title": "Admiral Twin", "text": "Admiral Twin is a band from Tulsa."},
    {"id": "fair", "title": "The Fair", "text": FAIR},
    *({"id": f"b{n}", "title": f"Song {n}", "text": f"My brother sang song {n} to his brother."} for n in range(3)),
    {"id": "song", "title": "Brother (song)", "text": "A song by a band, once sung to a brother."},
    {"id": "rare", "title": "Rare", "text": "The gisvi grows here."},
]


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tools")
    with ingest(write_corpus(folder / "corpus", RECORDS), folder / "index", embedder=HashEmbeddings()) as index:
        yield index


def use(tool, after=(), **arguments):
    """Call a tool as a graph does, in a conversation with earlier results."""
    arguments |= {"messages": [*after]} if after else {}
    return tool.invoke({"type": "tool_call", "id": "call-1", "name": tool.name, "args": arguments})


@pytest.fixture(scope="module")
def call(index):
    tools = {tool.name: tool for tool in make_tools(index, names="paper")}
    return lambda name, after=(), **arguments: use(tools[name], after, **arguments)


@pytest.fixture
def search(make_index):
    """A function that searches for keywords in documents of the test's own, and returns what is shown."""

    def search(documents, *keywords, **options):
        tool, *_ = make_tools(make_index(documents), **{"names": "paper"} | options)
        return tool.invoke({"keywords": [*keywords]})

    return search


# --- what a model sees ---


@pytest.mark.parametrize("names", [PAPER, list(PAPER_TOOLS.values())])
def test_a_model_sees_described_arguments_and_nothing_that_only_costs_tokens(index, names):
    tools = make_tools(index, names=names)
    seen = {t["function"]["name"]: t["function"] for t in map(convert_to_openai_tool, tools)}
    assert tuple(seen) == PAPER
    for function in seen.values():
        parameters = function["parameters"]
        assert len(parameters["required"]) == 1
        assert "messages" not in parameters["properties"]  # the conversation is hidden
        assert all(field["description"] for field in (function, *parameters["properties"].values()))
    keywords = seen["keyword_search"]["parameters"]["properties"]["keywords"]
    assert (keywords["type"], keywords["items"]) == ("array", {"type": "string"})
    assert not re.search(r'"(default|title|maxItems|minItems|anyOf)":', json.dumps([*seen.values()]))


def test_tools_come_in_the_order_asked_for_or_are_an_input_error(index):
    assert [tool.name for tool in make_tools(index, names=PAPER[::-1])] == [*PAPER[::-1]]
    for names in (["search"], [], ["chunk_read", "chunk_read"]):
        with pytest.raises(InputError, match="keyword_search, semantic_search, chunk_read"):
            make_tools(index, names=names)
    for names in ("search", 5):
        with pytest.raises(InputError, match="give paper, all, shell, or a list"):
            make_tools(index, names=names)
    with pytest.raises(InputError, match="1 to 20"):
        make_tools(index, names="paper", top_k=21)


# --- what a model may send ---

READ_12 = "12:0", '["12:0"]', "[12:0]", "['12:0']", ["[12:0]"], [" (12:0), "], ["`12:0`"], ["12"], [12], 12, "[12]"
GALE = "gale", '["gale"]', ["gale", "", " GALE "]


@pytest.mark.parametrize(
    ("name", "sent", "understood"),
    [
        ("chunk_read", [{"chunk_ids": ids} for ids in READ_12], "12:0"),
        ("chunk_read", [{"chunk_id": "12:0"}, {"chunk_ids": ["12:0"], "about": None, "reason": "unknown"}], "12:0"),
        ("keyword_search", [*({"keywords": words} for words in GALE), {"keyword": ["gale"]}], "gale:0"),
        ("keyword_search", [{"keywords": [1701]}], "long:0"),
        ("semantic_search", [{"query": "Orlath was a painter"}, {"queries": ["", "Orlath was a painter"]}], "12:0"),
    ],
)
def test_what_models_send_is_understood(call, name, sent, understood):
    for arguments in sent:
        message = call(name, **arguments)
        assert (message.status, message.artifact["chunk_ids"][0]) == ("success", understood)


@pytest.mark.parametrize(
    ("name", "arguments", "names"),
    [
        ("keyword_search", {"keywords": [None]}, "keywords"),
        ("keyword_search", {"keywords": [" "]}, "keyword"),
        ("keyword_search", {"keywords": ["gale"] * 51}, "give 1 to 50"),
        ("keyword_search", {"keywords": ["gale"], "within": "xyzzy"}, "No document has 'xyzzy' in its title or id"),
        ("semantic_search", {"queries": []}, "give 1 to 10"),
        ("semantic_search", {"queries": [""]}, "give 1 to 10"),
        ("chunk_read", {"chunk_ids": []}, "chunk_read"),
        ("chunk_read", {"chunk_ids": ["12:0"], "about": ["x"]}, "about"),
    ],
)
def test_bad_arguments_are_an_error_message_that_names_them(call, name, arguments, names):
    message = call(name, **arguments)
    assert (message.status, message.tool_call_id) == ("error", "call-1")
    assert names in message.content
    assert "pydantic" not in message.content


@pytest.mark.parametrize("names", [PAPER, list(PAPER_TOOLS.values())])
def test_what_is_far_too_long_is_an_error_that_names_the_limit_and_does_not_repeat_it(index, names):
    many = "x" * 1_000_000
    searched, asked, read = make_tools(index, names=names)
    query = "queries" if names is PAPER else "query"
    sent = [(searched, {"keywords": ["gale", many]}), (asked, {query: many}), (read, {"chunk_ids": [many]})]
    if names is PAPER:
        sent += [(searched, {"keywords": ["gale"], "within": many}), (read, {"chunk_ids": ["12:0"], "about": many})]
    for tool, arguments in sent:
        message = use(tool, **arguments)
        assert (message.status, len(message.text) < 300) == ("error", True)
        assert "it has 1,000,000 characters: give at most 2,000" in message.text
    message = use(read, chunk_ids=[f"no-such-{n}:0" for n in range(10_000)])
    assert (message.status, len(message.text) < 300) == ("error", True)
    assert "chunk_ids: Value error, there are 10,000: give 1 to 100" in message.text
    for wrong in ([None] * 100_000, [many] * 100):
        assert len(use(searched, keywords=wrong).text) < 1_000


def test_a_phrase_as_long_as_the_limit_is_found_and_a_program_may_look_for_longer_ones(index, call):
    phrase = LONG[:2_000]
    assert call("keyword_search", keywords=[phrase]).artifact["chunk_ids"] == ["long:0"]
    longer = index.read("long:0").chunks[0].text.strip()
    assert len(longer) > 2_000
    assert index.keyword_search(longer).hits[0].chunk_id == "long:0"


# --- keyword_search ---


def test_keyword_search_says_what_each_keyword_hits_and_then_the_chunks(call):
    message = call("keyword_search", keywords=["gale", "Orlath", "xyzzy"])
    assert message.content == (
        "gale: 2 chunks; Orlath: 1 chunk; xyzzy: none. All:\n\n"
        "[12:0] Orlath was a painter. He saw the gale.\n\n"
        "[gale:0] The Gale: Many ships sank in the gale. Few came home."
    )
    artifact = message.artifact
    assert artifact["query"] == ["gale", "Orlath", "xyzzy"]
    assert artifact["chunk_ids"] == artifact["new_chunks"] == ["12:0", "gale:0"]  # both are shown whole
    assert artifact["sentences"] == {"12:0": [0, 1], "gale:0": [0, 1, 2]}
    first, second = (hit["score"] for hit in artifact["results"]["hits"])
    assert first > second > 0
    shown = "Orlath was a painter.\nHe saw the gale.\nThe Gale\nMany ships sank in the gale.\nFew came home."
    assert artifact["evidence_tokens"] == count_tokens(shown)
    assert artifact["retrieved_tokens"] == count_tokens(message.text)


def test_another_spelling_of_the_same_letters_is_searched_at_once_and_a_similar_word_is_not(call):
    message = call("keyword_search", keywords=["Akinoshu Kenji", "Henday drive-in", "Admiral Twim"])
    head = "Akinoshu Kenji: spelled Akinoshū Kenji (1 chunk); Henday drive-in: spelled Henday Drive in (1 chunk); "
    assert message.content.startswith(f"{head}Admiral Twim: none (closest: Admiral Twin (1 chunk)")
    assert message.artifact["chunk_ids"] == ["drive:0", "kenji:0"]


def test_a_misspelt_name_that_every_document_has_is_suggested(search):
    documents = {f"d{n}": f"Kestrwyn makes lamps of kind {n}." for n in range(30)}
    assert search(documents, "Kestryn").startswith("Kestryn: none (closest: Kestrwyn (30 chunks)).")


def test_another_spelling_is_searched_along(search):
    content = search({"a": "The drive-in opened.", "b": "The drive - in closed.", "c": "Cars stood."}, "drive-in")
    assert content.startswith("drive-in: 1 chunk (and 1 chunk as drive - in). All:")
    assert {"[a:0]", "[b:0]"} <= set(content.split())


def test_words_of_a_keyword_that_only_one_chunk_has_are_shown_together(call):
    message = call("keyword_search", keywords=["Admiral Tulsa", "gisvi"])
    assert message.content == (
        "Admiral Tulsa: only apart, in [twin:0]; gisvi: 1 chunk. All:\n\n"
        "[rare:0] Rare: The gisvi grows here.\n\n"
        "[twin:0] Admiral Twin: Admiral Twin is a band from Tulsa."
    )
    assert message.artifact["results"]["hits"][1]["scattered"] == ["Admiral Tulsa"]


def test_a_common_keyword_takes_no_room_from_the_others(make_index):
    documents = {f"n{n}": f"Trade went well in the year {n}, and so it did later. " * 3 for n in range(9)}
    documents |= {"mara": "Mara kept the light.", "both": "Mara knew of trade."}
    (tool,) = make_tools(make_index(documents), names=["keyword_search"])
    content = tool.invoke({"keywords": ["Mara", "trade"]})
    assert content.startswith("Mara: 2 chunks; trade: 10 chunks. The best 2 of 11 chunks:")
    assert "Mara kept the light." in content
    assert "Mara knew of trade." in content
    assert "In brief:" not in content
    assert "[n0:0]" in tool.invoke({"keywords": ["trade", "nowhere"]}).partition("In brief:")[0]


def test_in_brief_the_sentence_with_the_rare_keyword_is_shown_and_equal_documents_once(search):
    name = "Its name is pronounced with a long A."
    text = f"# Names\n\nThe harbour owes much to the trade of the old guild.\n\n{name}\n\n{'It rained. ' * 99}"
    best = f"The harbour is pronounced as the pilots of the old guild {'and of all others ' * 20}have it."
    documents = {f"n{n}": f"The harbour was open in the year {n}." for n in range(9)}
    documents |= {"best": f"{best}\n\n{best}", "a": text, "b": text}
    brief = search(documents, "harbour", "pronounced").partition("In brief:\n")[2]
    assert brief == "[a:0] Names: Its name is pronounced with a long A. …\n(the same text: [b:0])"


def test_of_a_heading_in_brief_what_stands_below_it_is_shown(search):
    documents = {f"n{n}": f"## Launch\n\nIt is on day {n}.\n\n## More\n\nWords." for n in range(9)}
    content = search(documents | {"mara": "Mara kept the light."}, "Mara", "launch")
    assert "In brief:\n[n0:0] Launch: It is on day 0. …" in content


def test_a_keyword_counts_as_a_word_first(make_index):
    documents = {f"n{n}": "The ball rolled over the wall. " * 3 for n in range(8)} | {"w": "They sang it all."}
    (tool,) = make_tools(make_index(documents), names=["keyword_search"])
    assert re.match(r"all: 9 chunks \(1 as a word\)\. .*:\n\n\[w:0\]", tool.invoke({"keywords": ["all"]}))
    assert tool.invoke({"keywords": ["olle"]}).startswith("olle: 8 chunks, only within longer words. ")


def test_a_row_with_a_keyword_as_its_label_comes_first_also_with_a_note(search):
    label = "Capital expenditures (including software)"
    prose = {f"p{n}": "We discuss capital expenditures, and capital expenditures again." for n in range(4)}
    documents = prose | {"flows": f"Cash flows\n\nDividends | 9 | 8\n{label} | 23,087 | 20,286\n"}
    content = search(documents, "Capital expenditures", top_k=1)
    assert "[flows:0]" in content
    assert f"{label} | 23,087 | 20,286" in content


def test_equal_passages_are_shown_once(search):
    text = f"The gale sank many ships. {FAIR}"
    content = search({"a": text, "b": f"{text} The end."}, "gale")
    assert content.count("The gale sank many ships.") == 1
    assert content.endswith("(the same text: [b:0])")


def test_a_search_within_a_document_finds_nothing_else(call):
    for within in ("song", "song:0", "BROTHER song"):
        message = call("keyword_search", keywords=["brother", "sung band"], within=within)
        assert message.content.startswith("brother: 1 chunk; sung band: only apart, in [song:0]. All:")
        assert message.artifact["chunk_ids"] == ["song:0"]
        assert call("semantic_search", queries=["brother"], within=within).artifact["chunk_ids"] == ["song:0"]


# --- semantic_search ---


def test_semantic_search_answers_queries_one_after_another_with_similarities(call):
    message = call("semantic_search", queries=["Orlath was a painter", "Was Orlath a painter?"])
    first, second = message.content.split("Was Orlath a painter?: The nearest, by similarity:")
    painter = "[12:0] (1.00) Orlath was a painter. He saw the gale."
    assert first.startswith(f"Orlath was a painter: The nearest, by similarity:\n\n{painter}")
    assert "Orlath was a painter." not in second
    assert "Shown above: [12:0]" in second
    assert message.artifact["results"]["hits"][0]["score"] == pytest.approx(1.0)
    assert message.artifact["new_chunks"][0] == "12:0"  # shown whole
    assert message.artifact["retrieved_tokens"] > message.artifact["evidence_tokens"] > 0


def test_a_document_that_a_query_names_is_shown_first(make_index):
    painter = {"id": "a", "title": "Orlath", "text": "The painter of great ships slept."}
    index = make_index([painter, {"id": "b", "title": "Boats", "text": "The painter of great ships came home."}])
    (tool,) = make_tools(index, names=["semantic_search"], top_k=1)
    query = "The painter of great ships, Orlath, came home"
    assert [hit.chunk_id for hit in index.semantic_search(query, 1).hits] == ["b:0"]
    assert "[a:0] (" in tool.invoke({"queries": [query]}).split("\n\n")[1]


@pytest.mark.heavy
def test_a_query_in_a_script_that_the_embedder_does_not_know_is_pointed_to_keywords(make_index):
    index = make_index({"light": "The Vellin Light stands on the Snout."}, embedder="all-MiniLM-L6-v2")
    (tool,) = make_tools(index, names=["semantic_search"])
    first, _, second = tool.invoke({"queries": ["灯塔在哪里？", "Where is the Vellin Light? ạ ế"]}).partition("\n\n")
    assert first.startswith("灯塔在哪里？: The vectors know Latin letters only: use keyword_search")
    assert second.startswith("Where is the Vellin Light? ạ ế: The nearest, by similarity:")


# --- chunk_read ---


def test_chunk_read_gives_full_texts_once(index, call):
    message = call("chunk_read", chunk_ids=["gale:0", "12:0", "gale:0"])
    assert message.content == (
        "[gale:0] The Gale\nMany ships sank in the gale. Few came home.\n\n"
        "[12:0]\nOrlath was a painter. He saw the gale."
    )
    artifact = message.artifact
    assert artifact["chunk_ids"] == artifact["new_chunks"] == ["gale:0", "12:0"]
    assert artifact["retrieved_tokens"] == count_tokens(message.text)
    assert artifact["evidence_tokens"] == sum(chunk.tokens for chunk in index.read(["gale:0", "12:0"]).chunks)
    parts = index.document("long").chunks
    assert call("chunk_read", chunk_ids=["long:1"]).content.startswith(f"[long:1] Vellin, part 2 of {parts}\n")


def test_an_unknown_id_is_answered_with_ids_that_exist(call):
    message = call("chunk_read", chunk_ids=["gale:7", "12:0"])
    assert message.status == "success"
    assert "[gale:7] There is no chunk with this id. Ids look like [gale:0]; search results give" in message.content
    assert message.artifact["new_chunks"] == ["12:0"]


def test_a_read_about_something_shows_its_passages(call):
    message = call("chunk_read", chunk_ids=["fair:0", "twin:0"], about="the year 1517")
    assert "In the year 1517 nobody of note came to the fair." in message.content
    assert "1539" not in message.content
    assert message.artifact["new_chunks"] == ["twin:0"]  # a short chunk is read whole
    assert 18 in message.artifact["sentences"]["fair:0"]


def test_reading_does_not_depend_on_the_embedder(call, monkeypatch):
    def fail(*_):
        raise ModelError("the service is gone")

    monkeypatch.setattr(Index, "rate_sentences", fail)
    assert call("chunk_read", chunk_ids=["fair:0"], about="the year 1517").artifact["new_chunks"] == ["fair:0"]


# --- what the conversation holds ---


def test_what_was_read_is_not_shown_again_and_costs_nothing(index, call):
    read = call("chunk_read", chunk_ids=["gale:0"])
    again = call("chunk_read", [read], chunk_ids=["gale:0", "12:0"])
    assert again.content == "[gale:0] Shown in full above.\n\n[12:0]\nOrlath was a painter. He saw the gale."
    assert (again.artifact["chunk_ids"], again.artifact["new_chunks"]) == (["gale:0", "12:0"], ["12:0"])
    assert again.artifact["evidence_tokens"] == index.read("12:0").chunks[0].tokens
    keywords = call("keyword_search", [read], keywords=["gale"])
    assert keywords.content == (
        "gale: 2 chunks. All:\n\n[12:0] Orlath was a painter. He saw the gale.\n\nShown above: [gale:0]"
    )
    assert (keywords.artifact["chunk_ids"], keywords.artifact["new_chunks"]) == (["12:0", "gale:0"], ["12:0"])
    semantic = call("semantic_search", [read], query="ships sank").content
    assert "[gale:0] (" not in semantic
    assert "Shown above: [gale:0]" in semantic


def test_a_chunk_that_has_changed_is_read_again(tmp_path):
    def write(text):
        return ingest([{"id": "a", "text": text}], tmp_path / "index", embedder=HashEmbeddings())

    with write("The old mill.") as index:
        (tool,) = make_tools(index, names=["chunk_read"])
        first = use(tool, chunk_ids=["a:0"])
        write("The new mill.").close()
        assert "The new mill." in use(tool, [first], chunk_ids=["a:0"]).content


def test_a_document_shown_whole_counts_as_read(call):
    first = call("keyword_search", keywords=["wrestler"])
    assert WRESTLER in first.content
    assert first.artifact["new_chunks"] == ["kenji:0"]
    again = call("keyword_search", [first], keywords=["wrestler", "ring"])
    assert again.content.endswith("Shown above: [kenji:0]\n\nNothing new was found.")
    assert again.artifact["new_chunks"] == []
    read = call("chunk_read", [first], chunk_ids=["kenji:0"])
    assert (read.content, read.artifact["evidence_tokens"]) == ("[kenji:0] Shown in full above.", 0)


def test_sentences_are_shown_once_and_what_is_left_out_is_marked(call):
    first = call("keyword_search", keywords=["1517"])
    assert "The Fair: … In the year 1517 nobody of note came to the fair. …" in first.content
    assert (first.artifact["new_chunks"], first.artifact["sentences"]) == ([], {"fair:0": [18]})  # after the title
    again = call("keyword_search", [first], keywords=["1517", "1518"])
    assert "1517 nobody" not in again.content
    assert "… In the year 1518 nobody of note came to the fair. …" in again.content
    assert call("keyword_search", [first, again], keywords=["1518"]).content.endswith("Nothing new was found.")


def test_a_sentence_that_ends_in_dots_is_not_shown_again(make_index):
    tool, *_ = make_tools(
        make_index([{"id": "t", "title": "Tale", "text": "Orlath waited at the harbour…"}]), names="paper"
    )
    first = use(tool, keywords=["Orlath"])
    assert first.content.endswith("[t:0] Tale: Orlath waited at the harbour…")
    assert "Shown above: [t:0]" in use(tool, [first], keywords=["Orlath"]).content


def test_a_blank_around_a_keyword_changes_nothing(make_index):
    documents = {f"d{n}": f"The ship {n} left the harbour." for n in range(12)} | {"o": "Orlath stayed."}
    tool, *_ = make_tools(make_index(documents), names="paper")
    content = use(tool, keywords=["ship", "Orlath"]).content
    assert content.startswith("ship: 12 chunks; Orlath: 1 chunk. The best 2 of 13 chunks:")
    assert use(tool, keywords=["ship ", " Orlath"]).content == content


@pytest.mark.parametrize(
    ("about", "parts"),
    [
        ("population of St. Louis", ["population of St. Louis"]),
        ("net sales of 1,234 million", ["net sales of 1,234 million"]),
        ("Who opened it? a bridge, a road; a mill", ["Who opened it", "a bridge", "a road", "a mill"]),
        ("人口，面积。", ["人口", "面积"]),
    ],
)
def test_what_a_reader_looks_for_is_cut_between_its_parts_only(index, monkeypatch, about, parts):
    asked = []
    rate = Index.rate_sentences
    monkeypatch.setattr(Index, "rate_sentences", lambda self, q, ids: asked.append(q) or rate(self, q, ids))
    (tool,) = make_tools(index, names=["chunk_read"])
    use(tool, chunk_ids=["long:0"], about=about)
    assert asked == parts


def test_a_sentence_that_was_cut_is_not_held(make_index):
    long = f"The alpha {'and so on ' * 60} the beta came."
    tool, *_ = make_tools(make_index({"a": f"{long} {FAIR}"}), names="paper")
    first = use(tool, keywords=["alpha"])
    assert "the beta came" not in first.content
    assert "the beta came" in use(tool, [first], keywords=["beta"]).content


# --- other presentations ---


@pytest.mark.parametrize("names", [PAPER, list(PAPER_TOOLS.values())])
def test_without_chunk_read_searches_give_full_texts(index, names):
    tools = make_tools(index, names=names[:2], top_k=2)
    for tool, query in zip(tools, ({"keywords": ["Vellin"]}, {"query": "the harbour of Vellin"}), strict=True):
        message = use(tool, **query)
        ids = message.artifact["chunk_ids"]
        texts = [chunk.text.removeprefix("Vellin").strip() for chunk in index.read(ids).chunks]
        assert len(texts) == len(message.artifact["results"]["hits"]) == 2
        assert all(text in message.content for text in texts)
        assert message.artifact["new_chunks"] == ids
        again = use(tool, [message], **query)
        assert f"[{ids[0]}] Shown in full above." in again.content
        assert names is not PAPER or texts[0] not in again.content
        assert not set(again.artifact["new_chunks"]) & set(ids)


def test_the_papers_list_shows_every_sentence_that_was_found(make_index):
    index = make_index({"a": " ".join([*(f"Gale {n} sank ships." for n in range(8)), FAIR])})
    tool = make_tools(index, names=[PAPER_TOOLS["semantic_search"]])[0]
    (hit,) = index.semantic_search("the gale sank ships", 1).hits
    content = tool.invoke({"query": "the gale sank ships", "top_k": 1})
    assert len(hit.similarities) > 2
    assert all(index.get("a:0").sentence_text(position) in content for position in hit.similarities)


def test_a_copy_of_a_tool_shares_its_index(index):
    (tool,) = make_tools(index, names=["keyword_search"])
    assert copy.deepcopy(tool).index is index


def test_of_many_unknown_ids_the_first_ones_get_examples(call):
    shown = call("chunk_read", chunk_ids=[f"nothing-{n}" for n in range(30)]).text
    assert (shown.count("There is no chunk with this id"), shown.count("Ids look like")) == (30, 20)


def test_tools_open_the_index_at_a_place(tmp_path):
    place = tmp_path / "index"
    ingest([{"id": "boso", "text": "Boso the Elder was a count."}], place, embedder=HashEmbeddings()).close()
    (read,) = make_tools(place, names=["chunk_read"])
    assert "a count" in read.invoke({"chunk_ids": ["boso:0"]})
    with pytest.raises(IndexNotFoundError, match="no index in"):
        make_tools(tmp_path / "none")


def test_a_keyword_within_longer_words_only_is_shown_as_such(search):
    documents = {"a": "Harvest moves the waves.", "b": "He saves a ves."}
    assert search(documents, "arves").startswith("arves: 1 chunk, only within longer words. All:")
    assert search(documents, "ves").startswith("ves: 2 chunks (1 as a word). ")
    assert search({"a": "佐々木商店は1585年に開店。"}, "商店").startswith("商店: 1 chunk. All:")


def test_a_chinese_phrase_that_is_not_found_is_tried_in_parts(search):
    documents = {"a": "软件包管理系统很好。\n\n用户的配置在这里。", "b": "这里只有配置。", "c": "Nothing."}
    shown = search(documents, "软件包管理系统配置")
    assert shown.startswith("软件包管理系统配置: only 软件包管理系统, 配置, in [a:0]. All:\n\n[a:0] ")
    assert "软件包管理系统很好" in shown
    assert "用户的配置" in shown
    assert search(documents, "升级配置文件夹").startswith("升级配置文件夹: only 配置, in ")
    assert search(documents, "全新船舶制造").startswith("全新船舶制造: none.")
