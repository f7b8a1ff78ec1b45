"""Run directories: written whole, read back, verified, exported."""
