"""Relation prediction for questions over DBpedia: the gold has slots of interchangeable relations."""

from __future__ import annotations

from searchapp.formats.smart_relations import read_dbpedia_vocabulary
from searchapp.tasks.smart_relations import KnowledgeBase, task

TASK = task(KnowledgeBase("dbpedia", "DBpedia", read_dbpedia_vocabulary, slots=True))
