"""`analysis.VERSION` must be raised when a piece gives other terms.

`python -m tests.analysis.test_version` records the terms after the version was raised.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from searchapp.files import digest_json
from searchapp.lucene import analysis
from searchapp.lucene.analysis.registry import BUILT_IN, CHAR_FILTERS, TOKEN_FILTERS, TOKENIZERS
from tests.analysis.parity import built_analyzer
from tests.analysis.test_recorded import RECORDED, _analyzer

FILE = Path(__file__).parents[1] / "fixtures" / "analysis_version.json"

TEXT = (
    "<p>The QUICK brown foxes' <b>running</b> e-mail&nbsp;addresses: o'neil@example.org, 3.14 and 1,000 &amp; café "
    "naïve Straße ŒUVRE ﬁne ÅNGSTRÖM İstanbul ΣΊΣΥΦΟΣ Москва 北京大学 東京タワー 한국어 ไทย हिन्दी עברית العربية "
    "𝒳𝓎 👩‍👩‍👧 🇩🇪 a_b c.d e:f g-h don't wi-fi PowerShot J2SE 500-42 ponies relational happily generalizations</p>\n"
)


def terms() -> dict[str, str]:
    """Return digests of the terms and positions of the cases' texts and of `TEXT`, by each recorded analyzer."""
    digests = {}
    for param in RECORDED:
        (case,) = param.values
        assert isinstance(case, dict) and isinstance(param.id, str)
        analyzer = built_analyzer(_analyzer(case))
        digests[param.id] = digest_json([analyzer.terms(text) for text in (case["text"], TEXT)])[:16]
    return digests


def test_terms_change_only_with_the_version() -> None:
    recorded = json.loads(FILE.read_text(encoding="utf-8"))
    changed = [name for name, digest in terms().items() if recorded["terms"].get(name) != digest]
    assert not changed or recorded["version"] != analysis.VERSION, (
        "raise VERSION in searchapp/lucene/analysis"
    )
    assert recorded == {"version": analysis.VERSION, "terms": terms()}, "record the terms again"


def test_every_piece_is_recorded() -> None:
    used = set()
    for param in RECORDED:
        (case,) = param.values
        assert isinstance(case, dict)
        used |= set(_names(case["analyzer"]))
    assert {*BUILT_IN, *CHAR_FILTERS, *TOKENIZERS, *TOKEN_FILTERS} <= used


def _names(definition: Any) -> list[str]:
    """Return all names and types of pieces in the definition of an analyzer."""
    if isinstance(definition, str):
        return [definition]
    inner = definition.values() if isinstance(definition, dict) else definition
    return [name for part in inner for name in _names(part)] if isinstance(definition, dict | list) else []


def main() -> int:
    """Record the terms, unless they have changed without a new version."""
    recorded = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    old, new = recorded.get("terms", {}), terms()
    if recorded.get("version") == analysis.VERSION and any(old[name] != new.get(name) for name in old):
        print("the terms have changed: raise VERSION in searchapp/lucene/analysis first", file=sys.stderr)
        return 1
    content = {"version": analysis.VERSION, "terms": new}
    FILE.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
