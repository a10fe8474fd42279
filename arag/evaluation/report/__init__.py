"""The report of runs: figures, tables, plots and pages."""
