"""Topics, rankings and documents for display, in a run or as a recipe ranks now."""
