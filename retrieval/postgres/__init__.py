"""An index in PostgreSQL, behind the ports of `arag.retrieval.backend`."""
