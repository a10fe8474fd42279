"""The agent: its state, prompts, nodes and graph."""

DEFAULT_MAX_STEPS, MAX_STEPS = 15, 100  # model calls of a run before an answer is forced
