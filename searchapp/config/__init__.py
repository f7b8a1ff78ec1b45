"""The settings: which there are (`declared`), what they hold (`kinds`), the files that have some (`files`), and which
value holds (`sources`).
"""
