"""The signal `run`: the rankings of another system, from run files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from searchapp.engines.base import Index
from searchapp.errors import DataError
from searchapp.files import digest_file, digest_json
from searchapp.formats import trec
from searchapp.formats.problems import some
from searchapp.lucene.dataclass import dataclass
from searchapp.model import Explanation, Hits, Topic
from searchapp.progress import Advance
from searchapp.ranking.paging import indexed_ids
from searchapp.ranking.signals.base import AT_ONCE, FileSignal, Inputs, SignalRequest, SignalScorer
from searchapp.ranking.templates import text, window
from searchapp.text import counted

_RANKINGS = "run.trec"  # in a run directory


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSignal(FileSignal):
    """The documents and scores of a topic in run files; no documents for a topic that they lack."""

    kind: ClassVar[str] = "run"

    file: str = text("run directory or TREC run, relative to the file of the recipe; `*` names several")
    window: int = window()

    def files(self) -> Sequence[Path]:
        return _run_files(self.folder / self.file)

    def prepare(self, inputs: Inputs) -> SignalScorer:
        return _RunScorer(self, inputs)


class _RunScorer(SignalScorer):
    def __init__(self, signal: RunSignal, inputs: Inputs) -> None:
        self._signal = signal
        self._index: Index = inputs.index
        self._topics_are_documents = inputs.topics_are_documents
        self._paths = signal.files()
        self._hits: dict[str, Hits] = {}
        for path in self._paths:
            for ranking in trec.read_run(path):
                if ranking.topic_id in self._hits:
                    raise DataError(f"{path}: a file before it ranks the topic {ranking.topic_id} too")
                self._hits[ranking.topic_id] = ranking.hits

    def answers(self, request: SignalRequest, advance: Advance) -> Iterator[Hits]:
        if not any(topic.id in self._hits for topic in request.topics):
            raise self._error(f"ranks none of the topics {some([topic.id for topic in request.topics])}")
        for start in range(0, len(request.topics), AT_ONCE):
            topics = request.topics[start : start + AT_ONCE]
            answers = [self._answer(topic, max(self._signal.window, request.depth)) for topic in topics]
            self._require_indexed(answers)
            for hits in answers:
                yield hits
                advance(1)

    def explain(self, request: SignalRequest, document_id: str) -> Explanation | None:
        (topic,) = request.topics
        hits = self._hits.get(topic.id, Hits())
        if document_id not in hits.document_ids:
            return None
        rank = hits.document_ids.index(document_id)
        return Explanation(hits.scores[rank], f"score at rank {rank + 1} in {self._signal.file}")

    def model(self) -> dict[str, Any]:
        return {"digest": digest_json(list(map(digest_file, self._paths))), "topics": len(self._hits)}

    def _answer(self, topic: Topic, depth: int) -> Hits:
        hits = self._hits.get(topic.id, Hits())
        if self._topics_are_documents and topic.id in hits.document_ids:
            hits = Hits.of(*(hit for hit in hits if hit.document_id != topic.id))
        return hits[:depth]

    def _require_indexed(self, answers: Sequence[Hits]) -> None:
        ids = dict.fromkeys(document for hits in answers for document in hits.document_ids)
        known = indexed_ids(self._index, ids)
        unknown = [document for document in ids if document not in known]
        if unknown:
            are = "is" if len(unknown) == 1 else "are"
            raise self._error(
                f"ranks {counted(len(unknown), 'document')} ({some(unknown)}) that {are} not in the index"
            )

    def _error(self, what: str) -> DataError:
        return DataError(f"{self._signal.file}, the run of the signal {self._signal.name}, {what}")


def _run_files(named: Path) -> list[Path]:
    """Return the files of rankings that a path names, which may have `*` in its last part.

    Raises:
        DataError: there is none.
    """
    paths = sorted(named.parent.glob(named.name)) if "*" in named.name else [named]
    files = [path / _RANKINGS if path.is_dir() else path for path in paths]
    missing = [file for file in files if not file.is_file()] or ([] if files else [named])
    for file in missing:
        raise DataError(f"there is no run {file}: correct `file` in the signal of the recipe")
    return files
