"""The command line of experiments: `arag eval run`, ..."""

from __future__ import annotations

import typer
from rich.table import Table

from arag.evaluation.cli.making import make
from arag.evaluation.cli.reporting import failures, report
from arag.evaluation.cli.running import run
from arag.options import CommandGroup
from arag.terminal import out

__all__ = ["eval_app"]

eval_app = typer.Typer(
    cls=CommandGroup, help="Compare methods on questions: the paper's experiments.", no_args_is_help=True
)


@eval_app.command()
def methods() -> None:
    """List the methods that can be compared."""
    from arag.evaluation.methods import GROUPS, all_methods
    from arag.evaluation.plan import describe_method

    table = Table("name", "name in the paper", "description", box=None)
    for name, kind in all_methods().items():
        table.add_row(name, kind.title, describe_method(kind()).description)
    for group, names in GROUPS.items():
        table.add_row(group, "", ", ".join(names))
    out.print(table)


for command in (make, run, failures, report):
    eval_app.command()(command)
