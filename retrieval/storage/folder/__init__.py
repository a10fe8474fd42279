"""An index in a folder: SQLite for documents, full chunks and vectors, a keyword file, and Chroma for sentences."""
