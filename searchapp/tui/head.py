"""The first line of a screen: whose work it is, whether it is saved, what was just done, what came from elsewhere."""

from __future__ import annotations

from searchapp.judging.presence import Presence
from searchapp.judging.session import Outcome, Session
from searchapp.judging.shared import waiting_words
from searchapp.tui.content import Content, Plain
from searchapp.tui.rows import shortened
from searchapp.tui.status import unsaved

TITLE_CELLS = 60
"""A longer title is cut: what is saved, and what is not, must be visible after it."""


class Banner(Plain):
    """Says where one is, and what was just done."""

    def __init__(self, title: str) -> None:
        super().__init__(id="head")
        self._title = shortened(title, TITLE_CELLS)
        self._status = Content("")
        self.lasts = False
        """Whether an answer that arrives leaves what is said: it came of what somebody did since they asked."""
        self._waits = False

    def tell(self, words: str, look: str = "$faint", *, add: bool = False, lasts: bool = True) -> None:
        """Say something, in the place of what was said before or behind it.

        What does not last goes with the answer to what was asked before.
        """
        self.lasts = lasts or (add and self.lasts)
        self._waits = False
        said = Content.styled(words, look)
        self._status = Content("   ").join([self._status, said]) if add else said
        self.draw()

    def wait(self, words: str = "") -> None:
        """Say that something is waited for, until it comes."""
        self.tell(words)
        self._waits = True

    def came(self) -> None:
        """Take back that something is waited for, unless something else was said meanwhile."""
        if self._waits:
            self.tell("")

    def retitle(self, title: str) -> None:
        """Say that one is somewhere else."""
        self._title = shortened(title, TITLE_CELLS)
        self.draw()

    def draw(self) -> None:
        """Show how things are now."""
        self.update(Content.assemble((f"{self._title}  ", "bold"), self._status), layout=False)


class Head(Banner):
    """Says of a session what an annotator must know."""

    def __init__(self, session: Session, title: str, presence: Presence | None) -> None:
        super().__init__(title)
        self._session = session
        self._presence = presence
        self._told: object = None

    def tell_outcome(self, outcome: Outcome, what: str) -> None:
        """Say that an action is saved, or that it is not."""
        self.tell(f"✓ saved  {what}" if outcome.is_saved else "", "$success")

    def look_around(self) -> None:
        """Draw again if the cluster, or other windows, are no longer as they were when it was drawn."""
        if self._around() != self._told:
            self.draw()

    def draw(self) -> None:
        waiting = self._session.waiting
        self._told = self._around()
        self.set_class(bool(waiting), "-waiting")
        if waiting:
            words = Content.styled(unsaved(waiting, self._session.not_saved), "bold")
        else:
            count, trouble = self._of_team()
            title = (f"{self._title}  ", "bold")
            words = Content.assemble(title, self._of_windows(), count, self._status, trouble)
        self.update(words, layout=False)

    def _around(self) -> tuple[int, str | None, int]:
        synchronizer, presence = self._session.synchronizer, self._presence
        why = None if synchronizer is None else synchronizer.trouble
        return self._session.unsent, why, 0 if presence is None else len(presence.others)

    def _of_windows(self) -> Content:
        """That the same annotator has other windows open."""
        others = 0 if self._presence is None else len(self._presence.others)
        return Content.styled(f"▲ {others + 1} windows  ", "bold $warning") if others else Content("")

    def _of_team(self) -> tuple[Content, Content]:
        """How many judgments wait for the cluster, and why if it does not take them."""
        unsent, why, _ = self._around()
        if not unsent and why is None:
            return Content(""), Content("")
        words = waiting_words(unsent)
        if why is None:
            return Content(""), Content.styled(f"  {words}", "$faint")  # it is about to be sent
        return Content.styled(f"▲ {words}  ", "bold $warning"), Content.styled(f"  {why}", "$faint")
