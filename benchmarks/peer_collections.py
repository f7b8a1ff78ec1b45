"""The collections of `peers.py`, with equal tokens for all systems.

A collection is a folder of files that are made once and then read by all systems:

- `documents.txt`: a line for each document, with its terms separated by spaces; its id is the line number, from 0;
- `tokens.int32` and `starts.npy`: the same as numbers; document i is `tokens[starts[i]:starts[i + 1]]`;
- `<workload>.txt`: a line for each query, with each term once;
- `collection.json`: counts, the seconds of the analysis of real texts, and `key`, a digest of the sources.

The term of number n is written `wn`, so that systems only split at white space and do not change terms. Documents of
the size `nlps` are the knowledge base in the field `text` of the shipped mapping; its queries are the topics of the dev
split. Other sizes are numbers of synthetic documents. Their lengths and terms are drawn from the distributions of the
knowledge base after Elasticsearch's analyzer `english`, with a fixed seed; a smaller size is the beginning of a larger
one.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

SEED = 20260101
CHUNK = 50_000
"""Documents that are drawn at once."""
SINGLE_QUERIES, BATCH_QUERIES = 200, 1000
NLPS = "nlps"
TOKENS = "tokens.int32"


@dataclass(frozen=True)
class Workload:
    """Queries to a depth, one at a time or as a batch."""

    name: str
    queries: str
    depth: int
    is_batch: bool


SINGLE = (
    Workload("depth 10", "single", 10, is_batch=False),
    Workload("depth 1000", "single", 1000, is_batch=False),
)
WORKLOADS = {
    NLPS: (*SINGLE, Workload("batch", "batch", 500, is_batch=True)),
    "synthetic": (*SINGLE, Workload("batch", "batch", 10, is_batch=True)),
}


def workloads(size: str) -> tuple[Workload, ...]:
    """Return the workloads of a collection of this size."""
    return WORKLOADS[NLPS if size == NLPS else "synthetic"]


@dataclass(frozen=True)
class Collection:
    """The files of a collection."""

    folder: Path

    @property
    def documents(self) -> Path:
        return self.folder / "documents.txt"

    @property
    def facts(self) -> dict[str, Any]:
        """The content of `collection.json`: documents, tokens, terms."""
        facts: dict[str, Any] = json.loads((self.folder / "collection.json").read_text())
        return facts

    def queries_file(self, name: str) -> Path:
        return self.folder / f"{name}.txt"

    def queries(self, name: str) -> list[list[str]]:
        """Return the queries of this name as lists of terms."""
        return [line.split() for line in self.queries_file(name).read_text().splitlines()]

    def token_arrays(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Return the numbers of all tokens, and the start of each document."""
        tokens = np.memmap(self.folder / TOKENS, np.int32, "r")
        return tokens, np.load(self.folder / "starts.npy")


def prepare_collection(folder: Path, data: Path, size: str) -> Collection:
    """Return the collection of a size; make it in `folder` unless it is up to date."""
    collection = Collection(folder)
    key = _key(data)
    file = folder / "collection.json"
    if not file.exists() or collection.facts.get("key") != key:
        folder.mkdir(parents=True, exist_ok=True)
        file.unlink(missing_ok=True)
        facts = _real(collection, data) if size == NLPS else _synthetic(collection, data, int(size))
        file.write_text(json.dumps(facts | {"key": key}))
    return collection


def _key(data: Path) -> str:
    """Return a digest of the sources: the task's files, the analysis and this module."""
    from searchapp import resources
    from searchapp.lucene import analysis

    digest = hashlib.sha256(json.dumps(resources.index_mapping("premises"), sort_keys=True).encode())
    sources = sorted(Path(analysis.__file__).parent.rglob("*.py"))
    for file in (Path(__file__), data / "knowledge_base.json", data / "dev_set.json", *sources):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _real(collection: Collection, data: Path) -> dict[str, Any]:
    """Write the knowledge base and the topics, analyzed like the field `text` of the shipped mapping."""
    from searchapp import resources
    from searchapp.lucene.analysis import AnalysisRegistry

    registry = AnalysisRegistry(resources.index_mapping("premises")["settings"]["analysis"])
    texts = _texts(data)
    topics = [topic["text"] for topic in json.loads((data / "dev_set.json").read_text("utf-8")).values()]
    begin = time.process_time()
    documents = [[term for term, _ in registry.analyzer("statement").terms(text)] for text in texts]
    analyzed = time.process_time()
    queries = [[term for term, _ in registry.analyzer("statement_query").terms(text)] for text in topics]
    done = time.process_time()
    numbers: dict[str, int] = {}
    rows = [[numbers.setdefault(term, len(numbers)) for term in terms] for terms in documents]
    numbered_queries = [
        [numbers[term] for term in dict.fromkeys(terms) if term in numbers] for terms in queries
    ]
    numbered_queries = [query for query in numbered_queries if query]
    lengths = np.array([len(row) for row in rows])
    tokens = np.array([number for row in rows for number in row], np.int32)
    with collection.documents.open("w") as lines:
        _write_lines(lines, tokens, lengths, _names(len(numbers)))
    tokens.tofile(collection.folder / TOKENS)
    facts = _write_starts(collection, [lengths], len(numbers))
    _write_queries(collection, "batch", numbered_queries)
    _write_queries(collection, "single", numbered_queries[:SINGLE_QUERIES])
    return facts | {"analysis s, documents": analyzed - begin, "analysis s, topics": done - analyzed}


def _synthetic(collection: Collection, data: Path, size: int) -> dict[str, Any]:
    from searchapp.lucene.analysis import AnalysisRegistry

    english = AnalysisRegistry({}).analyzer("english")
    documents = [[term for term, _ in english.terms(text)] for text in _texts(data)]
    real_lengths = np.array([len(terms) for terms in documents if terms])
    counts = np.array([count for _, count in Counter(t for terms in documents for t in terms).most_common()])
    cumulative = np.cumsum(counts)
    names = _names(len(counts))
    draw = np.random.default_rng(SEED)
    all_lengths = []
    with collection.documents.open("w") as lines, (collection.folder / TOKENS).open("wb") as numbers:
        for first in range(0, size, CHUNK):
            # Always draws a complete chunk, so that documents do not depend on their number.
            lengths = draw.choice(real_lengths, CHUNK)
            tokens = _draw_terms(draw, cumulative, int(lengths.sum()))
            lengths = lengths[: size - first]
            tokens = tokens[: int(lengths.sum())]
            _write_lines(lines, tokens, lengths, names)
            tokens.tofile(numbers)
            all_lengths.append(lengths)
    for seed, (name, count) in enumerate({"single": SINGLE_QUERIES, "batch": BATCH_QUERIES}.items()):
        query_draw = np.random.default_rng(SEED + 1 + seed)
        lengths = query_draw.integers(3, 9, count)
        words = np.split(_draw_terms(query_draw, cumulative, int(lengths.sum())), np.cumsum(lengths)[:-1])
        _write_queries(collection, name, [list(dict.fromkeys(query.tolist())) for query in words])
    return _write_starts(collection, all_lengths, len(counts))


def _texts(data: Path) -> list[str]:
    return list(json.loads((data / "knowledge_base.json").read_text("utf-8")).values())


def _draw_terms(
    draw: np.random.Generator, cumulative: np.ndarray[Any, Any], count: int
) -> np.ndarray[Any, np.dtype[np.int32]]:
    """Draw terms by their frequencies; term 0 is the most frequent one."""
    positions = draw.integers(0, cumulative[-1], count)
    return np.searchsorted(cumulative, positions, side="right").astype(np.int32)


def _names(count: int) -> list[str]:
    return [f"w{number}" for number in range(count)]


def _write_lines(
    file: Any, tokens: np.ndarray[Any, Any], lengths: np.ndarray[Any, Any], names: Sequence[str]
) -> None:
    words = [names[number] for number in tokens.tolist()]
    start = 0
    for length in lengths.tolist():
        file.write(" ".join(words[start : start + length]) + "\n")
        start += length


def _write_queries(collection: Collection, name: str, queries: Iterable[Sequence[int]]) -> None:
    lines = [" ".join(f"w{number}" for number in query) for query in queries]
    collection.queries_file(name).write_text("".join(f"{line}\n" for line in lines))


def _write_starts(
    collection: Collection, lengths: Sequence[np.ndarray[Any, Any]], terms: int
) -> dict[str, Any]:
    all_lengths = np.concatenate(lengths)
    np.save(collection.folder / "starts.npy", np.concatenate([[0], np.cumsum(all_lengths)]).astype(np.int64))
    return {"documents": len(all_lengths), "tokens": int(all_lengths.sum()), "terms": terms}
