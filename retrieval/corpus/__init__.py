"""Functions over a whole corpus: complete and counted, beside the paper's three searches."""
