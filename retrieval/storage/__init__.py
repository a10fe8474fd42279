"""Stores an index: the interface, and its two implementations."""
