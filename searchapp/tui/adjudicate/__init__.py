"""Adjudication: the screen and the prompts."""
