"""Score documents for queries by a reranking model, through the stored scores.

`Reranking.scores` stores each finished batch before it begins the next one, so that a killed job loses at most the
requests in flight, `concurrency` of them.

    form = "cohere"   POST {url}/rerank   {"model": ..., "query": ..., "documents": [text, ...], "top_n": 2, ...}
                      200                 {"results": [{"index": 0, "relevance_score": number}, ...]}
    form = "tei"      POST {url}/rerank   {"query": ..., "texts": [...], "raw_scores": false, "truncate": true, ...}
                      200                 [{"index": 0, "score": number}, ...]

Cohere, Jina, vLLM, llama.cpp and Infinity answer in the first form, Text Embeddings Inference (TEI) in the second.
A command reads one JSON object per line, {"index": 0, "query": ..., "document": ...}, and writes
{"index": 0, "score": number} for each one, in any order.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from searchapp.config.settings import RERANKER_KEY, Settings
from searchapp.embeddings.access import ATTEMPTS, Access, Budget, estimated_tokens
from searchapp.embeddings.cache import SCORES_FILE, open_answers, pair_key
from searchapp.embeddings.local_models import errors_of_model, require_known_modules
from searchapp.embeddings.reranker_source import TEI, RerankerSource
from searchapp.errors import DataError
from searchapp.lucene.parameters import is_number
from searchapp.progress import Advance, Notify, no_notice, no_progress
from searchapp.text import counted

# A query, and the texts of documents to score for it.
Batch = tuple[str, Sequence[str]]
Answers = Iterator[tuple[Sequence[tuple[str, str]], Sequence[float]]]


class Reranking:
    """The rerankers that a command may ask, and what it has asked them.

    Args:
        home: the home directory, with the stored scores
        access: what the user allows
        notify: receives a sentence before each further attempt of a request
        attempts: the number of attempts after which a request fails
    """

    def __init__(
        self, home: Path, access: Access, notify: Notify = no_notice, attempts: int = ATTEMPTS
    ) -> None:
        self.budget = Budget(access.max_cost)
        self._home = home
        self._access = access
        self._notify = notify
        self._attempts = attempts

    @classmethod
    def of(
        cls,
        settings: Settings,
        *,
        commands: bool = False,
        max_cost: float | None = None,
        notify: Notify = no_notice,
    ) -> Reranking:
        return cls(settings.home, Access.of(settings, commands=commands, max_cost=max_cost), notify)

    def scores(
        self, source: RerankerSource, batches: Sequence[Batch], advance: Advance = no_progress
    ) -> list[list[float]]:
        """Return the scores of each batch, in the order of its documents, and store new ones.

        Args:
            source: an endpoint, a command or a local model
            batches: queries with the texts of documents
            advance: receives 1 for each batch whose scores are known

        Raises:
            UsageError: the user has not allowed the source, or its key, command or model can't be read.
            OverBudget: the cost would be too great.
            ModelUnavailable: the source fails.
            SearchappError: the stored scores can't be used.
            DataError: the source rejects a text.
        """
        keys = [[pair_key(query, text) for text in texts] for query, texts in batches]
        with open_answers(self._home, SCORES_FILE, source.digest) as stored:
            known = stored.answers({key for row in keys for key in row})
            missing: list[Batch] = []
            batches_of: dict[bytes, list[int]] = {}
            for number, ((query, texts), row) in enumerate(zip(batches, keys, strict=True)):
                unknown = {
                    key: text
                    for key, text in zip(row, texts, strict=True)
                    if key not in known and key not in batches_of
                }
                if unknown:
                    missing.append((query, list(unknown.values())))
                for key in set(row) - known.keys():
                    batches_of.setdefault(key, []).append(number)
            left = Counter(number for numbers in batches_of.values() for number in numbers)
            advance(len(batches) - len(left))
            for pairs, scores in self._answers(source, missing):
                answered = [pair_key(*pair) for pair in pairs]
                stored.store(zip(answered, scores, strict=True))
                for number in (number for key in answered for number in batches_of[key]):
                    left[number] -= 1
                    if not left[number]:
                        advance(1)
            # Another process may have stored a pair before, with another score.
            known |= stored.answers(batches_of)
            return [[known[key] for key in row] for row in keys]

    def _answers(self, source: RerankerSource, missing: Sequence[Batch]) -> Answers:
        if not missing:
            return iter(())
        if source.command:
            return self._command_answers(source, missing)
        if source.cross_encoder:
            return _local_answers(source, missing)
        return self._endpoint_answers(source, missing)

    def _endpoint_answers(self, source: RerankerSource, missing: Sequence[Batch]) -> Answers:
        from searchapp.embeddings.endpoint import Endpoint  # slow to import

        assert source.url is not None
        endpoint = Endpoint(
            f"{source.url.rstrip('/')}/rerank",
            place=source.place,
            key=RERANKER_KEY,
            timeout=source.timeout,
            price=source.cost,
            access=self._access,
            budget=self.budget,
            notify=self._notify,
            attempts=self._attempts,
        )

        def scores(batch: Batch) -> list[float]:
            query, texts = batch
            # Models read the query with each document.
            tokens = estimated_tokens(texts) + len(texts) * estimated_tokens([query])
            return endpoint.ask(
                _body(source, batch), tokens, lambda answer: _read(source, answer, len(texts))
            )

        for (query, texts), answer in endpoint.answers(
            _split(missing, source.batch_size), scores, source.concurrency
        ):
            yield [(query, text) for text in texts], answer

    def _command_answers(self, source: RerankerSource, missing: Sequence[Batch]) -> Answers:
        from searchapp.embeddings.command import command_answers  # slow to import

        self._access.require_command(source.command[0])
        pairs = [(query, text) for query, texts in missing for text in texts]
        questions = [{"query": query, "document": text} for query, text in pairs]
        for batch in command_answers(
            source.command,
            source.folder,
            source.place,
            questions,
            lambda row: _number(row.get("score")),
            source.batch_size,
        ):
            yield [pairs[index] for index, _ in batch], [score for _, score in batch]


def _split(missing: Iterable[Batch], size: int) -> Iterator[Batch]:
    for query, texts in missing:
        for start in range(0, len(texts), size):
            yield query, texts[start : start + size]


def _body(source: RerankerSource, batch: Batch) -> dict[str, Any]:
    query, texts = batch
    if source.form == TEI:
        return {"raw_scores": False, "truncate": True, **source.parameters, "query": query, "texts": [*texts]}
    about = {"model": source.model, "query": query, "documents": [*texts], "top_n": len(texts)}
    return {**source.parameters, **about}


def _read(source: RerankerSource, answer: Any, count: int) -> list[float]:
    """Return the scores of an answer in the order of the documents.

    Raises:
        InvalidAnswerError: they are not one number for each document.
    """
    from searchapp.embeddings.endpoint import InvalidAnswerError  # slow to import

    key = "score" if source.form == TEI else "relevance_score"
    rows = answer if source.form == TEI else answer.get("results") if isinstance(answer, dict) else None
    scores: dict[int, float] = {}
    for row in rows if isinstance(rows, list) else []:
        index = row.get("index") if isinstance(row, dict) else None
        if not isinstance(index, int) or isinstance(index, bool):
            raise InvalidAnswerError("answers with an entry without `index`")
        scores[index] = _number(row.get(key), key)
    if not isinstance(rows, list) or len(rows) != count or scores.keys() != set(range(count)):
        raise InvalidAnswerError(
            f"answers with {counted(len(scores), 'score')} for {counted(count, 'document')}"
        )
    return [scores[index] for index in range(count)]


def _number(value: Any, key: str = "score") -> float:
    from searchapp.embeddings.endpoint import InvalidAnswerError  # slow to import

    if is_number(value) and math.isfinite(score := float(value)):
        return score
    raise InvalidAnswerError(f"answers with a `{key}` that is not a finite number")


def _local_answers(source: RerankerSource, missing: Sequence[Batch]) -> Answers:
    folder, correct = source.folder / source.cross_encoder, f"correct {source.place}"
    with errors_of_model("sentence-transformers", folder, "score texts", correct):
        model = _cross_encoder(folder)
        if model.num_labels != 1:
            raise DataError(
                f"the model in {folder} has {counted(model.num_labels, 'label')} for a pair of texts instead of one "
                f"score: {correct}"
            )
        for query, texts in _split(missing, source.batch_size):
            pairs = [(query, text) for text in texts]
            scores = [float(score) for score in model.predict(pairs, show_progress_bar=False)]
            if not all(map(math.isfinite, scores)):
                raise DataError(f"the model in {folder} gives a score that is not finite: {correct}")
            yield pairs, scores


@cache
def _cross_encoder(folder: Path) -> Any:
    require_known_modules(folder)
    from sentence_transformers import CrossEncoder

    return CrossEncoder(str(folder), local_files_only=True, trust_remote_code=False)
