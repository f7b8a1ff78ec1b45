"""`searchapp embed`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from searchapp.cli.commands import (
    DataOption,
    JsonOption,
    MaxCostOption,
    RunCommandOption,
    TaskArgument,
    command,
    data_of,
)
from searchapp.cli.output import for_person, print_json, say
from searchapp.config.settings import Settings
from searchapp.options import flag, option
from searchapp.tasks import load
from searchapp.text import counted

if TYPE_CHECKING:
    from searchapp.app.embed import Embedded

app = typer.Typer()


@command(app)
def embed(
    settings: Settings,
    task: TaskArgument,
    data: DataOption = None,
    split: list[str] | None = option(
        "Split whose topics to embed; repeatable. Default: all splits that have files.", completes="splits"
    ),
    limit: int | None = option("Embed at most this number of texts now.", min=1),
    max_cost: MaxCostOption = None,
    dry_run: bool = flag(
        "Send nothing; print the number of texts without a vector, and estimate tokens and cost."
    ),
    run_command: RunCommandOption = False,
    as_json: JsonOption = False,
) -> None:
    """Embed the documents and topics of a task by the model of its table [embeddings].

    Without a model, the vectors come from latent semantic analysis of the documents themselves. They are rounded to
    bytes and written into a file, which recipes read with the signal `vectors`.

    Finished batches are stored in the home directory, so a stopped command resumes, and no text is sent twice. Texts
    are sent to other machines only if the setting model_hosts names them.
    """
    from searchapp.app.embed import EmbedOptions, embed_task
    from searchapp.embeddings.access import Access

    loaded = load(task)
    collection = loaded.collection(data_of(settings, loaded, data))
    for name in split or ():
        loaded.info.require_split(name)
    outcome = embed_task(
        loaded,
        collection,
        settings.home,
        Access.of(settings, commands=run_command),
        EmbedOptions(split or (), limit, max_cost, dry_run),
        for_person(settings),
        lambda sentence: say(settings, sentence),
    )
    stored, budget = outcome.stored, outcome.budget
    texts = f"{counted(outcome.documents, 'document')}, {counted(outcome.topics, 'topic')}"
    if dry_run:
        say(
            settings,
            f"{loaded.name}: {texts}; {counted(outcome.missing, 'text')} without a vector, about "
            f"{counted(outcome.estimated_tokens, 'token')}, cost {outcome.estimated_cost:.4g}",
        )
    elif stored is not None and "lsa" in stored.header["source"]:
        say(settings, f"{loaded.name}: {texts}; embedded by latent semantic analysis of the documents")
    else:
        say(
            settings,
            f"{loaded.name}: {texts}; embedded {counted(outcome.embedded, 'text')} in "
            f"{counted(budget.requests, 'request')}, {counted(budget.tokens, 'token')}, cost {budget.cost:.4g}",
        )
        if outcome.remaining:
            say(settings, f"{counted(outcome.remaining, 'text')} without a vector: the same command goes on")
    if stored is not None:
        loss = stored.header["loss"]
        shared = (
            ""
            if loss["overlap"] is None
            else f"; of the first {loss['depth']} documents by floating point, {loss['overlap']:.1%} are "
            f"first by bytes ({counted(loss['topics'], 'topic')})"
        )
        say(settings, f"wrote {outcome.path}: {stored.header['dimensions']:,} dimensions{shared}")
    if as_json:
        print_json(
            {
                "task": loaded.name,
                "documents": outcome.documents,
                "topics": outcome.topics,
                "missing": outcome.missing,
                "embedded": outcome.embedded,
                "estimated_tokens": outcome.estimated_tokens,
                "estimated_cost": outcome.estimated_cost,
                "requests": budget.requests,
                "tokens": budget.tokens,
                "cost": budget.cost,
                **_file_record(outcome),
            }
        )


def _file_record(outcome: Embedded) -> dict[str, object]:
    """Return the entries of the file with the vectors, null while texts are missing."""
    stored = outcome.stored
    if stored is None:
        return dict.fromkeys(("file", "digest", "dimensions", "overlap"))
    return {
        "file": str(outcome.path),
        "digest": stored.digest,
        "dimensions": stored.header["dimensions"],
        "overlap": stored.header["loss"]["overlap"],
    }
