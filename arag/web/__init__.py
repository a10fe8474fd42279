"""A page for a browser on this machine: search, read, ask."""
