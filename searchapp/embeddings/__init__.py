"""Embeddings of texts: from files, from a command, or from an HTTP endpoint."""
