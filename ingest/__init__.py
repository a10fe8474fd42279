"""Ingestion: reading, sentence splitting, chunking, and the pipeline that writes an index."""
