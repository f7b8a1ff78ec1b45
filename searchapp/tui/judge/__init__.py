"""Judging: the full-screen interface and the prompts."""
