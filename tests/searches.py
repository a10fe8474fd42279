"""Documents and searches for comparing two indexes that should not differ."""

from __future__ import annotations

from dataclasses import replace

import re2
from hypothesis import strategies as st

from arag import make_tools

WORDS = [*"gull gulls Gull reef tide naïve naive nai\u0308ve the lighthouse 海 海鸥 a-b x Чайковский".split()]
WORDS += ["light house", "light - house", "light houses"]
SENTENCES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(lambda words: " ".join(words) + ".")
TITLES = st.sampled_from(["", "Gull", "Reef", "Gull (bird)", "The tide"])
DOCUMENTS = st.lists(st.tuples(TITLES, st.lists(SENTENCES, min_size=1, max_size=4)), min_size=1, max_size=6)
MISSPELT = ["gul", "tides", "ull", "reef.", "海鸟", "lighthose", "Чайковскии", "zzz", "e"]
APART = ["tide gull", "reef of gulls", "light-house reef", "naive Gull house"]
KEYWORDS = st.lists(st.sampled_from([*WORDS, *MISSPELT, *APART]), min_size=1, max_size=3)


def make_records(documents):
    """Return documents as records, with a number as metadata."""
    return [{"id": f"d{i}", "title": t, "text": " ".join(s), "n": i} for i, (t, s) in enumerate(documents)]


def everything(index, keywords, ids):
    """Return all that an index says about keywords and documents, which it may hold or not; its place aside."""
    text = " ".join(keywords)
    some = index.limited_to(ids[:2])
    chunk_ids = [f"{i}:0" for i in ids]
    results = {
        "info": replace(index.info(), path="", bytes=0),
        "keyword": index.keyword_search(keywords, 2),
        "coverage": index.keyword_search(keywords, 2, ranking="bm25"),
        "keyword inside": some.keyword_search(keywords, 2, ranking="bm25"),
        "semantic": index.semantic_search(text, 2),
        "titles first": index.semantic_search(text, 2, titles_first=True),
        "semantic inside": some.semantic_search(text, 2),
        "rated": index.rate_sentences(text, chunk_ids),
        "read": index.read([*ids, *chunk_ids, "d"], 1),
        "documents": [found and replace(found, source="") for found in map(index.document, ids)],
        "listed": [document.id for document in index.documents()],
        "names": [index.find_documents(name) for name in ("d", "gull", *ids)],
        "chunks": list(index.chunk_ids()),
        "lines": index.grep(r"^\w*|[a-l]{3}"),
        "lines inside": some.grep("the|gull"),
        "vectors": [(c, positions, vectors.tolist()) for c, positions, vectors in index.sentence_vectors()],
    }
    tools = {tool.name: tool for tool in make_tools(index, names="all")}
    pattern = "|".join(re2.escape(keyword) for keyword in keywords)
    calls = [
        ("keyword_search", {"keywords": keywords}),
        ("keyword_search", {"keywords": keywords, "within": "d1"}),
        ("semantic_search", {"queries": [text]}),
        ("grep", {"pattern": pattern}),
        ("grep", {"pattern": r"(\w)\w+", "within": "d1", "only_match": True}),
        ("list_documents", {"sort": "-n"}),
        ("list_documents", {"within": "gull", "where": {"n": {"$gt": 0}}}),
        ("chunk_read", {"chunk_ids": chunk_ids}),
        ("chunk_read", {"chunk_ids": chunk_ids, "about": text}),
    ]
    return results | {f"{i} {name}": tools[name].invoke(arguments) for i, (name, arguments) in enumerate(calls)}
