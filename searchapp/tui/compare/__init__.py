"""The screen that compares runs."""
