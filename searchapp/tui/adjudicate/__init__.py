"""Deciding between annotators: the full-screen interface and the prompts."""
