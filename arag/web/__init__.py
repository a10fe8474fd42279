"""Pages for a browser on this machine: search, read, ask."""
