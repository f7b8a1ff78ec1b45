"""Run directories: write, read and verify."""
