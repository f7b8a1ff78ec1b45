"""Tasks described in TOML: a user's own, variants of other tasks, and files to start from."""
