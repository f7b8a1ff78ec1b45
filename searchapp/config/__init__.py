"""Declarations of settings (`settings`) and their values from all sources (`resolution`)."""
