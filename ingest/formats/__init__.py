"""The formats that are read: a module for each, listed in `arag.ingest.registry`."""
