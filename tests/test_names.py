"""What a person would search for is found, and what is shown stands under its own name."""

import pytest

from arag import ingest, make_tools
from fakes import HashEmbeddings, write_corpus

FILLER = " ".join(f"Nothing of note happened in week {week} on the islands." for week in range(40))
SECTIONS = "\n\n".join(
    f"## {project}\n\n{FILLER}\n\n### Reserve\n\nThe reserve is {reserve}."
    for project, reserve in [("Basin", 40), ("Mole", 70)]
)
FILES = {
    "energy_2024_mwh.csv": "Month,Use\nJanuary,120\nFebruary,98\nMarch,77\nApril,60\n",
    "sales/supplier_list.csv": "Name,City\nKestrwyn,Oslo\nBlom,Bergen\n",
    "合同汇总.txt": "水泵在仓库里。价格是一百元。",
    "harbour.md": f"# Harbour\n\n{SECTIONS}",
}


@pytest.fixture(scope="module")
def search(tmp_path_factory):
    folder = tmp_path_factory.mktemp("names")
    corpus = write_corpus(folder / "corpus", FILES)
    with ingest(corpus, folder / "index", embedder=HashEmbeddings()) as index:
        keyword_search, semantic_search, _ = make_tools(index)
        yield {
            "keyword": lambda *words: keyword_search.invoke({"keywords": [*words]}),
            "semantic": lambda query: semantic_search.invoke({"queries": [query]}),
        }


@pytest.mark.parametrize(
    ("name", "chunk_id"),
    [
        ("energy", "energy_2024_mwh.csv:0"),
        ("MWh", "energy_2024_mwh.csv:0"),
        ("the supplier list", "sales/supplier_list.csv:0"),
        ("合同", "合同汇总.txt:0"),
    ],
)
def test_a_document_is_found_by_words_that_only_its_name_has(search, name, chunk_id):
    assert search["keyword"](name).startswith(f"{name}: only in the name of [{chunk_id}]. All:\n\n[{chunk_id}] ")
    assert search["semantic"](name).startswith(f"The nearest, by similarity:\n\n[{chunk_id}] ")


def test_of_a_table_found_by_its_name_the_header_and_the_first_rows_are_shown(search):
    rows = "energy 2024 mwh: Month | Use\nMonth: January | Use: 120\nMonth: February | Use: 98"
    assert rows in search["keyword"]("energy")


def test_each_sentence_stands_under_its_own_headings(search):
    found = search["keyword"]("The reserve")
    assert "Basin > Reserve: The reserve is 40." in found
    assert "Mole > Reserve: The reserve is 70." in found


def test_a_query_in_a_script_that_the_embedder_does_not_know_is_pointed_to_keywords(example_index):
    _, semantic_search, _ = make_tools(example_index)
    found = semantic_search.invoke({"queries": ["灯塔在哪里？", "Where is the Vellin Light? ạ ế"]})
    first, _, second = found.partition("\n\n")
    assert first.startswith("灯塔在哪里？: The vectors know Latin letters only: use keyword_search")
    assert second.startswith("Where is the Vellin Light? ạ ế: The nearest, by similarity:")
