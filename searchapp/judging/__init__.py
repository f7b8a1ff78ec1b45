"""Judgments: an append-only log of what people said of documents, and what follows from it."""
