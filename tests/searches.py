"""Documents and searches for comparing two indexes that should not differ."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from arag import make_tools

WORDS = [
    "gull",
    "gulls",
    "Gull",
    "reef",
    "tide",
    "naïve",
    "naive",
    "the",
    "light house",
    "lighthouse",
    "海",
    "海鸥",
    "a-b",
    "x",
]
SENTENCES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(lambda words: " ".join(words) + ".")
TITLES = st.sampled_from(["", "Gull", "Reef", "Gull (bird)", "The tide"])
DOCUMENTS = st.lists(st.tuples(TITLES, st.lists(SENTENCES, min_size=1, max_size=4)), min_size=1, max_size=6)
KEYWORDS = st.lists(
    st.sampled_from([*WORDS, "gul", "tides", "ull", "reef.", "海鸟", "lighthose", "zzz", "e"]), min_size=1, max_size=3
)


def make_records(documents):
    return [{"id": f"d{i}", "title": t, "text": " ".join(s), "n": i} for i, (t, s) in enumerate(documents)]


def everything(index, keywords, ids):
    """Return all that an index says; names of places, sizes and rounding aside."""
    text = " ".join(keywords)
    info = index.info()
    found = {
        "counts": (info.documents, info.chunks, info.sentences, info.tokens),
        "keyword": index.keyword_search(keywords, 2),
        "coverage": index.keyword_search(keywords, 2, by_coverage=True),
        "within": index.keyword_search(keywords, 2, within=ids[:2], by_coverage=True),
        "semantic": rounded(index.semantic_search(text, 2, subjects=True)),
        "semantic_within": rounded(index.semantic_search(text, 2, within=ids[:2])),
        "read": index.read([*ids, *(f"{i}:0" for i in ids)], 1),
        "documents": [index.document(i) and replace(index.document(i), source="") for i in ids],
        "names": index.find_documents("d"),
        "chunks": list(index.chunk_ids()),
        "rated": {k: sorted(v) for k, v in index.rate_sentences(text, [f"{i}:0" for i in ids]).items()},
    }
    tools = {tool.name: tool for tool in make_tools(index)}
    calls = [
        ("keyword_search", {"keywords": keywords}),
        ("keyword_search", {"keywords": keywords, "within": "d1"}),
        ("semantic_search", {"queries": [text]}),
        ("chunk_read", {"chunk_ids": [f"{i}:0" for i in ids]}),
        ("chunk_read", {"chunk_ids": [f"{i}:0" for i in ids], "about": text}),
    ]
    return found | {f"{i} {name}": tools[name].invoke(arguments) for i, (name, arguments) in enumerate(calls)}


class Near(float):
    """A similarity, which may be computed in another order elsewhere."""

    def __eq__(self, other):
        return abs(self - other) < 1e-4

    __hash__ = None


def rounded(results):
    hits = [
        replace(
            hit,
            score=Near(hit.score),
            snippets=tuple(
                replace(
                    snippet,
                    sentences=tuple(
                        replace(s, similarity=None if s.similarity is None else Near(s.similarity))
                        for s in snippet.sentences
                    ),
                )
                for snippet in hit.snippets
            ),
        )
        for hit in results.hits
    ]
    return replace(results, hits=tuple(hits))
