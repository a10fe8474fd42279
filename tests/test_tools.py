"""What a model sends to the tools, what it gets, and what goes into the trace."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from langchain_core.utils.function_calling import convert_to_openai_tool

from arag.errors import InputError
from arag.ingest.pipeline import ingest
from arag.retrieval.tokens import count_tokens
from arag.retrieval.tools import PRESENTATIONS, TOOL_NAMES, make_tools
from fakes import HashEmbeddings, after_reading, write_corpus

LONG = " ".join(f"In the year {n} the harbour of Vellin was frozen and nobody sailed." for n in range(1700, 1740))
RECORDS = [
    {"id": "gale", "title": "The Gale", "text": "Many ships sank in the gale. Few came home."},
    {"id": "12", "text": "Orlath was a painter. He saw the gale."},
    {"id": "long", "title": "Vellin", "text": LONG},
]


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tools")
    source = write_corpus(folder / "corpus", RECORDS)
    with ingest(source, folder / "index", embedder=HashEmbeddings(), chunk_tokens=150) as index:
        yield index


@pytest.fixture(scope="module")
def tools(index):
    return {tool.name: tool for tool in make_tools(index)}


@pytest.fixture(scope="module")
def call(tools):
    def call(name, arguments):
        return tools[name].invoke({"type": "tool_call", "id": "call-1", "name": name, "args": arguments})

    return call


def parts(index):
    return [chunk_id for chunk_id in index.chunk_ids() if chunk_id.startswith("long:")]


# --- what a model sees ---


def test_a_model_sees_names_descriptions_and_arguments(index):
    seen = {t["function"]["name"]: t["function"] for t in map(convert_to_openai_tool, make_tools(index))}
    assert tuple(seen) == TOOL_NAMES
    arguments = {"keyword_search": ["keywords", "within"], "semantic_search": ["queries", "within"]}
    arguments["chunk_read"] = ["chunk_ids", "about"]
    for name, function in seen.items():
        parameters = function["parameters"]
        assert sorted(parameters["properties"]) == sorted(arguments[name])
        assert parameters["required"] == arguments[name][:1]  # the conversation is hidden
        assert "messages" in make_tools(index, names=[name])[0].args_schema.model_fields
        assert all(field["description"] for field in (function, *parameters["properties"].values()))
    keywords = seen["keyword_search"]["parameters"]["properties"]["keywords"]
    assert (keywords["type"], keywords["items"]) == ("array", {"type": "string"})


@pytest.mark.parametrize("presentation", PRESENTATIONS)
def test_schemas_hold_nothing_that_only_costs_tokens(index, presentation):
    """A model is sent them with every prompt."""
    text = json.dumps([convert_to_openai_tool(tool) for tool in make_tools(index, presentation=presentation)])
    assert not re.search(r'"(default|title|maxItems|minItems|anyOf)":', text)


# --- keyword_search ---


def test_keyword_search_says_what_each_keyword_hits_and_then_the_chunks(call):
    message = call("keyword_search", {"keywords": ["gale", "Orlath", "xyzzy"]})
    assert message.status == "success"
    assert message.content == (
        "gale: 2 chunks; Orlath: 1 chunk; xyzzy: none. All:\n\n"
        "[12:0] Orlath was a painter. He saw the gale.\n\n"
        "[gale:0] The Gale: Many ships sank in the gale. Few came home."
    )


def test_keyword_search_artifact(index, call):
    message = call("keyword_search", {"keywords": ["gale"]})
    artifact = message.artifact
    assert artifact["query"] == ["gale"]
    assert artifact["chunk_ids"] == ["gale:0", "12:0"]
    assert artifact["new_chunks"] == ["gale:0", "12:0"]  # both are shown whole
    assert artifact["sentences"] == {"gale:0": [0, 1, 2], "12:0": [0, 1]}
    first, second = (hit["score"] for hit in artifact["results"]["hits"])
    assert first > second > 0
    assert artifact["results"]["total"] == 2
    shown = "The Gale\nMany ships sank in the gale.\nFew came home.\nOrlath was a painter.\nHe saw the gale."
    assert artifact["evidence_tokens"] == count_tokens(shown)
    assert artifact["retrieved_tokens"] == count_tokens(message.text)


# --- semantic_search ---


def test_semantic_search_shows_similarities(call):
    message = call("semantic_search", {"queries": ["Orlath was a painter"]})
    head, first, *_ = message.content.split("\n\n")
    assert head == "The nearest, by similarity:"
    assert first == "[12:0] (1.00) Orlath was a painter. He saw the gale."
    assert message.artifact["results"]["hits"][0]["score"] == pytest.approx(1.0)
    assert message.artifact["query"] == ["Orlath was a painter"]
    assert message.artifact["new_chunks"][0] == "12:0"  # shown whole
    assert message.artifact["retrieved_tokens"] > message.artifact["evidence_tokens"] > 0


def test_several_queries_are_answered_one_after_another(call):
    content = call("semantic_search", {"queries": ["Orlath was a painter", "Few came home"]}).content
    first, second = content.split("Few came home: The nearest, by similarity:")
    assert first.startswith("Orlath was a painter: The nearest, by similarity:\n\n[12:0] (1.00)")
    assert "Few came home." in content
    assert "Orlath was a painter." not in second  # shown above


# --- chunk_read ---


def test_chunk_read_gives_full_texts(index, call):
    message = call("chunk_read", {"chunk_ids": ["gale:0", "12:0"]})
    assert message.content == (
        "[gale:0] The Gale\nMany ships sank in the gale. Few came home.\n\n"
        "[12:0]\nOrlath was a painter. He saw the gale."
    )
    artifact = message.artifact
    assert artifact["query"] == artifact["chunk_ids"] == artifact["new_chunks"] == ["gale:0", "12:0"]
    assert artifact["retrieved_tokens"] == count_tokens(message.text)
    assert artifact["evidence_tokens"] == sum(chunk.tokens for chunk in index.read(["gale:0", "12:0"]).chunks)
    part = call("chunk_read", {"chunk_ids": ["long:2", "long:1", "long:2"]})
    assert part.artifact["chunk_ids"] == ["long:2", "long:1"]
    assert f"[long:2] Vellin, part 3 of {len(parts(index))}\n" in part.content


def test_a_chunk_read_before_is_not_repeated_and_costs_nothing(index, call):
    message = call("chunk_read", {"chunk_ids": ["gale:0", "12:0"], **after_reading("gale:0")})
    assert message.content == ("[gale:0] Shown in full above.\n\n[12:0]\nOrlath was a painter. He saw the gale.")
    assert message.artifact["chunk_ids"] == ["gale:0", "12:0"]
    assert message.artifact["new_chunks"] == ["12:0"]
    assert message.artifact["evidence_tokens"] == index.read("12:0").chunks[0].tokens


def test_searches_do_not_show_again_what_was_read(call):
    read = after_reading("gale:0")
    keywords = call("keyword_search", {"keywords": ["gale"], **read})
    assert keywords.content == (
        "gale: 2 chunks. All:\n\n[12:0] Orlath was a painter. He saw the gale.\n\nShown above: [gale:0]"
    )
    assert keywords.artifact["new_chunks"] == ["12:0"]
    assert keywords.artifact["chunk_ids"] == ["12:0", "gale:0"]
    semantic = call("semantic_search", {"query": "ships sank", **read}).content
    assert "[gale:0] (" not in semantic
    assert "Shown above: [gale:0]" in semantic


def test_an_unknown_id_is_answered_with_ids_that_exist(call):
    message = call("chunk_read", {"chunk_ids": ["gale:7", "12:0"]})
    assert message.status == "success"
    assert (
        "[gale:7] There is no chunk with this id. Ids look like [gale:0]; search results give them." in message.content
    )
    assert message.artifact["new_chunks"] == ["12:0"]
    assert message.artifact["results"]["unknown"] == {"gale:7": ("gale:0",)}


GALE = "gale", '["gale"]', ["gale", "", " GALE "]


READ_12 = "12:0", '["12:0"]', "[12:0]", "['12:0']", ["[12:0]"], [" (12:0), "], ["`12:0`"], ["12"], [12], 12, "[12]"
GALE = "gale", '["gale"]', ["gale", "", " GALE "]


@pytest.mark.parametrize(
    ("name", "sent", "understood"),
    [
        ("chunk_read", [{"chunk_ids": ids} for ids in READ_12], "12:0"),
        ("chunk_read", [{"chunk_id": "12:0"}, {"chunk_ids": ["12:0"], "about": None, "reason": "unknown"}], "12:0"),
        ("keyword_search", [*({"keywords": words} for words in GALE), {"keyword": ["gale"]}], "gale:0"),
        ("keyword_search", [{"keywords": [1701]}], "long:0"),
        ("semantic_search", [{"query": "Orlath was a painter"}, {"queries": '["Orlath was a painter"]'}], "12:0"),
    ],
)
def test_what_models_send_is_understood(call, name, sent, understood):
    for arguments in sent:
        message = call(name, arguments)
        assert (message.status, message.artifact["chunk_ids"][0]) == ("success", understood)


# --- errors that the model can mend ---


@pytest.mark.parametrize(
    ("name", "arguments", "names"),
    [
        ("keyword_search", {"keywords": [None]}, "keywords"),
        ("keyword_search", {"keywords": [" "]}, "keyword"),
        ("keyword_search", {"keywords": ["gale"] * 51}, "give 1 to 50"),
        ("keyword_search", {"keywords": ["gale"], "within": "xyzzy"}, "No document has 'xyzzy' in its title or id"),
        ("semantic_search", {"queries": []}, "give 1 to 10"),
        ("semantic_search", {"queries": [""]}, "query is blank"),
        ("chunk_read", {"chunk_ids": []}, "chunk_read"),
        ("chunk_read", {"chunk_ids": ["12:0"], "about": ["x"]}, "about"),
    ],
)
def test_bad_arguments_are_an_error_message_that_names_them(call, name, arguments, names):
    message = call(name, arguments)
    assert message.status == "error"
    assert names in message.content
    assert message.tool_call_id == "call-1"
    assert "pydantic" not in message.content


# --- which tools ---


def test_tools_come_in_the_order_asked_for_or_are_an_input_error(index):
    for names in (["keyword_search"], ["chunk_read", "semantic_search"]):
        assert [tool.name for tool in make_tools(index, names=names)] == names
    for names in (["search"], [], ["chunk_read", "chunk_read"]):
        with pytest.raises(InputError, match="keyword_search, semantic_search, chunk_read"):
            make_tools(index, names=names)
    for top_k in (0, 21):
        with pytest.raises(InputError, match="1 to 20"):
            make_tools(index, top_k=top_k)


@pytest.mark.parametrize("presentation", PRESENTATIONS)
def test_without_chunk_read_searches_give_full_texts(index, presentation):
    names = ["keyword_search", "semantic_search"]
    tools = {tool.name: tool for tool in make_tools(index, names=names, top_k=2, presentation=presentation)}
    for name, query in zip(names, ({"keywords": ["Vellin"]}, {"query": "the harbour of Vellin"}), strict=True):
        message = tools[name].invoke({"type": "tool_call", "id": "1", "name": name, "args": query})
        ids = message.artifact["chunk_ids"]
        assert len(ids) == 2
        chunks = index.read(ids).chunks
        for chunk in chunks:
            assert chunk.text.removeprefix("Vellin").strip() in message.content
        assert message.artifact["new_chunks"] == ids
        assert message.artifact["evidence_tokens"] >= sum(chunk.tokens for chunk in chunks)
        assert len(message.artifact["results"]["hits"]) == 2
        read = query | after_reading(*ids[:1])
        again = tools[name].invoke({"type": "tool_call", "id": "1", "name": name, "args": read})
        assert f"[{ids[0]}] Shown in full above." in again.content
        assert presentation == "paper" or chunks[0].text.removeprefix("Vellin").strip() not in again.content
        assert again.artifact["new_chunks"] == [i for i in again.artifact["chunk_ids"] if i != ids[0]]


def test_pages_are_named(make_index, tmp_path):
    from reportlab.pdfgen.canvas import Canvas

    file = Path(tmp_path) / "paper.pdf"
    canvas = Canvas(str(file))
    canvas.setTitle("A Paper")
    for text in ("The first page is here.", "The second page is here."):
        canvas.drawString(72, 720, text)
        canvas.showPage()
    canvas.save()
    with ingest(file, tmp_path / "index", embedder=HashEmbeddings()) as index:
        tool = make_tools(index, names=["chunk_read"])[0]
        content = tool.invoke({"chunk_ids": ["paper.pdf:0"]})
    assert content.startswith("[paper.pdf:0] A Paper, pages 1-2\n")
