"""Lists of labels that the official scorer of Wikidata's answer types does not stop at.

It looks for each predicted label in the *printed* gold list, one after the other, and stops where it finds one as a
part of a label that is not itself in the list: "city" where the gold has "big city". It is content with the first label
that it finds whole, and where that stands in the prediction does not count. So a list in which every label stands
behind all labels that it is a part of is safe: if the gold has one of those, that one is found first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence


class WholeLabels:
    """The labels of a vocabulary, by those that they are a part of; labels that it lacks are not looked at."""

    def __init__(self, vocabulary: Iterable[str]) -> None:
        # Longest first, so that the order is the same whatever the order of the vocabulary.
        self._printed = {
            label: str([label]) for label in sorted(vocabulary, key=lambda one: (-len(str([one])), one))
        }
        self._known: dict[str, tuple[str, ...]] = {}

    def wholes(self, label: str) -> Sequence[str]:
        """The other labels of the vocabulary that a label is a part of when they are printed, the longest first."""
        if label not in self._known:
            self._known[label] = tuple(
                other for other, printed in self._printed.items() if label in printed and other != label
            )
        return self._known[label]

    def completed(self, labels: Iterable[str]) -> list[str]:
        """The labels, in their order, each behind all those of the vocabulary that it is a part of."""
        found: dict[str, None] = {}
        for label in labels:
            self._add(label, found, set())
        return list(found)

    def _add(self, label: str, found: dict[str, None], above: set[str]) -> None:
        if label in found or label in above:
            return
        for whole in self.wholes(label):
            self._add(whole, found, above | {label})
        found[label] = None
