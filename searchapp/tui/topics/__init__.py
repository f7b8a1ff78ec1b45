"""The screen with the topics of a run beside their gold."""
