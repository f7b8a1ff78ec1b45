"""Why a document is where it is in each of two runs: what each run's recipe makes of it, one below the other."""

from __future__ import annotations

from collections.abc import Sequence

from searchapp.app.explain import Explained
from searchapp.tui.content import Content
from searchapp.tui.rows import shortened
from searchapp.tui.search.why import LONGEST_ID, explained, sentence, shares
from searchapp.tui.status import said_by
from searchapp.tui.texts import TextDialog

Found = tuple[str, Explained | Exception]
"""The name of a run, and what became of a document there, or why nobody can say."""


class ExplainedTwice(TextDialog):
    """Says why a document is where it is in two runs of a task, `of_what`."""

    def __init__(self, document: str, found: Sequence[Found], of_what: str) -> None:
        super().__init__(f"{shortened(document, LONGEST_ID)} in both runs")
        self._found = found
        self._of_what = of_what

    def text(self) -> Content:
        lines: list[Content] = []
        for name, found in self._found:
            lines += [Content("")] if lines else []
            lines.append(Content.styled(name, "bold $accent"))
            lines += self._about(found)
        return Content("\n").join(lines)

    def _about(self, found: Explained | Exception) -> list[Content]:
        if isinstance(found, Exception):
            return [Content.styled(said_by(found), "$error")]
        why = found.why
        lines = [Content.styled(sentence(why.document_id, found.said(self._of_what)), "bold")]
        if why.explanation is not None:
            lines += [*shares(why, self.room), explained(why.explanation, self.room)]
        return lines
