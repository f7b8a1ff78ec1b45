"""Topics, rankings and documents as a person reads them, in a run or as a recipe ranks now."""
