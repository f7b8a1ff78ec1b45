"""The full-screen interface for comparing runs: differences by topic, and two rankings side by side."""
