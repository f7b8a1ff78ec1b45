"""The screen with all settings."""
