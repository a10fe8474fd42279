"""The report on runs: figures, tables, plots and pages."""
