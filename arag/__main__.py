"""Runs the command line as `python -m arag`."""

from arag.cli import main

if __name__ == "__main__":
    main()
