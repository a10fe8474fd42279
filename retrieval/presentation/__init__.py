"""Shows results to a model: chooses hits, builds excerpts, writes text."""
