"""Shows what the use cases have found, as a page that a browser reads; nothing is computed here."""
