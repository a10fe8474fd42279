"""The results of a run: figures, tables, plots and pages."""
