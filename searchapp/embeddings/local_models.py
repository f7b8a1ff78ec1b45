"""Embed texts by a model in a local folder: of sentence-transformers, model2vec or fastembed. Nothing is downloaded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from searchapp.embeddings.cache import Floats32
from searchapp.embeddings.source import TABLE, EmbeddingSource
from searchapp.errors import DataError, UsageError
from searchapp.files import parse_json, read_text
from searchapp.formats.problems import shown
from searchapp.resources import install_command

Encoder = Callable[[list[str]], Any]


def local_vectors(
    source: EmbeddingSource, texts: Sequence[str], length: int | None
) -> Iterator[tuple[Sequence[str], Floats32]]:
    """Yield batches of texts with their vectors, (texts, dimensions); 0 for a text in which the model knows no word.

    Args:
        source: a library and the folder of a model
        texts: the texts
        length: the number of elements of a vector, if known

    Raises:
        UsageError: the library is not installed.
        DataError: it can't load the model or embed a text, or returns invalid vectors.
    """
    folder = source.folder / source.model_folder
    correct = f"correct {source.library} in [{TABLE}]"
    with errors_of_model(source.library, folder, "embed texts", correct):
        encode = _ENCODERS[source.library](str(folder), source.model)
        for start in range(0, len(texts), source.batch_size):
            batch = texts[start : start + source.batch_size]
            vectors = np.asarray(encode(list(batch)), np.float32)
            length = length or vectors.shape[-1]
            if vectors.shape != (len(batch), length) or not np.isfinite(vectors).all():
                raise DataError(
                    f"the model in {folder} gives vectors of the shape {vectors.shape}, or not finite ones, for "
                    f"{len(batch):,} texts; {length:,} dimensions are expected: {correct}"
                )
            yield batch, vectors


@contextmanager
def errors_of_model(library: str, folder: Path, work: str, correct: str) -> Iterator[None]:
    """Report the errors of a library that loads or applies the model in a folder.

    Raises:
        UsageError: the library is not installed.
        DataError: it can't do the work; `correct` says what to do.
    """
    try:
        yield
    except ImportError as error:
        package = library.replace("_", "-")
        raise UsageError(
            f"the model in {folder} requires the package {package} ({error}): install it with "
            f"`{install_command(package)}`"
        ) from error
    except DataError:
        raise
    except Exception as error:  # the libraries raise exceptions of many packages
        what = shown(f"{type(error).__name__}: {error}")
        raise DataError(f"{library} can't {work} by the model in {folder} ({what}): {correct}") from error


def _sentence_transformers(folder: str, model: str) -> Encoder:  # noqa: ARG001  # the folder names the model
    require_known_modules(Path(folder))
    from sentence_transformers import SentenceTransformer

    loaded = SentenceTransformer(folder, local_files_only=True)
    return lambda texts: loaded.encode(texts, show_progress_bar=False)


def require_known_modules(folder: Path) -> None:
    """Reject a model with modules of its own: the library would run their code, because the folder is local.

    Raises:
        DataError: it has one.
    """
    modules = folder / "modules.json"
    for module in parse_json(read_text(modules)) if modules.is_file() else ():
        if not str(module["type"]).startswith("sentence_transformers."):
            raise DataError(
                f"{modules} names {shown(str(module['type']))}, code of the model's own, which is not run: choose "
                "another model"
            )


def _model2vec(folder: str, model: str) -> Encoder:  # noqa: ARG001  # the folder names the model
    from model2vec import StaticModel

    loaded = StaticModel.from_pretrained(folder)
    return lambda texts: loaded.encode(texts, use_multiprocessing=False)


def _fastembed(folder: str, model: str) -> Encoder:
    from fastembed import TextEmbedding

    loaded = TextEmbedding(model, specific_model_path=folder, local_files_only=True)
    return lambda texts: list(loaded.embed(texts))


_ENCODERS: dict[str, Callable[[str, str], Encoder]] = {
    "sentence_transformers": _sentence_transformers,
    "model2vec": _model2vec,
    "fastembed": _fastembed,
}
