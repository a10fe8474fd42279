"""Makes questions with gold answers from a corpus, so that methods can be compared on your own documents."""
