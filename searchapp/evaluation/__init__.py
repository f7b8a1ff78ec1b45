"""Measures, significance tests and overlap of rankings; official scorers are in `searchapp.tasks`."""
