"""What a run has learned from people's judgments, by what its manifest records of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from searchapp.digests import digest_json
from searchapp.errors import DataError
from searchapp.model import Example
from searchapp.runs.directory import EXAMPLES, Manifest

_KEY = "judged"

_SPLITS, _CHOSEN = "splits", "chosen"


def solved_by(splits: Sequence[str], *, chosen: bool = False) -> dict[str, Any]:
    """What a manifest's recipe records of the splits whose solved topics a run learns from.

    `chosen` says that somebody has chosen them among those that it may learn from.
    """
    return {EXAMPLES: {_SPLITS: list(splits)} | ({_CHOSEN: True} if chosen else {})}


def chosen_splits(manifest: Manifest) -> tuple[str, ...]:
    """The splits whose solved topics a run has learned from because somebody has chosen them."""
    found = manifest.recipe.get(EXAMPLES)
    if not isinstance(found, Mapping) or not found.get(_CHOSEN) or not isinstance(found.get(_SPLITS), list):
        return ()
    return tuple(map(str, found[_SPLITS]))


def described(judged: Iterable[Example]) -> dict[str, Any]:
    """What a manifest's recipe records of the judged topics that a run was made with."""
    grades = {example.topic.id: dict(example.gold) for example in judged}
    if not grades:
        return {}
    return {_KEY: {"topics": len(grades), "digest": digest_json(grades), "ids": sorted(grades)}}


def digest(manifest: Manifest) -> str | None:
    """The digest of the judgments that a run was made with; None without any."""
    found = _recorded(manifest).get("digest")
    return None if found is None else str(found)


def topics_of(path: Path, manifest: Manifest) -> frozenset[str]:
    """The judged topics that the run directory `path` has learned from.

    Raises:
        DataError: it was made before searchapp recorded which ones.
    """
    found = _recorded(manifest)
    if "topics" in found and not isinstance(found.get("ids"), list):
        raise DataError(
            f"{path} has learned from {found['topics']} judged topics and does not say from which: rank again"
        )
    return frozenset(found.get("ids", ()))


def warning(path: Path, manifest: Manifest, scored: Collection[str], remedy: str) -> str | None:
    """A sentence for who scores topics that a run has learned from; None when there are none of them.

    `remedy` says what to do, where other topics are scored too.
    """
    found = _recorded(manifest)
    if not found:
        return None
    learned = f"{path} has learned from judgments (rank --with-judgments)"
    if not isinstance(found.get("ids"), list):
        return (
            f"{learned} on {found.get('topics')} topics and does not say which, so its figures may be too good: "
            "rank again"
        )
    seen = topics_of(path, manifest).intersection(scored)
    if not seen:
        return None
    if len(seen) == len(scored):
        those = "the only scored topic" if len(scored) == 1 else f"all {len(scored):,} scored topics"
        advice = "judge others, and score these"
    else:
        those, advice = f"{len(seen):,} of the {len(scored):,} scored topics", remedy
    return f"{learned} on {those}, so its figures are too good to be fair: {advice}"


def tuned_warning(path: Path, manifest: Manifest) -> str | None:
    """A sentence for who scores a run whose recipe was tuned on its topics, or on a split that is reported."""
    tuned = manifest.recipe.get("tuned")
    splits = tuned.get("splits") if isinstance(tuned, Mapping) else None
    if not isinstance(tuned, Mapping) or not isinstance(splits, list):
        return None
    on = f"the recipe of {path} was tuned on {', '.join(map(str, splits))}"
    if manifest.split in splits:
        return f"{on}, whose topics these are, so its figures are too good to be fair"
    if tuned.get("reported"):
        return f"{on}, which figures are reported for: say so where its figures are shown"
    return None


def _recorded(manifest: Manifest) -> Mapping[str, Any]:
    found = manifest.recipe.get(_KEY)
    return found if isinstance(found, Mapping) else {}
