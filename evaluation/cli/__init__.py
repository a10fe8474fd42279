"""The command line of experiments: `arag eval run`, ..."""

from __future__ import annotations

import typer
from rich.table import Table

from arag.evaluation.cli.failing import failures
from arag.evaluation.cli.reporting import report
from arag.evaluation.cli.running import ablate, run, scale
from arag.terminal import out, warn

__all__ = ["eval_app"]

eval_app = typer.Typer(help="Compare methods on questions: the paper's experiments.", no_args_is_help=True)


@eval_app.command()
def methods() -> None:
    """List the methods that can be compared."""
    from arag.evaluation.methods import all_methods

    table = Table(box=None)
    for column in ("name", "name in the paper", "description"):
        table.add_column(column)
    found = all_methods().values()
    for method in found:
        table.add_row(method.name, method.title, method.description)
    out.print(table)
    for method in found:
        if (missing := method.missing()) is not None:
            warn(f"{method.name} cannot run: {missing}")


for command in (run, ablate, scale, failures, report):
    eval_app.command()(command)
