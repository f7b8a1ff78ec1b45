"""HTML reports of the results of use cases; nothing is computed here."""
