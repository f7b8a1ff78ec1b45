"""Wiki markup, and what it means: https://www.mediawiki.org/wiki/Help:Formatting, and the templates of ProofWiki.

mwparserfromhell, the parser that others use, does not serve here: it takes braces of LaTeX for templates, does not say
where in the text its nodes stand, and takes time in proportion to the square of a text with what is not closed.
"""

from __future__ import annotations

from searchapp.formats.wiki.rendering import rendered
from searchapp.formats.wiki.templates import ASIDE, BOLD, HEADING, ITALIC, LINK

__all__ = ["ASIDE", "BOLD", "HEADING", "ITALIC", "LINK", "rendered"]
