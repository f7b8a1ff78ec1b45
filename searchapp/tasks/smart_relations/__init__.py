"""Relation prediction for questions over DBpedia and Wikidata (SMART 2021)."""
