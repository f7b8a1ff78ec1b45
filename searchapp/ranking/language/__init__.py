"""What people type to search: words, and a few signs that say more than words.

    normal subgroup            documents about these words, ranked by the recipe
    "normal subgroup"          also those with the phrase
    +normal -abelian           must have, must not have
    algebr*                    words that begin so
    speaker:CLINTON            a value of a field
    +(abelian "prime ideal")  groups

`syntax` reads the text, `compiled` makes a search body of it. Engines know nothing of it: they are asked in
Elasticsearch's query DSL, so that both give the same hits.
"""

from searchapp.ranking.language.compiled import Compiler, Filter
from searchapp.ranking.language.fields import Fields
from searchapp.ranking.language.syntax import BrokenQuery, parsed, require_text, without_signs

__all__ = ["BrokenQuery", "Compiler", "Fields", "Filter", "parsed", "require_text", "without_signs"]
