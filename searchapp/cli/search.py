"""`searchapp search`, `explain` and `analyze`."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from searchapp.cli.commands import (
    DataOption,
    JsonOption,
    MaxCostOption,
    OverwriteOption,
    RunCommandOption,
    SetOption,
    TaskArgument,
    command,
    data_of,
    recipe_of,
    reranking_of,
    run_screen,
)
from searchapp.cli.output import (
    for_person,
    has_screen,
    print_json,
    require_screen,
    say,
    stdout_console,
    warn,
    warn_all,
)
from searchapp.config.settings import Settings
from searchapp.engines import open_engine
from searchapp.errors import DataError, ModelUnavailable, UsageError
from searchapp.options import REQUIRED, argument, flag, option
from searchapp.tasks import load
from searchapp.text import counted, visible, visible_line, visible_spans

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.text import Text

    from searchapp.app.inspection.explanation import Reason
    from searchapp.app.search import SearchRequest, TaskSearcher
    from searchapp.embeddings.access import Access
    from searchapp.model import Explanation
    from searchapp.progress import Progress
    from searchapp.ranking.query_language import FieldFilter
    from searchapp.ranking.search_results import SearchResult
    from searchapp.tasks.base import Task
    from searchapp.text import Span
    from searchapp.tui.home.opener import PaletteTargets
    from searchapp.tui.search.screen import SearchScreen


def print_why(reason: Reason, sentence: str, about: Mapping[str, object], *, as_json: bool) -> None:
    """Print the explanation of a document's rank; `about` begins the JSON document."""
    if as_json:
        explanation = reason.explanation.to_json() if reason.explanation else None
        described = asdict(reason)
        described["signals"] = described.pop("shares")
        print_json({**about, **described, "explanation": explanation})
        return
    lines = [f"{visible_line(reason.document_id)} {visible_line(sentence)}"]
    if reason.shares:
        lines.append("     Scores of the signals:")
        for share in reason.shares:
            value = f"{'nothing':>10}" if share.value is None else f"{share.value:>10.4f}"
            votes = f", {counted(len(share.votes), 'vote')}" if share.votes else ""
            lines.append(f"     {value}  {visible_line(share.signal)}, weight {share.weight:g}{votes}")
        lines.append("     Explanation of each score, before weighting:")
    lines += [f"     {line}" for line in _explained(reason.explanation)]
    console = stdout_console()
    for line in lines:
        console.print(line, soft_wrap=True)


def saved_request(settings: Settings, task: Task, name: str, request: SearchRequest) -> SearchRequest:
    """Make the request of a saved search; recipe and filters of `request` take precedence.

    Raises:
        UsageError: no search has this name.
    """
    from searchapp.app.saved_searches import SavedSearchFile

    result = SavedSearchFile(settings.home, task.name).search(name)
    return replace(
        request,
        text=result.text,
        literal=result.literal,
        like=result.like,
        recipe=request.recipe or result.recipe,
        filters=request.filters or result.filters,
    )


def print_saved_searches(settings: Settings, task: Task, *, as_json: bool) -> None:
    """Print the saved searches of a task, the latest first."""
    from rich.text import Text

    from searchapp.app.saved_searches import SavedSearchFile

    searches = SavedSearchFile(settings.home, task.name).searches()
    if as_json:
        saved = []
        for name, search in searches.items():
            fields = asdict(search)
            saved.append({"name": name, "query": fields.pop("text"), **fields})
        print_json({"task": task.name, "saved": saved})
        return
    for name, search in searches.items():
        words = search.text if search.like is None else f"like {search.like}"
        more = [search.recipe, *(f"{part.field}={part.value}" for part in search.filters)]
        line = Text.assemble((visible_line(name), "bold"), "  ", visible_line(words))
        line.append("".join(f"  {visible_line(part)}" for part in more if part), style="dim")
        stdout_console().print(line, soft_wrap=True)
    if not searches:
        say(settings, f"{task.name} has no saved searches: save one on the search screen")


SNIPPET_CHARACTERS = 320


app = typer.Typer()


@command(app)
def search(
    settings: Settings,
    task: TaskArgument,
    words: str | None = argument("Query; default: each line of stdin is a query.", default=None),
    size: int = option("Number of documents to show.", "--size", "-n", default=10, min=1, max=1000),
    from_: int = option("Rank of the first document to show.", "--from", default=1, min=1, metavar="RANK"),
    filter_: list[str] | None = option(
        "Only documents with this value; repeatable. Several values of one field are alternatives.",
        "--filter",
        metavar="FIELD=VALUE",
    ),
    recipe: str | None = option("Recipe to rank with: see `searchapp tasks show TASK`.", completes="recipes"),
    data: DataOption = None,
    why: str | None = option(
        "Explain the rank of this document, or why it has none.", "--explain-document", metavar="DOC"
    ),
    document: str | None = option("Show this document in full.", metavar="DOC"),
    like: str | None = option(
        "Search for documents similar to this one instead of WORDS: by its vector with a recipe that has the "
        "signal vectors, else by its text.",
        metavar="DOC",
    ),
    saved: str | None = option(
        "Run a search that was saved on the search screen under this name.", metavar="NAME", completes="saved"
    ),
    list_saved: bool = flag("List the saved searches."),
    annotator: str | None = option(
        "Name of the annotator for grading on the screen; default: SEARCHAPP_ANNOTATOR, or the name of the account.",
        completes="annotators",
    ),
    body: Path | None = option(
        "Search with the JSON search body in this file, or on stdin if it is -, and print its whole answer.",
        metavar="FILE",
    ),
    run_command: RunCommandOption = False,
    max_cost: MaxCostOption = None,
    explain: bool = flag("Show how each score is computed."),
    full: bool = flag("Show whole documents instead of snippets."),
    out: Path | None = option(
        "Write the documents to this file instead of showing them: .jsonl, .csv, or a TREC run."
    ),
    topic: str | None = option(
        "Id of the topic in the file of --out, as of a topic that the documents are to be judged for; default: query."
    ),
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
) -> None:
    """Search a task's documents, and print the best ones with matches highlighted.

    Without words, on a terminal, a screen opens that searches while you type.

    Highlighted are query words that are rare enough among the documents, and matching phrases. Words that find nothing
    are reported on standard error, with a similar word if there is one.

    Operators: "a phrase", +must, -without, begin*, field:value, +(groups of "these"). A backslash makes an operator
    part of the word. Put `--` before a query that begins with a minus, after all options.

    With --recipe, the query is ranked exactly as the text of a topic, also with recipes that learn from training
    topics. --recipe and --filter replace those of a saved search.

    A recipe with the signal vectors asks the model of the task file for the vector of words that it has none of, and
    one with the signal reranker for scores of documents. If the model fails, the other signals rank alone, which is
    reported on standard error.

    With --body, a search body of Elasticsearch is answered as by its _search: hits with sort values and highlights,
    aggregations and suggestions. Hits are sorted by id where the body's sort leaves them equal.
    """
    if body is not None:
        others = (words, filter_, recipe, why, document, like, saved, out, topic, max_cost)
        flags = (list_saved, run_command, explain, full, overwrite, size != 10, from_ != 1)
        if any(other is not None for other in others) or any(flags):
            raise UsageError("--body takes no WORDS and no option but --json: leave them out")
        _answer(settings, load(task), body, as_json=as_json)
        return
    if document is not None and why is not None:
        raise UsageError("--document and --explain-document exclude each other: give one of them")
    queries = {"WORDS": words, "--like": like, "--saved": saved}
    given = [name for name, query in queries.items() if query is not None]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} exclude each other: give one of them")
    if out is None and (topic is not None or overwrite):
        raise UsageError("--topic and --overwrite require --out: add it, or leave them out")
    if out is not None and (as_json or explain or full or why is not None or document is not None):
        raise UsageError("--out excludes --json, --explain, --full, --explain-document and --document")
    is_shown = why is None and document is None and out is None and not as_json and not list_saved
    from searchapp.app.search import SearchRequest, TaskSearcher, similar_request
    from searchapp.embeddings.access import Access

    access = Access.of(settings, commands=run_command, max_cost=max_cost)
    if not given and is_shown and has_screen():
        require_screen("search", "give a query in quotes after the task")
        _screen(settings, task, recipe, filter_ or [], data, annotator, access)
        return
    loaded = load(task)
    if list_saved:
        print_saved_searches(settings, loaded, as_json=as_json)
        return

    from searchapp.ranking import recipes

    filters = tuple(_filter(part) for part in filter_ or ())
    request = SearchRequest(words or "", recipe, filters, size, from_ - 1, explain)
    if saved is not None:
        request = saved_request(settings, loaded, saved, request)
        words, recipe = request.text, request.recipe
    is_one_search = words is not None or like is not None or why is not None or sys.stdin.isatty()
    if out is not None and not given:
        raise UsageError("--out requires a query: put it in quotes after the task")
    if is_one_search and document is None and not request.text.strip() and saved is None and like is None:
        raise UsageError("no query: put it in quotes after the task")
    book = loaded.recipe_book()
    recipes.require_words(book, recipes.load(book, recipe or loaded.info.search_recipe))
    with closing(open_engine(settings)) as engine:
        searcher = TaskSearcher.open(loaded, engine, for_person(settings), settings.home, data, access)
        if like is not None:
            request = similar_request(searcher, request, like)
        if document is not None:
            _open(searcher, request, document, as_json=as_json)
            return
        warn_all(searcher.warnings(recipe))
        if is_one_search:
            request = _available(searcher, request)
        if why is not None:
            _why(searcher, request, why, as_json=as_json)
        elif out is not None:
            from searchapp.app.search import QUERY_TOPIC, export_hits

            count = export_hits(searcher, request, out, topic or QUERY_TOPIC, overwrite=overwrite)
            say(settings, f"wrote {counted(count, 'hit')} to {out}")
        elif is_one_search:
            results = searcher.search(request)
            if as_json:
                print_json({"task": loaded.name, **_search_json(request, results)})
            elif results:
                print_results(results, full=full, is_ranked=searcher.is_ranked(request))
            else:
                say(settings, _nothing(searcher, request))
            _say_notes(settings, searcher, request, results)
        else:
            _each_line(settings, searcher, request, full=full, as_json=as_json)


def _available(searcher: TaskSearcher, request: SearchRequest) -> SearchRequest:
    """Return a request whose ranking needs no model that fails; report a failure."""
    try:
        searcher.ask_models(request)
    except ModelUnavailable as error:
        request = replace(request, offline=True)
        warn(f"{error.finding}: ranked by {searcher.recipe_of(request).name}")
    return request


def _answer(settings: Settings, task: Task, path: Path, *, as_json: bool) -> None:
    from searchapp.app.index import open_index
    from searchapp.cli.search_bodies import print_answer, read_body
    from searchapp.ranking.recipes import body_shard_warnings

    body = read_body(path)
    with closing(open_engine(settings)) as engine, closing(open_index(task, engine)) as index:
        warn_all(body_shard_warnings(path.name, body, task.index_mapping(), index.info.shards))
        answer = index.answer(body)
    if as_json:
        print_json({"task": task.name, **answer})
    else:
        print_answer(answer)


def _screen(
    settings: Settings,
    task: str,
    recipe: str | None,
    filters: Sequence[str],
    data: Path | None,
    annotator: str | None,
    access: Access,
) -> None:
    @contextmanager
    def opening(progress: Progress) -> Iterator[SearchScreen]:
        from searchapp.app.saved_searches import SearchQuery
        from searchapp.tui.search.screen import open_search_screen

        with ExitStack() as stack:

            @cache
            def palette_targets() -> PaletteTargets:
                from searchapp.tui.home.opener import PaletteTargets  # on demand: it imports all screens

                targets = PaletteTargets(settings, Path.cwd())
                stack.callback(targets.close)
                return targets

            query = SearchQuery("", recipe, tuple(map(_filter, filters)))
            screen = open_search_screen(
                *(load(task), query, settings, progress, warn),
                data=data,
                annotator=annotator,
                access=access,
                other_offers=lambda screen: palette_targets().offers(screen),
            )
            yield stack.enter_context(screen)

    run_screen(settings, "search", Path(task).stem, opening)


def _filter(given: str) -> FieldFilter:
    from searchapp.ranking.query_language import FieldFilter

    field, equals, value = given.partition("=")
    if not field or not equals:
        raise UsageError(f"the filter {given!r} is not FIELD=VALUE")
    return FieldFilter(field, value)


def _nothing(searcher: TaskSearcher, request: SearchRequest) -> str:
    """Return the reason for an empty result: no hits, or none from the requested rank on."""
    result = searcher.counts(request).total if request.first else 0
    if result:
        return (
            f"{searcher.task.name} has no rank {request.first + 1:,}: only {counted(result, 'document')} "
            f"{'matches' if result == 1 else 'match'}"
        )
    asked_for = "the query with these filters" if request.filters else "the query"
    return f"no document of {searcher.task.name} matches {asked_for}"


def _say_notes(
    settings: Settings,
    searcher: TaskSearcher,
    request: SearchRequest,
    results: Sequence[SearchResult],
    line: int | None = None,
) -> None:
    """Report the words of the query that find nothing; `line` is its line of the input."""
    where = "" if line is None else f"line {line:,}: "
    # Without hits on a later page, the number of hits is known to `_nothing` only.
    notes = searcher.notes(request, len(results) or request.first)
    for sentence in notes.sentences():
        say(settings, f"{where}{sentence}")


def _each_line(
    settings: Settings, searcher: TaskSearcher, request: SearchRequest, *, full: bool, as_json: bool
) -> None:
    """Search for each line of the input that has words.

    Raises:
        UsageError: a line is not a valid query.
        DataError: the input is not UTF-8.
    """
    from searchapp.ranking.query_language import BrokenQuery

    searches = []
    console = stdout_console()
    lines = enumerate(map(str.strip, _lines()), start=1)
    for number, words in ((number, line) for number, line in lines if line):
        line_request = replace(request, text=words)
        try:
            line_request = _available(searcher, line_request)
            results = searcher.search(line_request)
        except BrokenQuery as error:
            raise UsageError(f"line {number:,} of the input: {error}") from error
        if as_json:
            searches.append(_search_json(line_request, results))
        else:
            console.print(visible_line(words), style="bold underline", soft_wrap=True)
            print_results(results, full=full, is_ranked=searcher.is_ranked(line_request))
            console.print()
        _say_notes(settings, searcher, line_request, results, number)
    if as_json:
        print_json({"task": searcher.task.name, "searches": searches})


def _lines() -> Iterator[str]:
    try:
        yield from sys.stdin
    except UnicodeDecodeError as error:
        raise DataError("the input is not UTF-8 text") from error


def _open(searcher: TaskSearcher, request: SearchRequest, document_id: str, *, as_json: bool) -> None:
    opened = searcher.document(document_id, request)
    if opened is None:
        raise UsageError(f"no document of {searcher.task.name} has the id {document_id!r}")
    if as_json:
        print_json(
            {
                "task": searcher.task.name,
                "id": document_id,
                "matches": [list(span) for span in opened.matches],
                "document": dict(opened.source),
            }
        )
        return
    console = stdout_console()
    console.print(visible_line(document_id), style="cyan", soft_wrap=True)
    for name, value in opened.source.items():
        if name not in ("id", "text"):
            shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            console.print(f"{visible_line(name)}: {visible_line(shown)}", style="dim", soft_wrap=True)
    console.print(_highlighted(opened.text, list(opened.matches)), soft_wrap=True)


def _why(searcher: TaskSearcher, request: SearchRequest, document_id: str, *, as_json: bool) -> None:
    from searchapp.app.inspection.explanation import find_reason, status_sentence

    result, task = find_reason(searcher, request, document_id), searcher.task.name
    print_why(result, status_sentence(result, task), {"task": task}, as_json=as_json)


def _search_json(request: SearchRequest, results: Sequence[SearchResult]) -> dict[str, object]:
    hits = []
    for result in results:
        hit: dict[str, object] = {
            "rank": result.rank,
            "id": result.hit.document_id,
            "score": result.hit.score,
            "text": result.text,
            "matches": [list(span) for span in result.matches],
        }
        if result.explanation is not None:
            hit["explanation"] = result.explanation.to_json()
        hits.append(hit)
    described: dict[str, object] = {"query": request.text}
    if request.like is not None:
        described["like"] = request.like
    if request.offline:
        described["offline"] = True
    return {**described, "hits": hits}


def print_results(results: Sequence[SearchResult], *, full: bool = False, is_ranked: bool = True) -> None:
    """Print rank, id and score of each document, above a snippet; only the id of documents that are not ranked."""
    from rich.padding import Padding
    from rich.text import Text

    from searchapp.ranking.highlighting import collapse_whitespace, snippet

    console = stdout_console()

    def indented(text: Text) -> None:
        if sys.stdout.isatty():
            console.print(Padding(text, (0, 0, 0, 5)))  # wraps within its margins
        else:
            console.print(
                "\n".join(f"     {line}" for line in text.plain.split("\n")), markup=False, soft_wrap=True
            )

    for result in results:
        rank = (f"{result.rank if is_ranked else '':>3}", "bold")
        id_ = (visible_line(result.hit.document_id), "cyan")
        score = (f"  {result.hit.score:.4f}" if is_ranked else "", "dim")
        console.print(Text.assemble(rank, "  ", id_, score), soft_wrap=True)
        if full and sys.stdout.isatty():
            text, matches = result.text, list(result.matches)
        elif full:
            text, matches = collapse_whitespace(result.text, result.matches)
        else:
            text, matches = snippet(result.text, result.matches, SNIPPET_CHARACTERS)
        indented(_highlighted(text, matches))
        for line in _explained(result.explanation):
            indented(Text(line, style="dim"))


def _highlighted(text: str, matches: Sequence[Span]) -> Text:
    from rich.text import Text

    shown, spans = visible_spans(text, matches)
    highlighted = Text(shown)
    for start, end in spans:
        highlighted.stylize("bold yellow", start, end)
    return highlighted


def _explained(explanation: Explanation | None) -> list[str]:
    from searchapp.ranking.search_results import shorten_explanation

    lines = [] if explanation is None else shorten_explanation(explanation)
    return [f"{line.value:>10.4f}  {'  ' * line.depth}{visible(line.text)}" for line in lines]


@command(app)
def explain(
    settings: Settings,
    task: TaskArgument,
    document: str = argument("Id of the document."),
    topic: str = option("Id of the topic.", default=REQUIRED),
    data: DataOption = None,
    split: str | None = option(
        "Split of the topic; default: the first split that has it.", completes="splits"
    ),
    recipe: str | None = option("Recipe to rank with; default: the task's recipe.", completes="recipes"),
    set_: SetOption = None,
    depth: int | None = option(
        "Documents to rank; default: the task's depth. A document below it is searched for in a deeper ranking.",
        min=1,
    ),
    run_command: RunCommandOption = False,
    max_cost: MaxCostOption = None,
    as_json: JsonOption = False,
) -> None:
    """Explain the rank of a document for a topic, or why it has none.

    The topic is ranked as `rank` does; if the document is below the depth, a deeper ranking is made. The explanation of
    a score contains each signal of the recipe, the matching terms, the training topics that voted, and the features of
    trained models.
    """
    from searchapp.app.inspection.explanation import ExplainRequest
    from searchapp.app.inspection.explanation import explain as explained

    loaded = load(task)
    chosen = recipe_of(loaded, recipe, set_)
    if split is not None:
        loaded.info.require_split(split)
    collection = loaded.collection(data_of(settings, loaded, data))
    request = ExplainRequest(loaded, collection, chosen, topic, document, split, depth)
    with closing(open_engine(settings)) as engine:
        reranking = reranking_of(settings, run_command=run_command, max_cost=max_cost)
        result = explained(request, engine, for_person(settings), settings.home, reranking)
    warn_all(chosen.raised(result.depth))
    sentence = result.explained.sentence(
        loaded.name, f" for the topic {result.topic.id} ({loaded.name} {result.split})"
    )
    about = {
        "task": loaded.name,
        "split": result.split,
        "topic": result.topic.id,
        "recipe": chosen.name,
        "depth": result.depth,
        "extended_depth": result.explained.deeper,
    }
    print_why(result.explained.reason, sentence, about, as_json=as_json)


@command(app)
def analyze(
    settings: Settings,
    task: TaskArgument,
    text: str = argument("The text to analyze."),
    field: str | None = option(
        "Field whose analyzers to use; default: every text field.", completes="fields"
    ),
    analyzer: str | None = option("Name of an analyzer of the mapping.", completes="analyzers"),
    as_json: JsonOption = False,
) -> None:
    """Show each step from a text to the indexed terms.

    A field with a different analyzer for queries is shown twice, as `field` and as `search`.
    """

    from searchapp.app import analyze as use_case
    from searchapp.app.index import open_index

    loaded = load(task)
    use_case.require(loaded, field, analyzer)
    with closing(open_engine(settings)) as engine:
        analyses = use_case.analyze(loaded, open_index(loaded, engine), text, field=field, analyzer=analyzer)
    if as_json:
        described = [
            {analysis.kind: analysis.name, "steps": [asdict(step) for step in analysis.steps]}
            for analysis in analyses
        ]
        print_json({"task": loaded.name, "text": text, "analyses": described})
        return
    from rich.table import Table
    from rich.text import Text

    console = stdout_console()
    for analysis in analyses:
        table = Table(
            title=f"{analysis.kind} {analysis.name}", title_justify="left", box=None, pad_edge=False
        )
        table.add_column("step", style="cyan", overflow="fold")
        table.add_column("result", overflow="fold")
        for step in analysis.steps:
            shown = step.text if step.text is not None else " · ".join(token.term for token in step.tokens)
            table.add_row(f"{step.kind} {step.name}", Text(visible(shown)))
        console.print(table)
        console.print()
