"""Text of documents and models: how it is compared, and how it is shown safely."""
