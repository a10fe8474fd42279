"""What the operating system does for us: worker processes and files."""
