"""What a run came to: its figures, tables, plots and pages."""
