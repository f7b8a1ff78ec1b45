"""The tables `[rerankers.NAME]` of a task file: models that score documents for a topic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import Any

from searchapp.embeddings.source import (
    CONCURRENCY,
    TIMEOUT_SECONDS,
    Price,
    read_command,
    read_parameters,
    read_price,
    read_url,
)
from searchapp.errors import DataError
from searchapp.files import data_digests, digest_json
from searchapp.formats.toml_files import TomlTable
from searchapp.lucene.dataclass import dataclass
from searchapp.text import choices_hint

TABLE = "rerankers"

# The forms of requests and answers, and the greatest number of documents in a request by default. A server in the form
# TEI rejects more than 32 texts unless it is configured; services in the form Cohere charge for each request.
COHERE, TEI = "cohere", "tei"
BATCH_SIZES = {COHERE: 100, TEI: 32}

# The key that names the folder of a model of sentence-transformers.
CROSS_ENCODER = "cross_encoder"


@dataclass(frozen=True, kw_only=True)
class RerankerSource:
    """A reranking model: one of `url`, `command` and `cross_encoder`."""

    name: str
    # The folder of the task file, to which paths are relative.
    folder: Path
    # The base address of an endpoint, to which `/rerank` is appended.
    url: str | None = None
    # The form of its requests.
    form: str = COHERE
    # A program and its arguments.
    command: tuple[str, ...] = ()
    # The folder of a local model.
    cross_encoder: str = ""
    model: str = ""
    # Distinguishes scores of models with the same name.
    version: str = ""
    # Further keys of requests to an endpoint.
    parameters: Mapping[str, Any] = field(default_factory=dict)
    # The greatest number of documents in a request.
    batch_size: int = BATCH_SIZES[COHERE]
    # The number of simultaneous requests.
    concurrency: int = CONCURRENCY
    # After so many seconds of silence a request has failed.
    timeout: int = TIMEOUT_SECONDS
    # The prices of a million tokens, and of a thousand requests.
    price: float = 0.0
    request_price: float = 0.0

    @property
    def cost(self) -> Price:
        return Price(self.price, self.request_price)

    @property
    def place(self) -> str:
        """Where the user describes the model, as messages name it."""
        return f"[{TABLE}.{self.name}] in the task file"

    @cached_property
    def digest(self) -> str:
        """The digest of everything that a score depends on, except the texts.

        Raises:
            DataError: the folder of a local model has no files, or one can't be read.
        """
        return digest_json({**self._described, "files": self._model_files()})

    def record(self) -> dict[str, Any]:
        """Return the description of the model in a run; raises the errors of `digest`."""
        return {**{key: value for key, value in self._described.items() if value}, "digest": self.digest}

    @property
    def _described(self) -> dict[str, Any]:
        return {
            "url": self.url,
            "form": self.form if self.url is not None else "",
            "command": list(self.command),
            CROSS_ENCODER: self.cross_encoder,
            "model": self.model,
            "version": self.version,
            "parameters": dict(self.parameters),
        }

    def _model_files(self) -> dict[str, str]:
        if not self.cross_encoder:
            return {}
        folder = self.folder / self.cross_encoder
        files = sorted(file for file in folder.rglob("*") if file.is_file())
        if not files:
            raise DataError(f"there is no model in the folder {folder}: correct {self.place}")
        return data_digests(folder, files)


def read_rerankers(root: TomlTable, folder: Path) -> dict[str, RerankerSource]:
    """Read the tables `[rerankers.NAME]` by their names."""
    return {table.name: _read(table, folder) for table in root.tables(TABLE)}


def _read(table: TomlTable, folder: Path) -> RerankerSource:
    url, command, cross_encoder = read_url(table), read_command(table), table.text(CROSS_ENCODER)
    if sum(value is not None for value in (url, command, cross_encoder)) != 1:
        table.wrong("wrong value", f"[{TABLE}.{table.name}] needs one of url, command and {CROSS_ENCODER}")
    form = table.text("form", COHERE)
    if form not in BATCH_SIZES:
        table.wrong("wrong value", f"form is {choices_hint(form, BATCH_SIZES)}", "form")
        form = COHERE
    reserved = ("query", "texts") if form == TEI else ("model", "query", "documents", "top_n")
    source = RerankerSource(
        name=table.name,
        folder=folder,
        url=url,
        form=form,
        command=command or (),
        cross_encoder=cross_encoder or "",
        model=table.text("model", "", required=url is not None and form == COHERE),
        version=table.text("version", ""),
        parameters=read_parameters(table, *reserved),
        batch_size=table.whole("batch_size", BATCH_SIZES[form], 1, 1000),
        concurrency=table.whole("concurrency", CONCURRENCY, 1, 64),
        timeout=table.whole("timeout", TIMEOUT_SECONDS, 1, 3600),
        price=read_price(table, "price", "a million tokens"),
        request_price=read_price(table, "request_price", "a thousand requests"),
    )
    table.finish()
    return source
