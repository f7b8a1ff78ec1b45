"""The interfaces for people at a terminal: screens and prompts, which call the same functions as the command line."""
