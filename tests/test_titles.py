"""A search by meaning puts in front the documents whose titles stand in the query, or nearly do, in any language."""

from __future__ import annotations

import pytest

from arag.ingest.pipeline import ingest
from fakes import HashEmbeddings

TITLES = {
    "en": "The Founding of the Vellin Glassworks",
    "name": "Ada Fenn",
    "city": "Los Angeles",
    "zh": "凡林灯塔的建造历史",
    "zh-short": "海港博物馆",
    "zh-report": "二零二三年度财务报告",
    "ja": "ヴェリン灯台の歴史",
    "ko": "벨린 등대의 역사",
    "de": "Die Geschichte des Leuchtturms von Wellin",
    "es": "La construcción del faro de Velín",
    "fr": "L’histoire du phare de Vellin",
    "ru": "История маяка Веллин",
    "el": "Η ιστορία του φάρου",
    "ar": "تاريخ منارة فيلين",
    "hi": "वेलिन प्रकाशस्तंभ का इतिहास",
    "vi": "Lịch sử ngọn hải đăng Vellin",
    "word": "Jahre",
    "zh-word": "历史",
}


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    """Documents whose titles alone tell what they are about, and others that hold all the words of the queries."""
    titled = [{"id": i, "title": title, "text": "0 1 2."} for i, title in TITLES.items()]
    others = [{"id": f"other{n}", "text": " ".join(query for _, query in FOUND)} for n in range(3)]
    place = tmp_path_factory.mktemp("titles") / "index"
    with ingest([*titled, *others], place, embedder=HashEmbeddings()) as index:
        yield index


FOUND = [
    ("en", "When was the founding of the Vellin glassworks?"),
    ("en", "founding of the glassworks at Vellin"),
    ("name", "What did Ada Fenn build?"),
    ("city", "How many people live in Los Angeles?"),
    ("zh", "请介绍一下凡林灯塔的建造历史"),
    ("zh", "凡林灯塔建造历史是什么？"),
    ("zh-short", "海港博物馆是哪一年开放的？"),
    ("zh-report", "二零二三年度的财务报告里净利润是多少？"),
    ("ja", "ヴェリン灯台の歴史について教えてください"),
    ("ko", "벨린 등대의 역사는 무엇입니까?"),
    ("de", "Was steht in der Geschichte des Leuchtturms von Wellin?"),
    ("de", "Geschichte Leuchtturm Wellin"),
    ("es", "construcción faro Velín"),
    ("fr", "l'histoire du phare de Vellin"),
    ("ru", "Расскажи историю маяка Веллина"),
    ("el", "Ποια είναι η ιστορία του φάρου;"),
    ("ar", "ما هو تاريخ منارة فيلين؟"),
    ("hi", "वेलिन प्रकाशस्तंभ का इतिहास क्या है?"),
    ("vi", "Lịch sử ngọn hải đăng Vellin là gì?"),
]


@pytest.mark.parametrize(("document", "query"), FOUND)
def test_a_document_whose_title_the_query_names_comes_first(index, document, query):
    hits = index.semantic_search(query, 1, titles_first=True).hits
    assert [hit.chunk_id for hit in hits][:1] == [f"{document}:0"]
    assert hits[-1].chunk_id.startswith("other")


@pytest.mark.parametrize(
    "query",
    ["Wie viele Jahre stand der Turm?", "他的历史是什么？", "Who wrote of the Vellin?", "die von der Insel des Turms"],
)
def test_a_title_of_one_common_word_or_of_other_words_does_not(index, query):
    hits = index.semantic_search(query, 1, titles_first=True).hits
    assert [hit.chunk_id.startswith("other") for hit in hits] == [True]
