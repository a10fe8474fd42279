"""The agent: its state, prompts, nodes and graph."""
