"""The tokenizer of URLs and e-mail addresses, which are tokens beside the words of the standard tokenizer.

Sources: org.apache.lucene.analysis.email.UAX29URLEmailTokenizerImpl; RFC 3986 (URLs), RFC 5322 (addresses)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from searchapp.lucene.analysis.characters import as_set, code_units_end, parse_ranges, read_table
from searchapp.lucene.analysis.options import Options
from searchapp.lucene.analysis.tokenizers import (
    STANDARD_RULES,
    Spans,
    StandardTokenizer,
    Tokenizer,
    token_limit,
)

_OCTET = "(?:0?0?[0-9]|0?[1-9][0-9]|1[0-9][0-9]|2[0-4][0-9]|25[0-5])"
_IPV4 = rf"{_OCTET}(?:\.{_OCTET}){{3}}"
_HEX = "[0-9A-Fa-f]{1,4}"
_LAST_32_BITS = f"(?:{_IPV4}|{_HEX}:{_HEX})"
# By the number of groups before the two colons that stand for zeros.
_IPV6 = "|".join(
    [
        f"(?:{_HEX}:){{6}}{_LAST_32_BITS}",
        f"::(?:{_HEX}:){{5}}{_LAST_32_BITS}",
        *(
            f"(?:(?:{_HEX}:){{0,{before}}}{_HEX})?::(?:{_HEX}:){{{4 - before}}}{_LAST_32_BITS}"
            for before in range(5)
        ),
        f"(?:(?:{_HEX}:){{0,5}}{_HEX})?::{_HEX}",
        f"(?:(?:{_HEX}:){{0,6}}{_HEX})?::",
    ]
)
_LABEL = "[A-Za-z0-9](?:[-A-Za-z0-9]*[A-Za-z0-9])?"
_BRACKETED = rf"\[(?:{_IPV6})\]"
_HOST = rf"(?:{_BRACKETED}|{_LABEL}(?:\.{_LABEL})*)"
_ENCODED = "%[0-9A-Fa-f]{2}"
_PLAIN = "-._~A-Za-z0-9"
_DELIMITERS = "!$&'()*+,;="
_LOGIN = rf"(?:(?:[{_PLAIN}{_DELIMITERS}]|{_ENCODED})*(?::(?:[{_PLAIN}{_DELIMITERS}]|{_ENCODED})*)?@)?"
_PORT = "(?::[0-9]{1,5})?"
_PATH = rf"(?:/(?:[{_PLAIN};:@&=/]|{_ENCODED})*)?"
_AFTER = rf"(?:[{_PLAIN}{_DELIMITERS}:@/?]|{_ENCODED})*"
_FRAGMENT = rf"(?:\#{_AFTER})?"
_QUERY = rf"(?:\?{_AFTER})?"
_FILE_PATH = rf"/(?:[{_PLAIN}?:@&=/]|{_ENCODED})*"

_URL = re.compile(
    rf"https?://{_LOGIN}{_HOST}{_PORT}{_PATH}{_QUERY}{_FRAGMENT}"
    rf"|ftp://{_LOGIN}{_HOST}{_PORT}{_FILE_PATH}(?:;type=[aid])?{_FRAGMENT}"
    rf"|file://(?:{_HOST})?{_FILE_PATH}{_FRAGMENT}",
    re.IGNORECASE | re.ASCII,
)
_AFTER_HOST = re.compile(_PORT + _PATH + _QUERY + _FRAGMENT)
_BRACKETED_HOST = re.compile(_BRACKETED)
_NAME_PART = re.compile(rf"{_LABEL}\.")
_NUMBERS = re.compile(rf"{_OCTET}\.{_OCTET}\.{_OCTET}\.([0-9]{{1,3}})")
_LAST_OCTET = re.compile(_OCTET)

_QUOTED = r'"(?:[\x01-\x08\x0b\x0c\x0e-\x21\x23-\x5b\x5d-\x7e]|\\[\x00-\x7f])*+"'
_ATOM = r"[A-Za-z0-9!#$%&'*+,\-./=?^_`{|}~]"  # with comma and dot, unlike RFC 5322
# Atoms and quoted strings with dots between them: atoms before a quoted string end in a dot.
_BEFORE_QUOTED = rf"(?:{_ATOM}{_ATOM}++(?<=\.))?"
_MAILBOX = re.compile(
    rf"(?:{_ATOM}++|{_BEFORE_QUOTED}{_QUOTED}(?:\.{_BEFORE_QUOTED}{_QUOTED})*+(?:\.{_ATOM}++)?)@"
)
_MAIL_HOST = re.compile(r"\[(?:[\x01-\x08\x0b\x0c\x0e-\x5a\x5e-\x7f]|\\[\x00-\x7f])*\]")
_MAIL_TO = re.compile("(mailto):", re.IGNORECASE | re.ASCII)

_MAY_HAVE_HOST = re.compile(r"[.@\[]|://")
_MAY_START = re.compile(rf'{_ATOM}|["\[]')


@cache
def _top_level_domains() -> tuple[frozenset[str], int]:
    """Return the names of the domains and the greatest length."""
    names = frozenset(dict(read_table("url_email.txt"))["domains"].split())
    return names, max(map(len, names))


@cache
def _continues_word() -> re.Pattern[str]:
    """Return the characters after a host without scheme that make it a part of a word."""
    return re.compile(f"[{as_set(parse_ranges(dict(read_table('url_email.txt'))['word']))}]")


def _hosts(text: str, start: int, stop: int) -> Iterator[int]:
    """Yield the ends of the domain names with a known top-level domain that begin at an index."""
    names, longest = _top_level_domains()
    while part := _NAME_PART.match(text, start, stop):
        start = part.end()
        for end in range(min(stop, start + longest), start, -1):
            if text[start:end].lower() in names:
                yield end
                if text.startswith(".", end, stop):  # the root
                    yield end + 1


def _strict_hosts(text: str, start: int, stop: int) -> list[int]:
    """Return the ends of the hosts that begin at an index, domain names or addresses, in descending order."""
    ends = set(_hosts(text, start, stop))
    if bracketed := _BRACKETED_HOST.match(text, start, stop):
        ends.add(bracketed.end())
    return sorted(ends.union(_addresses(text, start, stop)), reverse=True)


def _addresses(text: str, start: int, stop: int) -> Iterator[int]:
    """Yield the ends of the IPv4 addresses that begin at an index."""
    if numbers := _NUMBERS.match(text, start, stop):
        for end in range(numbers.start(1) + 1, numbers.end() + 1):
            if _LAST_OCTET.fullmatch(text, numbers.start(1), end):
                yield end


def _mail_end(text: str, start: int, stop: int) -> int:
    """Return the end of the longest address that begins at an index, 0 if there is none."""
    mailbox = _MAILBOX.match(text, start, stop)
    if not mailbox:
        return 0
    literal = _MAIL_HOST.match(text, mailbox.end(), stop)
    return literal.end() if literal else max(_hosts(text, mailbox.end(), stop), default=0)


class UrlEmailTokenizer(StandardTokenizer):
    """Returns URLs, hosts with a known top-level domain, e-mail addresses, and words.

    The longest match counts, together with the character that must follow it.
    """

    ascii_rule = None  # hosts are joined

    def terms(self, text: str) -> list[str]:
        return super().terms(text) if not _MAY_HAVE_HOST.search(text) else Tokenizer.terms(self, text)

    def spans(self, text: str) -> Spans:
        if not _MAY_HAVE_HOST.search(text):
            return super().spans(text)
        return [(start, end) for start, end, _type in self._scan(text)]

    def types(self, text: str, spans: Spans) -> list[str]:
        found = {(start, end): type_ for start, end, type_ in self._scan(text) if type_}
        return [found.get(span) or STANDARD_RULES.type_of(text[span[0] : span[1]]) for span in spans]

    def _scan(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Yield the spans of tokens; the type is empty for a word."""
        classes = text.translate(STANDARD_RULES.classes)
        start = 0
        avoids_hosts = False
        while start < len(text):
            if not (_MAY_START.match(text, start) or STANDARD_RULES.start.match(classes, start)):
                start += 1
                continue
            stop = code_units_end(text, start, self._limit)
            end, type_ = 0, ""
            word_end = STANDARD_RULES.longest(classes, start, stop)
            if _MAY_START.match(text, start):
                end, type_ = self._special(text, start, stop, word_end, avoids_hosts)
                if type_ == "avoid":
                    avoids_hosts = True
                    continue
            end = end or word_end
            if end > start:
                yield start, end, type_
                avoids_hosts = False
            start = max(end, start + 1)

    @staticmethod
    def _special(text: str, start: int, stop: int, word_end: int, avoids_hosts: bool) -> tuple[int, str]:
        """Return the end and type of a URL or address that is at least as long as the word; (0, "") for none.

        The type "avoid" means that a host is a part of a longer word.
        """
        hosts = _strict_hosts(text, start, stop)
        # Length with the following character, then the order of the rules, of which the first counts.
        matches: list[tuple[int, int, int, str]] = []
        if url := _URL.match(text, start, stop):
            matches.append((url.end(), 0, url.end(), "<URL>"))
        for host in hosts:
            if (rest := _AFTER_HOST.match(text, host, stop)) and rest.end() > host:
                matches.append((rest.end(), 0, rest.end(), "<URL>"))
            follows = _continues_word().match(text, host) if host < stop else None
            if host < stop and not follows:
                matches.append((host + 1, -1, host, "<URL>"))
            elif not avoids_hosts:
                if follows:
                    is_address = host in _addresses(text, start, stop)
                    matches.append((host + 1, -2 if is_address else -4, host, "avoid"))
                else:
                    matches.append((host, -3, host, "<URL>"))
        if mail := _mail_end(text, start, stop):
            matches.append((mail, -6, mail, "<EMAIL>"))
        if (scheme := _MAIL_TO.match(text, start, stop)) and (mail := _mail_end(text, scheme.end(), stop)):
            matches.append((mail, -5, scheme.end(1), "<ALPHANUM>"))
        if not matches:
            return 0, ""
        length, _order, end, type_ = max(matches)
        return (end, type_) if length >= word_end else (0, "")


def url_email_tokenizer(options: Options) -> Tokenizer:
    """Make a tokenizer of type `uax_url_email`."""
    limit = token_limit(options)
    if limit == 1:  # see `standard_tokenizer`
        raise options.not_supported("`max_token_length` 1")
    return UrlEmailTokenizer(limit)
