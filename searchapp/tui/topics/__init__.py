"""The full-screen interface for walking the topics of a run beside their gold."""
