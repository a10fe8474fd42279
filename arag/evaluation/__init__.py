"""The paper's experiments: data, methods, runs, scores, reports."""
