"""From topics to rankings: query templates, recipes, and the loop that runs them on an engine."""
