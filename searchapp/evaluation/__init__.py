"""Measures of the field, tests of significance, likeness of rankings; official scorers stand in `searchapp.tasks`."""
