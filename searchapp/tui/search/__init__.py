"""The full-screen interface for searching."""
