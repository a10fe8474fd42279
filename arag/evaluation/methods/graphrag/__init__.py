"""GraphRAG (Edge et al. 2024): a model turns the corpus into a knowledge graph whose communities it reports on.

Local search answers from what the graph and the corpus hold about the entities nearest to the question; global search
from all reports.
"""

from arag.evaluation.methods.graphrag.global_search import GlobalGraphRAG
from arag.evaluation.methods.graphrag.local import GraphRAG

METHODS = (GraphRAG, GlobalGraphRAG)
