"""Embeddings of texts: from files, a command, an HTTP endpoint, or a model in a local folder."""
