"""Answer type prediction for questions over DBpedia and Wikidata (SMART 2020 and 2021)."""
