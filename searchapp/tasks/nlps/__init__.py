"""Natural language premise selection (TextGraphs-16, 2022)."""
