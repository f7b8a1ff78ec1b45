"""`searchapp search`: one search, for a person."""

from __future__ import annotations

import sys
from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer

from searchapp.cli import complete
from searchapp.cli.common import JsonOption, TaskArgument, command
from searchapp.cli.output import print_json, say, stdout_console, warn
from searchapp.errors import UsageError
from searchapp.settings import Settings
from searchapp.visible import visible, visible_line, visible_spans

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.text import Text

    from searchapp.ranking.search import SearchResult, Span

SNIPPET_CHARACTERS = 320


def register(app: typer.Typer) -> None:
    """Add the command."""

    @command(app)
    def search(
        settings: Settings,
        task: TaskArgument,
        words: Annotated[str, typer.Argument(help="What to search for.", show_default=False)],
        size: Annotated[int, typer.Option("--size", "-n", min=1, max=1000, help="Number of documents.")] = 10,
        recipe: Annotated[
            str | None,
            typer.Option(
                help="Recipe to rank with: see `searchapp tasks show TASK`.",
                show_default=False,
                autocompletion=complete.recipes,
            ),
        ] = None,
        explain: Annotated[bool, typer.Option("--explain", help="Show how each score came about.")] = False,
        full: Annotated[bool, typer.Option("--full", help="Show whole documents, not pieces.")] = False,
        as_json: JsonOption = False,
    ) -> None:
        """Search a task's documents and print the best ones, with the words highlighted that carry weight.

        Those are words that are rare enough among the documents; a phrase that matches is highlighted as it stands.

        With --recipe the words are ranked exactly as the text of a topic is with that recipe; recipes that need more
        than a text, such as solved topics, are for `rank` alone.
        """
        from searchapp.app.index import open_index
        from searchapp.engines import open_engine
        from searchapp.ranking import recipes, shards
        from searchapp.ranking.search import search as find
        from searchapp.tasks import load

        if not words.strip():
            raise UsageError("there are no words to search for: put them in quotes after the task")
        loaded = load(task)
        chosen = recipes.load_for_words(loaded.recipe_book(), recipe or loaded.info.search_recipe)
        mapping = loaded.index_mapping()
        with closing(open_engine(settings)) as engine:
            index = open_index(loaded, engine)
            for warning in shards.warnings(chosen, mapping, index.info.shards):
                warn(warning)
            results = find(index, mapping, chosen, words, size, explain=explain)
        # A template may fill its ranking up with documents that match nothing; a person did not ask for those.
        results = [result for result in results if result.hit.score > 0]
        if as_json:
            print_json(
                {"task": loaded.name, "words": words, "hits": [_described(result) for result in results]}
            )
            return
        if not results:
            say(settings, f"no document of {loaded.name} matches these words")
            return
        print_results(results, full=full)


def print_results(results: Sequence[SearchResult], *, full: bool = False) -> None:
    """Print a ranking, a piece of each document below its rank, id and score."""
    from rich.padding import Padding
    from rich.text import Text

    from searchapp.ranking.snippets import snippet, squeezed

    console = stdout_console()

    def indented(text: Text) -> None:
        if sys.stdout.isatty():
            console.print(Padding(text, (0, 0, 0, 5)))  # wraps within its margins
        else:
            console.print(
                "\n".join(f"     {line}" for line in text.plain.split("\n")), markup=False, soft_wrap=True
            )

    for result in results:
        rank = (f"{result.rank:>3}", "bold")
        id_ = (visible_line(result.hit.document_id), "cyan")
        console.print(
            Text.assemble(rank, "  ", id_, "  ", (f"{result.hit.score:.4f}", "dim")), soft_wrap=True
        )
        if full and sys.stdout.isatty():
            text, matches = result.text, list(result.matches)
        elif full:
            text, matches = squeezed(result.text, result.matches)
        else:
            text, matches = snippet(result.text, result.matches, SNIPPET_CHARACTERS)
        indented(_highlighted(text, matches))
        if result.explanation is not None:
            for line in _explained(result):
                indented(line)


def _highlighted(text: str, matches: Sequence[Span]) -> Text:
    from rich.text import Text

    shown, spans = visible_spans(text, matches)
    highlighted = Text(shown)
    for start, end in spans:
        highlighted.stylize("bold yellow", start, end)
    return highlighted


def _explained(result: SearchResult) -> Iterator[Text]:
    from rich.text import Text

    from searchapp.ranking.explanations import shortened

    assert result.explanation is not None
    for line in shortened(result.explanation):
        yield Text(f"{line.value:>10.4f}  {'  ' * line.depth}{visible(line.text)}", style="dim")


def _described(result: SearchResult) -> dict[str, object]:
    described: dict[str, object] = {
        "rank": result.rank,
        "id": result.hit.document_id,
        "score": result.hit.score,
        "text": result.text,
        "matches": [list(span) for span in result.matches],
    }
    if result.explanation is not None:
        described["explanation"] = result.explanation.to_json()
    return described
