"""Fetches the official files of the shared tasks: where they lie, the download, the unpacking, what is there."""
