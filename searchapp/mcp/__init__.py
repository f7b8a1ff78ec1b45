"""Tools for language models, served with the Model Context Protocol (extra `mcp`)."""
