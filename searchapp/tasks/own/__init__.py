"""Tasks described in TOML: own tasks, variants, and starter files."""
