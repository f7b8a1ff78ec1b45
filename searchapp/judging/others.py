"""What an annotator sees of others' judgments, and whether a judgment was made in view of them.

Agreement means something only as far as annotators judge independently. So others' opinions on a document are hidden
until the annotator's own stands, unless they want to see them always, or, when they judge blind, never.
"""

from __future__ import annotations

from enum import StrEnum

from searchapp.judging.events import Action
from searchapp.judging.fold import Key, Opinion
from searchapp.judging.session import Session

JUDGED = (Action.grade, Action.cant_tell)
"""What makes others' opinions visible."""


class Show(StrEnum):
    """When others' opinions on a document are shown."""

    always = "always"
    after_own = "after one's own"
    never = "never"


class OthersOpinions:
    """What one annotator sees of what others say."""

    def __init__(self, session: Session, show: Show = Show.after_own) -> None:
        self.show = show
        self._session = session
        self._shown: set[Key] = set()

    def others(self, topic_id: str, document_id: str) -> list[Opinion]:
        """What others say of a document, as far as it is to be shown now; it counts as seen from now on."""
        opinions = self._others(topic_id, document_id) if self._is_open(topic_id, document_id) else []
        if opinions:
            self._shown.add((topic_id, document_id))
        return opinions

    def saw_others(self, topic_id: str, document_id: str) -> bool | None:
        """Whether the next judgment of a document is made in view of others' opinions; None: that is not known.

        It is once they could be seen, whatever happens to the annotator's own opinion afterwards. What was given and
        taken back without being looked at again, as after a wrong key, has opened nobody's eyes; of what was taken
        back in an earlier session that is not known, and it is taken to have been looked at.
        """
        view, mine = self._session.view, self._session.author.annotator
        if all(name == mine for name in view.annotators_of(topic_id, document_id)):
            return False
        own = view.said_by(mine, topic_id, document_id)
        if (topic_id, document_id) in self._shown or any(event.saw_others for event in own):
            return True
        if self.show is not Show.never and self._others(topic_id, document_id):
            earlier = any(event.action in JUDGED and not self._session.made(event) for event in own)
            if earlier or self._is_open(topic_id, document_id):
                return True
        return None if any(event.saw_others is None for event in own) else False

    def _is_open(self, topic_id: str, document_id: str) -> bool:
        return self.show is Show.always or (
            self.show is Show.after_own and self._session.is_judged(topic_id, document_id)
        )

    def _others(self, topic_id: str, document_id: str) -> list[Opinion]:
        mine = self._session.author.annotator
        opinions = self._session.view.opinions(topic_id, document_id)
        return [opinion for opinion in opinions if opinion.annotator != mine]
