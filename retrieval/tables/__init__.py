"""Documents and chunks in SQL tables: what the stores in SQLite and in PostgreSQL share."""
