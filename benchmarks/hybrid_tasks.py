"""Task files with embeddings of hashed words: recipes of a shared task, and an own task with a field of vectors."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from hashed_embeddings import DIMENSIONS
from numpy.typing import NDArray

from searchapp import resources
from searchapp.files import digest_text
from searchapp.formats.records import json_line
from searchapp.ranking.learning import read_model

COMMAND = [sys.executable, str(Path(__file__).with_name("hashed_embeddings.py").resolve())]

EMBEDDINGS = f"""
[embeddings]
command = {json.dumps(COMMAND)}
dimensions = {DIMENSIONS}
file = "%(task)s.npz"
"""

SIGNALS = """
  { signal = "direct", template = "bm25" },
  { signal = "neighbours", template = "similar", k = 50, power = 3.0 },
  { signal = "vectors", file = "%(task)s.npz" },"""

# Names in % are those of the shared task, of the split that is ranked, and of the split with the training topics.
VARIANT = f"""extends = "%(task)s"
{EMBEDDINGS}
[recipes.hybrid]
template = "bm25"
signals = [{SIGNALS}
]
fusion = {{ method = "rrf" }}
"""

OWN = f"""name = "knn-%(task)s"
depth = 500
mapping = "mapping.json"
training_split = "%(training)s"

[documents]
file = "corpus.jsonl"
id = "_id"
fields = ["vector"]

[topics.%(split)s]
file = "queries.jsonl"
id = "_id"
fields = ["vector"]
gold = {{ file = "qrels/%(split)s.tsv", topic = "query-id", document = "corpus-id", grade = "score" }}

[topics.%(training)s]
file = "queries.jsonl"
id = "_id"
fields = ["vector"]
gold = {{ file = "qrels/%(training)s.tsv", topic = "query-id", document = "corpus-id", grade = "score" }}
{EMBEDDINGS}
[recipes.knn]
template = "knn.json"

[recipes.hybrid]
template = "bm25"
signals = [{SIGNALS}
  {{ signal = "direct", name = "nearest", template = "knn.json" }},
]
fusion = {{ method = "sum" }}
"""

FIELD = {
    "type": "dense_vector",
    "element_type": "byte",
    "dims": DIMENSIONS,
    "similarity": "cosine",
    "index_options": {"type": "flat"},
}
NEAREST = {
    "knn": {
        "field": "vector",
        "query_vector": "{{topic.vector}}",
        "k": "{{depth}}",
        "num_candidates": "{{depth}}",
    }
}


def write_variant(folder: Path, names: Mapping[str, str]) -> Path:
    """Write the file that adds the recipe `hybrid` to a shared task into a folder; return it."""
    file = folder / f"{names['task']}.toml"
    file.write_text(VARIANT % names, encoding="utf-8")
    return file


def write_own(folder: Path, embeddings: Path, names: Mapping[str, str]) -> Path:
    """Make a folder in the format of BEIR an own task whose texts have the field `vector`; return its file.

    Args:
        folder: a folder of `searchapp tasks export`
        embeddings: the file of `searchapp embed` with the vectors of its texts
        names: of the task and its splits
    """
    stored = read_model(embeddings)
    documents = dict(zip(stored.header["documents"], stored.arrays["documents"], strict=True))
    topics = dict(zip(stored.header["topics"], stored.arrays["topics"], strict=True))
    _add_vectors(folder / "corpus.jsonl", lambda row: documents[row["_id"]])
    _add_vectors(folder / "queries.jsonl", lambda row: topics[digest_text(row["text"])])
    mapping = resources.index_mapping("text")
    mapping["mappings"]["properties"]["vector"] = FIELD
    (folder / "mapping.json").write_text(json.dumps(mapping), encoding="utf-8")
    (folder / "knn.json").write_text(json.dumps(NEAREST), encoding="utf-8")
    file = folder / f"knn-{names['task']}.toml"
    file.write_text(OWN % names, encoding="utf-8")
    return file


def _add_vectors(file: Path, vector: Callable[[dict[str, Any]], NDArray[np.int8]]) -> None:
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").split("\n") if line]
    with file.open("wb") as written:
        for row in rows:
            written.write(json_line({**row, "vector": vector(row).tolist()}))
