"""`analysis.VERSION` stands for the terms that each piece gives: whoever changes them must raise it.

python -m tests.analysis.test_version        records the terms again, once the version was raised
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
    """A digest of the terms and positions that each analyzer of the recorded cases gives to the text and the cases'."""
    found = {}
    for param in RECORDED:
        (case,) = param.values
        assert isinstance(case, dict) and isinstance(param.id, str)
        analyzer = built_analyzer(_analyzer(case))
        found[param.id] = digest_json([analyzer.terms(text) for text in (case["text"], TEXT)])[:16]
    return found


def test_the_terms_are_those_of_the_version() -> None:
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


def _names(described: Any) -> list[str]:
    """All names and types of pieces in the description of an analyzer."""
    if isinstance(described, str):
        return [described]
    inner = (
        described.values()
        if isinstance(described, dict)
        else described
        if isinstance(described, list)
        else ()
    )
    return [name for one in inner for name in _names(one)]


def main() -> int:
    """Record the terms, unless they have changed without another version."""
    before = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    known, now = before.get("terms", {}), terms()
    if before.get("version") == analysis.VERSION and any(known[name] != now.get(name) for name in known):
        print("the terms have changed: raise VERSION in searchapp/lucene/analysis first", file=sys.stderr)
        return 1
    described = {"version": analysis.VERSION, "terms": now}
    FILE.write_text(json.dumps(described, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
