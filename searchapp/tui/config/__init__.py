"""The screen of settings."""
