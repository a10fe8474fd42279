"""The agent: state, prompts, nodes, the graph, and the models it can run on."""
