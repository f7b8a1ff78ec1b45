"""One reader or writer a file format; no task logic."""
