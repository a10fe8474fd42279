"""A run as one page: its steps, what each tool found, the answer and its sources."""
