"""The table `[embeddings]` of a task file: which model embeds the task's texts, and how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from fractions import Fraction
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from searchapp.errors import DataError
from searchapp.files import data_digests, digest_json
from searchapp.formats.toml_files import TomlTable
from searchapp.lucene.dataclass import dataclass

TABLE = "embeddings"

BATCH_SIZE, CONCURRENCY, TIMEOUT_SECONDS = 32, 2, 60

# The file with the vectors of a task, which the signal `vectors` reads.
FILE = "embeddings.npz"

# Keys that name the folder of a model; the key is the module that loads it.
LIBRARIES = ("sentence_transformers", "model2vec", "fastembed")

# Latent semantic analysis: dimensions, the least number of documents with a word, and the seed.
LSA_DIMENSIONS, LSA_MIN_DF, LSA_SEED = 256, 2, 2021
_LSA_KEYS = ("file", "dimensions", "min_df", "seed")


@dataclass(frozen=True, slots=True)
class Price:
    """The price of a million tokens that a model reads and that it writes, and of a thousand requests."""

    tokens: float = 0.0
    requests: float = 0.0
    written: float = 0.0

    def cost(self, tokens: int, requests: int = 1, written: int = 0) -> Fraction:
        of_tokens = Fraction(self.tokens) * tokens + Fraction(self.written) * written
        return of_tokens / 10**6 + Fraction(self.requests) * requests / 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingSource:
    """A source of embeddings: one of `url`, `command`, `documents` and `library`, or latent semantic analysis."""

    # The folder of the task file, to which paths are relative.
    folder: Path
    # The file that `searchapp embed` writes.
    file: str = FILE
    # The base address of an endpoint of the OpenAI form, to which `/embeddings` is appended.
    url: str | None = None
    # A program and its arguments.
    command: tuple[str, ...] = ()
    # Files with the vectors of documents and of topics.
    documents: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    # One of `LIBRARIES`, and the folder of its model.
    library: str = ""
    model_folder: str = ""
    model: str = ""
    # Distinguishes vectors of models with the same name.
    version: str = ""
    # The number of elements of a vector; by default that of the first vector, or `LSA_DIMENSIONS`.
    dimensions: int | None = None
    # Further keys of requests to an endpoint.
    parameters: Mapping[str, Any] = field(default_factory=dict)
    # What some models expect before texts, such as "passage: " and "query: ".
    document_prefix: str = ""
    topic_prefix: str = ""
    batch_size: int = BATCH_SIZE
    # The number of simultaneous requests.
    concurrency: int = CONCURRENCY
    # After so many seconds of silence a request has failed.
    timeout: int = TIMEOUT_SECONDS
    # The price of a million tokens.
    price: float = 0.0
    # Of latent semantic analysis.
    min_df: int = LSA_MIN_DF
    seed: int = LSA_SEED

    @property
    def is_lsa(self) -> bool:
        """Whether the vectors come from latent semantic analysis of the documents themselves."""
        return self.url is None and not self.command and not self.documents and not self.library

    @property
    def cost(self) -> Price:
        return Price(tokens=self.price)

    @property
    def digest(self) -> str:
        """The digest of everything that the vector of a text depends on, except prefixes.

        Raises:
            DataError: the folder of a local model has no files, or one can't be read.
        """
        return digest_json(
            {
                "url": self.url,
                "command": list(self.command),
                "model": self.model,
                "version": self.version,
                "dimensions": self.dimensions,
                "parameters": dict(self.parameters),
                "library": self.library,
                "files": self._model_files() if self.library else {},
            }
        )

    def _model_files(self) -> dict[str, str]:
        """Return the digests of the files of a local model by their names."""
        folder = self.folder / self.model_folder
        files = sorted(file for file in folder.rglob("*") if file.is_file())
        if not files:
            raise DataError(f"there is no model in the folder {folder}: correct {self.library} in [{TABLE}]")
        return data_digests(folder, files)

    def record(self) -> dict[str, Any]:
        """Return the description of the source in the file of vectors."""
        if self.is_lsa:
            return {"lsa": {"min_df": self.min_df, "seed": self.seed}}
        described = {
            "url": self.url,
            "command": list(self.command),
            "library": self.library,
            "model_folder": self.model_folder,
            "model": self.model,
            "version": self.version,
            "parameters": dict(self.parameters),
            "document_prefix": self.document_prefix,
            "topic_prefix": self.topic_prefix,
        }
        return {key: value for key, value in described.items() if value}


def read_source(root: TomlTable, folder: Path) -> EmbeddingSource | None:
    """Read the table `[embeddings]`; None without one."""
    table = root.table(TABLE)
    if table is None:
        return None
    url, command = read_url(table), read_command(table)
    documents, topics = table.texts("documents", single=True), table.texts("topics", single=True)
    folders = {library: name for library in LIBRARIES if (name := table.text(library))}
    library, model_folder = next(iter(folders.items()), ("", ""))
    sources = sum(value is not None for value in (url, command, documents)) + len(folders)
    if sources > 1 or (not sources and table.content.keys() - {*_LSA_KEYS}):
        known = ", ".join(("url", "command", "documents", *LIBRARIES))
        table.wrong(
            "wrong value",
            f"[{TABLE}] needs one of {known}; without one of them it can have only {', '.join(_LSA_KEYS)}",
        )
    if (documents is None) != (topics is None):
        table.wrong("missing key", f"[{TABLE}] needs both documents and topics, or neither")
    model = table.text("model", "", required=url is not None or library == "fastembed")
    of_lsa = (
        {}
        if sources
        else {"min_df": table.whole("min_df", LSA_MIN_DF, 1), "seed": table.whole("seed", LSA_SEED, 0)}
    )
    source = EmbeddingSource(
        folder=folder,
        file=table.text("file", FILE),
        url=url,
        command=command or (),
        documents=documents or (),
        topics=topics or (),
        library=library,
        model_folder=model_folder,
        model=model,
        version=table.text("version", ""),
        dimensions=table.whole("dimensions", 0, 1, 4096) or None,
        parameters=read_parameters(table, "model", "input"),
        document_prefix=_prefix(table, "document_prefix"),
        topic_prefix=_prefix(table, "topic_prefix"),
        batch_size=table.whole("batch_size", BATCH_SIZE, 1, 2048),
        concurrency=table.whole("concurrency", CONCURRENCY, 1, 64),
        timeout=table.whole("timeout", TIMEOUT_SECONDS, 1, 3600),
        price=read_price(table, "price", "a million tokens"),
        **of_lsa,
    )
    table.finish()
    return source


def read_url(table: TomlTable) -> str | None:
    """Read the address of an endpoint; None without one."""
    url = table.text("url")
    if url is not None and not is_address(url):
        detail = (
            f"{url.rpartition('@')[2]!r} is no address such as http://localhost:11434/v1, without a password"
        )
        table.wrong("wrong value", f"url {detail}", "url")
    return url


def read_parameters(table: TomlTable, *reserved: str) -> dict[str, Any]:
    """Read further keys of requests, which must not be those of searchapp."""
    parameters = table.raw("parameters")
    if isinstance(parameters, dict | None) and not {*reserved} & set(parameters or ()):
        return parameters or {}
    known = f"{', '.join(reserved[:-1])} and {reserved[-1]}"
    detail = f"parameters must be a table of further keys of requests, without {known}"
    table.wrong("wrong value", detail, "parameters")
    return {}


def read_price(table: TomlTable, key: str, unit: str) -> float:
    """Read a price, 0 without one."""
    price = table.raw(key)
    if isinstance(price, bool) or not isinstance(price, int | float | None) or not 0 <= (price or 0) < 1e9:
        table.wrong("wrong value", f"{key} must be the price of {unit}", key)
        return 0.0
    return float(price or 0)


def is_address(url: str) -> bool:
    """Return whether a text is the address of an endpoint, without a password."""
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return is_valid and url.isprintable() and "@" not in parts.netloc


def read_command(table: TomlTable) -> tuple[str, ...] | None:
    """Read a program and its arguments; None without them."""
    words = table.raw("command")  # unlike a list of names, it may repeat a word
    if words is None:
        return None
    if not (isinstance(words, list) and words and all(isinstance(word, str) and word for word in words)):
        table.wrong("wrong value", "command must be a list of texts in quotes", "command")
        return None
    return tuple(words)


def _prefix(table: TomlTable, key: str) -> str:
    value = table.raw(key)
    if value is None or isinstance(value, str):
        return value or ""
    table.wrong("wrong value", f"{key} must be text in quotes", key)
    return ""
