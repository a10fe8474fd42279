"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

IndexOption = Annotated[Path, typer.Option("--index", "-i", metavar="DIR", help="Index folder.")]
