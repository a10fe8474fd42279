"""Finds chunks: by keywords, by meaning, by id."""
