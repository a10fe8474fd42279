"""An index in PostgreSQL, with what `arag.retrieval.storage` asks for."""
