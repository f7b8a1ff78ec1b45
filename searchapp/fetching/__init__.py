"""Fetches the official files of the shared tasks: where they lie and what is there (`sources`), `download`, `fetch`."""
