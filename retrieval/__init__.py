"""The index and its three retrieval functions, as plain functions and as LangChain tools."""
