"""An index in a folder: SQLite for documents and chunks, Chroma for sentence vectors, a file for keywords."""
