"""A name that Chroma's process needs, in a module that imports nothing, so that the process starts sooner."""

CHROMA_DATABASE = "chroma.sqlite3"
