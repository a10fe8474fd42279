"""The operating system: worker processes and files."""
