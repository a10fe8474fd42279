"""The index and its three retrieval functions, as plain functions and as LangChain tools."""

DEFAULT_TOP_K, MAX_RESULTS = 5, 20  # chunks that a search of the tools shows
MAX_CHARACTERS = 2_000  # of a keyword, query, id or pattern: more than an id has, and than the default embedder reads
