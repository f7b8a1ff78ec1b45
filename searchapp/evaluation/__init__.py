"""Measures: the organisers' own, one module a scorer, and the field's, by ir-measures."""
