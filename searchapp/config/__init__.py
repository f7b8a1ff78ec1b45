"""The settings: which there are (`declared`), the files that hold some (`files`), and which value holds (`sources`)."""
