"""An index in PostgreSQL, with what `arag.retrieval.storage.contract` asks for."""
