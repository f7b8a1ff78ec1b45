"""Relation prediction for questions over Wikidata: the gold is a flat list of properties."""

from __future__ import annotations

from searchapp.formats.smart_relations import read_wikidata_vocabulary
from searchapp.tasks.smart_relations import KnowledgeBase, task

TASK = task(KnowledgeBase("wikidata", "Wikidata", read_wikidata_vocabulary, slots=False))
