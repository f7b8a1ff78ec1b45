"""Fetch the official files of the shared tasks."""
