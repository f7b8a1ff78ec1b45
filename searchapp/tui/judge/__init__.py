"""Judging: the screen and the prompts."""
