"""GraphRAG: what it makes of the model's replies on ten entities by hand, and what it asks the model for."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from arag.evaluation.method import Session
from arag.evaluation.methods import graphrag
from arag.evaluation.methods.graphrag import (
    REPORTS,
    SOURCES,
    GraphRAG,
    build_context,
    building,
    rank_chunks,
    rank_communities,
    rank_relationships,
)
from arag.evaluation.methods.graphrag.building import (
    AGAIN,
    ChunkEntity,
    ChunkRelationship,
    Extraction,
    build_graph,
    find_communities,
    make_tables,
    merge,
)
from arag.evaluation.methods.graphrag.global_search import GraphRAGGlobal, make_batches
from arag.evaluation.methods.graphrag.knowledge import (
    ENTITIES,
    RELATIONSHIPS,
    Community,
    Entity,
    KnowledgeGraph,
    Relationship,
    Report,
    entity_row,
    relationship_row,
)
from arag.retrieval.types import Chunk
from arag.text.marks import mark
from arag.text.tokens import count_tokens
from lab import ask, make_lab

GOLDEN = json.loads((Path(__file__).parent / "parity" / "communities.json").read_text())

# Chunk, source, target, strength.
FOUND = [
    ("c0", "Ada", "Ben", 5),
    ("c0", "Ben", "Cleo", 2),
    ("c1", "Cleo", "Ada", 4),
    ("c1", "Ben", "Cleo", 1),
    ("c2", "Dora", "Emil", 2),
    ("c2", "Emil", "Fay", 6),
    ("c3", "Cleo", "Dora", 1),
    ("c4", "Gus", "Hal", 9),
    ("c5", "Ben", "Ada", 2),
    ("c3", "Fay", "Ada", 1),
    ("c3", "Ben", "Dora", 1),
]
LONERS = [("c4", "Ida"), ("c5", "Jon")]


def extraction(entities=(), relationships=()):
    return Extraction(
        entities=[ChunkEntity(name=name, type=kind, description=description) for name, kind, description in entities],
        relationships=[
            ChunkRelationship(source=source, target=target, description=description, strength=strength)
            for source, target, description, strength in relationships
        ],
    )


def found_in(chunk):
    pairs = [(source, target, strength) for where, source, target, strength in FOUND if where == chunk]
    names = dict.fromkeys([end for source, target, _ in pairs for end in (source, target)])
    names |= dict.fromkeys(name for where, name in LONERS if where == chunk)
    return extraction(
        [(name, "person", f"{name} is in {chunk}.") for name in names],
        [(source, target, f"{source} knows {target}.", strength) for source, target, strength in pairs],
    )


@pytest.fixture(scope="module", name="merged")
def _merged():
    return merge((chunk, found_in(chunk)) for chunk in ("c0", "c1", "c2", "c3", "c4", "c5"))


@pytest.fixture(scope="module", name="graph")
def _graph(merged):
    """The ten entities, with reports on hand-made communities of four levels."""
    entities, relationships = merged
    graph = KnowledgeGraph(entities, relationships)
    graph.reports = {
        Community(level, tuple(titles.split())): Report(title=titles, summary="", rating=rating, findings=[])
        for level, titles, rating in [
            (0, "ADA BEN CLEO DORA", 5),
            (0, "EMIL FAY", 9),
            (1, "ADA BEN CLEO", 7),
            (2, "ADA BEN", 7),
            (3, "ADA", 10),
        ]
    }
    return graph


def select(graph, *titles):
    return [graph.by_title[title] for title in titles]


def numbers(rows):
    return [row.number for row in rows]


def tokens(head, texts):
    return count_tokens(head) + sum(map(count_tokens, texts))


# --- names and merging ---


def test_entities_are_merged_by_name_in_capitals():
    first = extraction([("Marks &amp;\nCo ", "Company", "It sells."), ("marks & co", "geo", "Hill."), ("", "geo", "")])
    second = extraction([("MARKS & Co", "company", "It sells."), ("Marks & Co", "COMPANY", "It also buys.")])
    entities, relationships = merge([("b", first), ("a", second), ("b", second), ("c", extraction([("U.S.", "", "")]))])
    marks, other = entities  # the first type wins, without what was said about the other
    assert (other.title, other.descriptions) == ("U.S.", ())
    assert (marks.number, marks.title, marks.type) == (0, "MARKS & CO", "COMPANY")
    assert marks.descriptions == ("It also buys.", "It sells.")  # sorted, each once
    assert (marks.chunk_ids, marks.degree, relationships) == (("b", "a"), 0, [])


def test_relationships_are_directed_and_their_strengths_add_up(merged):
    _, relationships = merged
    found = [(each.source, each.target, each.weight, each.chunk_ids) for each in relationships]
    assert found[:3] == [("ADA", "BEN", 5, ("c0",)), ("BEN", "CLEO", 3, ("c0", "c1")), ("CLEO", "ADA", 4, ("c1",))]
    assert ("BEN", "ADA", 2, ("c5",)) in found
    assert numbers(relationships) == list(range(10))


def test_relationships_need_two_entities_and_a_strength_in_bounds():
    known = [("A", "geo", ""), ("B", "geo", "")]
    pairs = [("A", "B", "", 99), ("b", "a", "", -5), ("A", "C", "", 1), ("C", "D", "", 1), ("A", "", "", 1)]
    _, relationships = merge([("c", extraction(known, pairs))])
    assert [(each.source, each.target, each.weight) for each in relationships] == [("A", "B", 10), ("B", "A", 1)]


def test_degrees_and_ranks(merged):
    entities, relationships = merged
    degrees = {entity.title: entity.degree for entity in entities}
    assert degrees == dict(ADA=3, BEN=3, CLEO=3, DORA=3, EMIL=2, FAY=2, GUS=1, HAL=1, IDA=0, JON=0)  # noqa: C408
    assert [each.rank for each in relationships] == [6, 6, 6, 5, 4, 6, 5, 6, 2, 6]


# --- communities ---


@pytest.mark.parametrize("number", range(len(GOLDEN["cases"])))
def test_communities_are_those_of_the_reference(number):
    case = GOLDEN["cases"][number]
    relationships = [Relationship(place, (), (), *edge) for place, edge in enumerate(case["edges"])]
    found = [[each.level, list(each.members)] for each in find_communities(relationships)]
    assert found == [[level, members] for level, _, _, members in case["expected"]]


def test_only_the_largest_component_has_communities(merged):
    _, relationships = merged
    members = {title for each in find_communities(relationships) for title in each.members}
    assert members == {"ADA", "BEN", "CLEO", "DORA", "EMIL", "FAY"}
    assert find_communities([]) == []


# --- tables ---


def test_a_community_is_shown_by_relationships_with_their_entities(graph):
    entities = {entity.title: entity for entity in graph.entities}
    inner = [each for each in graph.relationships if each.source != "GUS"]
    ordered = [graph.relationships[number] for number in (0, 1, 2, 5, 7, 9, 3, 6, 4)]  # by rank: six 6, two 5, a 4
    ends = ["ADA", "BEN", "CLEO", "DORA", "EMIL", "FAY"]

    def tables(titles, relationships):
        rows = [entity_row(replace(entities[title], number=number)) for number, title in enumerate(titles)]
        numbered = [replace(each, number=number) for number, each in enumerate(relationships)]
        return [ENTITIES, *rows, RELATIONSHIPS, *map(relationship_row, numbered)]

    assert make_tables(graph, inner) == "".join(tables(ends, ordered))
    for number, titles in [(1, ends[:2]), (2, ends[:3]), (4, ends[:4]), (6, ends[:4]), (7, ends[:5]), (9, ends)]:
        part = tables(titles, ordered[:number])
        exact = sum(map(count_tokens, part))
        assert make_tables(graph, inner, exact) == "".join(part)
    assert make_tables(graph, inner, 1) == make_tables(graph, inner[:1])  # something, however little fits


# --- local search ---


def test_relationships_between_selected_entities_come_first(graph):
    found = rank_relationships(graph, select(graph, "ADA", "BEN"))
    ends = [(each.source, each.target) for each in found]
    assert ends == [
        ("ADA", "BEN"),
        ("BEN", "ADA"),  # between them
        ("BEN", "CLEO"),
        ("CLEO", "ADA"),  # Cleo is related to both; from a selected one before to a selected one
        ("BEN", "DORA"),
        ("FAY", "ADA"),  # of lower rank
    ]
    assert rank_relationships(graph, select(graph, "IDA", "JON")) == []


def test_reports_are_ranked_by_matches_then_rating(graph):
    def ranked(*titles):
        return [" ".join(community.members) for community in rank_communities(graph, select(graph, *titles))]

    by_rating = ["ADA BEN CLEO", "ADA BEN", "ADA BEN CLEO DORA"]  # 7, 7, 5
    assert ranked("ADA", "BEN") == by_rating  # two matches each
    assert ranked("EMIL", "CLEO", "DORA") == ["ADA BEN CLEO DORA", "EMIL FAY", "ADA BEN CLEO"]  # two matches; 9, 7
    assert ranked("ADA") == by_rating  # not the community on level 3
    assert ranked("GUS", "IDA") == []


def test_chunks_are_ranked_by_entity_then_relationships(graph):
    cleo, dora = select(graph, "CLEO", "DORA")
    assert (cleo.chunk_ids, dora.chunk_ids) == (("c0", "c1", "c3"), ("c2", "c3"))
    assert rank_chunks(graph, [cleo, dora]) == ["c1", "c0", "c3", "c2"]  # c1 holds two relationships of Cleo
    assert rank_chunks(graph, [dora, cleo]) == ["c3", "c2", "c1", "c0"]
    assert rank_chunks(graph, select(graph, "JON")) == ["c5"]


CHUNKS = {
    f"c{number}": Chunk(f"c{number}", "doc", number, "", text, (), count_tokens(text), parts=5)
    for number, text in enumerate("中文的句子 and a longer chunk. " * length for length in (3, 1, 2, 1, 1, 1))
}
PLENTY = 100_000


def chunk_text(chunk):
    return f"{mark(chunk.id)}\n{chunk.text}\n\n"


def context_of(graph, selected, max_tokens=PLENTY):
    return build_context(graph, selected, CHUNKS.get, max_tokens)


def test_a_context_with_room_for_everything(graph):
    context = context_of(graph, select(graph, "ADA", "BEN", "IDA"))
    assert [community.level for community in context.communities] == [1, 2, 0]
    assert [entity.title for entity in context.entities] == ["ADA", "BEN", "IDA"]
    assert numbers(context.relationships) == [0, 9, 1, 2, 7, 6]
    assert [chunk.id for chunk in context.chunks] == ["c0", "c1", "c3", "c5", "c4"]
    reports = "".join(f"{graph.reports[community].text}\n\n" for community in context.communities)
    rows = "".join(map(entity_row, context.entities)), "".join(map(relationship_row, context.relationships))
    assert context.tables == f"{REPORTS}{reports}{ENTITIES}{rows[0]}{RELATIONSHIPS}{rows[1]}"
    assert context.sources == SOURCES + "".join(map(chunk_text, context.chunks))


def test_parts_have_15_35_and_50_percent_of_the_tokens_and_relationships_grow_by_those_of_an_entity(graph):
    selected = select(graph, "ADA", "BEN", "IDA")
    whole = context_of(graph, selected)
    by_ada = rank_relationships(graph, selected[:1])
    kinds = set()
    for max_tokens in range(20, 700, 7):
        context = context_of(graph, selected, max_tokens)
        for_reports, for_chunks = int(0.15 * max_tokens), int(0.5 * max_tokens)
        left = max_tokens - for_reports - for_chunks
        for rows, all_rows, head, text, most in [
            (context.communities, whole.communities, REPORTS, lambda it: f"{graph.reports[it].text}\n\n", for_reports),
            (context.chunks, whole.chunks, SOURCES, chunk_text, for_chunks),
            (context.entities, whole.entities, ENTITIES, entity_row, left),
        ]:
            assert rows == all_rows[: len(rows)]
            assert not rows or tokens(head, map(text, rows)) <= most
            assert len(rows) == len(all_rows) or tokens(head, map(text, all_rows[: len(rows) + 1])) > most
        parts = [(ENTITIES, entity_row, context.entities), (RELATIONSHIPS, relationship_row, context.relationships)]
        assert sum(count_tokens(head + "".join(map(text, rows))) for head, text, rows in parts if rows) <= left
        kinds.add(tuple(numbers(context.relationships)))
    assert {(), tuple(numbers(by_ada)), tuple(numbers(whole.relationships))} <= kinds
    assert context_of(graph, selected, 20).tables == ""


# --- the calls ---

QUESTION = "Who knows Cleo?"
CORPUS = [
    {"id": "harbour", "title": "Harbour", "text": "Ada knows Ben. Ben knows Cleo."},
    {"id": "market", "title": "Market", "text": "Cleo knows Ada. Ben knows Cleo. Dora knows Cleo."},
    {"id": "mill", "title": "Mill", "text": "Gus knows Hal."},
]
KINDS = {
    "You read reports": "map",
    "You answer a question about a whole": "reduce",
    "You turn a text": "extraction",
    "You are given descriptions": "summary",
    "You report on": "report",
    "You answer a question from data": "answer",
}
# Cleo is described in two texts, as are Ada and Ben; "Ben knows Cleo." is said the same way twice.
CALLS = ["extraction"] * 3 + ["gleaning"] * 3 + ["summary"] * 3 + ["report"]
NOTHING = json.dumps({"entities": [], "relationships": []})


class Reader:
    """Finds "Ada knows Ben." in texts, and says something simple where it is asked for text.

    Attributes:
        instead: Replies in place of these, by the kind of call, each used once, in order.
        kinds: The kinds of the calls that it got.
        calls: Their messages.
    """

    def __init__(self, **instead):
        self.instead = instead
        self.kinds = []
        self.calls = []

    def __call__(self, messages):
        kind = next(kind for begin, kind in KINDS.items() if messages[0].text.startswith(begin))
        if any(message.text == AGAIN for message in messages):
            kind = "gleaning"
        self.kinds.append(kind)
        self.calls.append(messages)
        waiting = self.instead.get(kind)
        return waiting.pop(0) if waiting else REPLIES[kind](messages[1].text)


def extract(text):
    pairs = re.findall(r"(\w+) knows (\w+)", text)
    names = dict.fromkeys(name for pair in pairs for name in pair)
    entities = [{"name": name, "type": "person", "description": f"{name}, {len(text)}."} for name in names]
    relationships = [{"source": a, "target": b, "description": f"{a} knows {b}.", "strength": 5} for a, b in pairs]
    return json.dumps({"entities": entities, "relationships": relationships})


def report(tables):
    names = re.findall(r"^\d+\|(\w+)\|[^|]*\|\d+$", tables, re.MULTILINE)
    finding = {"summary": "They meet.", "explanation": "Often."}
    whole = {"title": " and ".join(names), "summary": f"{len(names)} people.", "rating": 4, "findings": [finding]}
    return f"```json\n{json.dumps(whole)}\n```"


REPLIES = {
    "extraction": extract,
    "gleaning": lambda _: NOTHING,
    "summary": lambda text: f"Summary of {text.splitlines()[1]}.",
    "report": report,
    "answer": lambda _: "Ben [harbour:0]",
    "map": lambda _: json.dumps({"points": POINTS}),
    "reduce": lambda _: "Ben, by all reports.",
}
POINTS = [{"description": f"Point {score}.", "score": score} for score in (0, 30, 90, 500)]


@pytest.fixture(name="lab_of")
def _lab_of(make_index, tmp_path):
    """A function that returns a lab whose reader a reader plays; the calls are kept from one lab to the next."""
    return lambda reader, documents=CORPUS: make_lab(make_index(documents), reader, tmp_path / "kept", concurrency=1)


@pytest.fixture(name="ask_of")
def _ask_of(lab_of):
    """A function that asks a question of a reader; it returns the answer, notes by title and the trace."""

    def ask_of(reader, documents=CORPUS, question=QUESTION):
        answer, session = ask(GraphRAG(), lab_of(reader, documents), question)
        return answer.text, {note["title"]: note["lines"] for note in session.notes}, session.trace

    return ask_of


def build(lab):
    return build_graph(Session(lab))


def test_every_call_of_the_preparation_in_order(lab_of):
    lab = lab_of(reader := Reader())
    graph = build(lab)
    assert reader.kinds == CALLS
    for number, chunk in enumerate(lab.chunks):
        first, again = reader.calls[number], reader.calls[3 + number]
        assert chunk.text in first[1].text
        assert again[:2] == first  # in the same conversation
        assert Extraction.model_validate_json(again[2].text) == Extraction.model_validate_json(extract(first[1].text))
    assert [messages[1].text.splitlines()[1] for messages in reader.calls[6:9]] == ["ADA", "BEN", "CLEO"]
    tables = reader.calls[9][1].text
    assert all(f"|{name}|" in tables for name in ("ADA", "BEN", "CLEO", "DORA"))
    assert "GUS" not in tables  # another component

    assert [entity.title for entity in graph.entities] == ["ADA", "BEN", "CLEO", "DORA", "GUS", "HAL"]
    assert graph.entities[2].description == "Summary of CLEO."
    assert graph.entities[2].chunk_ids == ("harbour:0", "market:0")
    by_ends = {(each.source, each.target): (each.weight, each.description) for each in graph.relationships}
    assert by_ends["BEN", "CLEO"] == (10, "Ben knows Cleo.")
    ((community, report),) = graph.reports.items()
    assert report.text == "# BEN and CLEO and ADA and DORA\n\n4 people.\n\n## They meet.\n\nOften."
    assert community.members == ("ADA", "BEN", "CLEO", "DORA")


def test_a_changed_chunk_does_not_change_reports_on_others(lab_of):
    others = {"a": "Ada knows Ben. Ben knows Cleo. Cleo knows Ada.", "b": "Cleo knows Dora."}
    build(lab_of(reader := Reader(), {"d": "Gus knows Hal."} | others))
    assert "report" in reader.kinds
    build(lab_of(reader := Reader(), {"0": "Gus knows Hal well."} | others))  # all numbers are others
    assert reader.kinds == ["extraction", "gleaning"]


@pytest.mark.parametrize(("kind", "gleanings", "reports"), [("extraction", 2, 1), ("report", 3, 0)])
def test_what_has_no_usable_reply_is_left_out(ask_of, kind, gleanings, reports):
    text, notes, _ = ask_of(reader := Reader(**{kind: ["", '{"entities": 5}', '{"title": "x"}']}))
    assert (text, reader.kinds.count("gleaning")) == ("Ben [harbour:0]", gleanings)
    assert len(notes["Communities used"]) == reports


def test_a_second_reading_adds_to_the_first_which_is_left_if_it_is_unusable(lab_of):
    more = extract("Ida knows Ada. Ada knows Ben.")
    graph = build(lab_of(Reader(gleaning=["?", "?", "?", more])))
    weights = {(each.source, each.target): each.weight for each in graph.relationships}
    assert (weights["IDA", "ADA"], weights["ADA", "BEN"]) == (5, 10)
    ida = next(entity for entity in graph.entities if entity.title == "IDA")
    assert ida.chunk_ids == ("market:0",)


def test_descriptions_are_put_into_one_within_the_tokens_of_a_call(lab_of, merged, monkeypatch):
    texts = tuple(f"Fact {letter} is told here." for letter in "abcdef")
    monkeypatch.setattr(building, "MAX_DESCRIPTIONS_TOKENS", 3 * count_tokens(texts[0]))
    ben, ida = replace(merged[0][1], descriptions=texts), replace(merged[0][2], descriptions=texts[:1])
    reader = Reader(summary=["Fact x is told here.", "Fact y is told here.", "The end."])
    described, alone = building.summarise(Session(lab_of(reader)), [ben, ida], "")
    assert (described.descriptions, alone) == (("The end.",), ida)  # one description takes no call
    shown = [re.findall(r"Fact (.) is", messages[1].text) for messages in reader.calls]
    assert shown == [["a", "b", "c"], ["x", "d", "e"], ["y", "f"]]  # three at a time; later two beside one
    assert "<names-1>\nBEN\n" in reader.calls[0][1].text


def test_the_context_of_local_search(lab_of, ask_of):
    text, notes, (retrieved, tables_record) = ask_of(reader := Reader())
    assert (text, reader.kinds) == ("Ben [harbour:0]", [*CALLS, "answer"])
    prompt = reader.calls[-1][1].text
    assert prompt.startswith(f"{QUESTION}\n\n<data-1>\n")
    parts = ["Reports\n\n# BEN and CLEO", "Entities\nid|entity|", "\nRelationships\nid|source|", "\nSources\n\n["]
    places = [prompt.index(part) for part in parts]
    assert places == sorted(places)
    assert retrieved["retrieved_tokens"] == sum(chunk.tokens for chunk in lab_of(reader).chunks)
    tables = prompt[places[0] : prompt.index("\nSources\n\n[")]
    assert (tables_record["tool"], tables_record["chunk_ids"]) == ("graph_context", [])
    assert tables_record["retrieved_tokens"] == pytest.approx(count_tokens(tables), abs=2)
    assert notes["Communities used"] == ["BEN and CLEO and ADA and DORA (level 0, rated 4)"]


def test_entities_are_selected_by_similarity(ask_of, monkeypatch):
    monkeypatch.setattr(graphrag, "_SELECTED", 1)
    _, notes, trace = ask_of(Reader(), question="Hal, the miller")
    assert notes["Entities selected"] == ["HAL (PERSON)"]
    assert trace[0]["chunk_ids"] == ["mill:0"]
    assert notes["Communities used"] == []  # no report on his component


# --- global search ---


def graph_of_reports(ratings, chunks=()):
    """Return a graph with a community of one entity for each rating; its report has about 20 tokens."""
    names = [f"E{number}" for number in range(len(ratings))]
    chunk_ids = [tuple(f"c{place}" for place in range(count)) for count in chunks or [1] * len(ratings)]
    entities = [
        Entity(number, (name,), ids, name, "PERSON", 1)
        for number, (name, ids) in enumerate(zip(names, chunk_ids, strict=True))
    ]
    graph = KnowledgeGraph(entities, [])
    for name, rating in zip(names, ratings, strict=True):
        finding = {"summary": f"{name} is here.", "explanation": "It is so."}
        report = Report(title=f"About {name}", summary="s", rating=rating, findings=[finding])
        graph.reports[Community(0, (name,))] = report
    return graph


def test_batches_hold_all_reports_once_and_those_on_most_chunks_come_first():
    graph = graph_of_reports([5, 9, 1, 7, 3, 8], [1, 1, 4, 1, 1, 2])
    (whole,) = make_batches(graph, 10_000)
    assert re.findall(r"# About (E\d)", whole) == ["E2", "E5", "E1", "E3", "E0", "E4"]
    batches = list(make_batches(graph, 30))
    assert 1 < len(batches) < 6
    assert sorted(re.findall(r"# About (E\d)", " ".join(batches))) == [f"E{number}" for number in range(6)]
    assert list(make_batches(graph, 30)) == batches
    assert len(list(make_batches(graph, 1))) == 6  # a report that does not fit is a batch by itself
    deep = graph_of_reports([5])
    deep.reports = {Community(3, ("E0",)): next(iter(deep.reports.values()))}
    assert list(make_batches(deep, 10_000)) == []


def test_global_search_answers_from_the_best_points_of_all_reports(lab_of):
    answer, session = ask(GraphRAGGlobal(), lab_of(reader := Reader()), QUESTION)
    assert answer.text == "Ben, by all reports."
    assert reader.kinds[-2:] == ["map", "reduce"]
    shown = reader.calls[-1][1].text
    assert re.findall(r"Point \d+", shown) == ["Point 90", "Point 30"]  # 0 is of no use, 500 is no score
    assert [note["lines"] for note in session.notes] == [["- (90) Point 90.\n", "- (30) Point 30.\n"]]
    (reports,) = session.trace
    assert (reports["tool"], reports["chunk_ids"], reports["retrieved_tokens"] > 0) == ("reports", [], True)


def test_global_search_says_without_a_call_that_no_report_bears_on_the_question(lab_of):
    reader = Reader(map=['{"points": []}'])
    answer, _ = ask(GraphRAGGlobal(), lab_of(reader), QUESTION)
    assert answer.text == "The corpus does not hold the answer."
    assert reader.kinds[-1] == "map"
