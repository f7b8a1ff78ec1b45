"""Documents and topics of TREC collections: SGML that is rarely well-formed, or XML.

    <DOC><DOCNO> FT911-3 </DOCNO> <HEADLINE> ... </HEADLINE> <TEXT> ... </TEXT></DOC>

    <top> <num> Number: 301 <title> Topic: ... <desc> Description: ... <narr> Narrative: ... </top>
    <topics><topic number="1" type="faceted"><query>...</query><description>...</description></topic></topics>

Both are read with one lenient reader of tags, because files in XML often have unescaped characters. Text that is not
UTF-8 is read as Windows-1252, which old collections use, and noted. Files may be compressed with gzip.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, BinaryIO

from searchapp.formats.encoding import LONGEST_LINE, UnpackedFile, foreign_kind, open_unpacked
from searchapp.formats.problems import EntryProblems, Problems, unusable_id
from searchapp.formats.records import Record
from searchapp.model import Topic
from searchapp.text import counted

LONGEST = LONGEST_LINE  # bytes of a document, or of a file of topics

# The elements with a document's title, the best first, and those with its text.
TITLES = ("TITLE", "HEADLINE", "TTL", "HL", "TI", "HEAD")
TEXTS = "TEXT|LP|LEADPARA"

# The elements whose content is a topic's text, the best first.
TOPIC_TEXTS = ("title", "query", "question", "description", "summary", "topic_text")

_IDS = ("number", "num", "id", "qid", "query_id", "identifier", "topic_id")
_NAMES = {"desc": "description", "narr": "narrative", "smry": "summary", "dom": "domain", "con": "concepts"}

# What old topics repeat before the content of an element.
_LABEL = re.compile(
    r"\s*(?:Number|Topic|Domain|Description|Summary|Narrative|Concept\(s\)|Factor\(s\)|Definition\(s\))\s*:",
    re.I,
)

_DOCUMENT_TAG = re.compile(rb"(</?DOC(?:\s[^>]*)?>)", re.I)
_DOCNO = re.compile(r"<DOCNO>(.*?)</DOCNO>", re.I | re.S)
_ID_OF_TAG = re.compile(r"""<DOC\s[^>]*\bid\s*=\s*["']?([^"'\s>]+)""", re.I)
_HIDDEN = re.compile(
    r"<!--.*?-->|<(DOCNO|DOCID|DOCOLDNO|DOCHDR|script|style)\b[^>]*>.*?</\1\s*>", re.I | re.S
)
_TEXT = re.compile(rf"<({TEXTS})(?:\s[^>]*)?>(.*?)(?:</\1\s*>|\Z)", re.I | re.S)
_TITLES = [re.compile(rf"<{name}(?:\s[^>]*)?>(.*?)</{name}\s*>", re.I | re.S) for name in TITLES]
_TAG = re.compile(r"</?[A-Za-z!?][^<>]*>")

_COMMENT = re.compile(r"<!--.*?-->|<\?.*?\?>", re.S)
_CDATA = re.compile(r"<!\[CDATA\[(.*?)\]\]>", re.S)
_TOPIC = re.compile(r"<(top|topic)(\s[^>]*)?>(.*?)(?=</\1\s*>|<\1[\s>]|\Z)", re.I | re.S)
_PART = re.compile(r"<(/?)([A-Za-z][\w.-]*)[^<>]*>")
_ATTRIBUTE = re.compile(r"""([\w.-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')""")


class TrecContent(Enum):
    """What a file of a collection contains."""

    documents = "documents"
    topics = "topics"


def content_of(head: bytes) -> TrecContent | None:
    """Detect documents or topics by the beginning of a file; None if it has neither."""
    match = re.search(rb"<(doc|topics?|top)[\s>]", head, re.I)
    if match is None:
        return None
    return TrecContent.documents if match[1].lower() == b"doc" else TrecContent.topics


def read_documents(path: Path, problems: Problems) -> Iterator[Record]:
    """Yield the documents of a file with the keys `id`, `title` (may be empty) and `text`; `where` is the first line.

    The text is that of the elements `TEXTS`, without them that of the document without its title.
    """
    block: list[bytes] = []
    start = size = 0  # the line of the open document, and its bytes
    foreign: list[int] = []  # the lines of documents that are not UTF-8
    for number, raw in _lines(path, problems):
        for piece in _DOCUMENT_TAG.split(raw):
            is_tag = _DOCUMENT_TAG.fullmatch(piece) is not None
            if is_tag and start and not piece.startswith(b"</"):
                problems.add(
                    path, "unfinished document", f"line {start}", f"line {number} begins another one"
                )
            if is_tag and not piece.startswith(b"</"):
                block, start, size = [], number, 0
            if start and size <= LONGEST:
                block.append(piece)
                size += len(piece)
            if is_tag and start and piece.startswith(b"</"):
                entry = EntryProblems(path, f"line {start}", problems)
                if size > LONGEST:
                    entry.wrong("document too long", f"it has more than {LONGEST:,} bytes: split it")
                elif values := _document(_decoded(b"".join(block), foreign, start), entry):
                    yield Record(entry.where, values)
                start = 0
    if start:
        problems.add(path, "unfinished document", f"line {start}", "the file ends before </DOC>")
    if foreign:
        detail = f"{counted(len(foreign), 'document')} read as Windows-1252"
        problems.note(path, "not UTF-8", f"line {foreign[0]}", detail)


def _lines(path: Path, problems: Problems) -> Iterator[tuple[int, bytes]]:
    try:
        with open_unpacked(path) as file:
            if _is_readable(file, path, problems):
                yield from enumerate(file, 1)
    except OSError as error:
        problems.add_unopened(path, error)


def _is_readable(file: UnpackedFile, path: Path, problems: Problems) -> bool:
    foreign = None if content_of(file.head) else foreign_kind(file.head)
    if foreign:
        problems.add(path, "unsupported file", detail=str(foreign), skippable=False)
    return foreign is None


def _decoded(raw: bytes, foreign: list[int], line: int) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        foreign.append(line)
        return raw.decode("cp1252", "replace")


def _document(text: str, entry: EntryProblems) -> dict[str, str] | None:
    match = _DOCNO.search(text) or _ID_OF_TAG.match(text)
    if match is None:
        entry.wrong("missing id", "the document has no <DOCNO>")
        return None
    id_ = html.unescape(match[1].strip())
    if problem := unusable_id(id_):
        entry.wrong(*problem)
        return None
    text = _HIDDEN.sub(" ", text)
    titles = (pattern.search(text) for pattern in _TITLES)
    title = next((found for found in titles if found and _plain(found[1])), None)
    texts = [found[2] for found in _TEXT.finditer(text)]
    if not texts:
        texts = [text if title is None else text[: title.start()] + " " + text[title.end() :]]
    values = {
        "id": id_,
        "title": "" if title is None else " ".join(_plain(title[1]).split()),
        "text": _plain("\n".join(texts)),
    }
    if not values["title"] and not values["text"]:
        entry.wrong("blank text", "the document has neither title nor text")
        return None
    return values


def _plain(markup: str) -> str:
    """Return the text of SGML: without tags, with entities as characters, without blank lines."""
    text = html.unescape(_TAG.sub(" ", markup))
    return "\n".join(filter(None, (" ".join(line.split()) for line in text.splitlines())))


def read_topics(path: Path, problems: Problems) -> list[Record]:
    """Return the topics of a file with the keys `id`, `text` and those of their elements; all have the same keys.

    The text is the content of the first element of `TOPIC_TEXTS`, or of a topic without elements.
    """
    try:
        with open_unpacked(path) as file:
            if not _is_readable(file, path, problems):
                return []
            raw = file.read(LONGEST + 1)
    except OSError as error:
        problems.add_unopened(path, error)
        return []
    if len(raw) > LONGEST:
        problems.add(path, "file too large", detail=f"topics may have {LONGEST:,} bytes", skippable=False)
        return []
    reported, foreign = len(problems), list[int]()
    text = _decoded(raw, foreign, 1)
    if foreign:
        problems.note(path, "not UTF-8", detail="it is read as Windows-1252")
    text = _COMMENT.sub(lambda match: "\n" * match[0].count("\n"), text)
    text = _CDATA.sub(lambda match: html.escape(match[1]), text)
    topics: list[Record] = []
    seen: set[str] = set()
    line, counted_to = 1, 0
    for match in _TOPIC.finditer(text):
        line, counted_to = line + text.count("\n", counted_to, match.start()), match.start()
        entry = EntryProblems(path, f"line {line}", problems)
        values = _topic(match[2] or "", match[3], entry)
        if entry.good and values["id"] in seen:
            entry.wrong("duplicate id", f"{values['id']}; the first one counts")
        if entry.good:
            seen.add(values["id"])
            topics.append(Record(entry.where, values))
    if not topics and len(problems) == reported:
        problems.add(path, "empty file", detail="it has no <top> and no <topic>", skippable=False)
    keys = dict.fromkeys(key for topic in topics for key in topic.values)
    return [Record(where, {key: values.get(key, "") for key in keys}) for where, values in topics]


def _topic(attributes: str, content: str, entry: EntryProblems) -> dict[str, str]:
    values: dict[str, list[str]] = {}
    for name, *quoted in _ATTRIBUTE.findall(attributes):
        values.setdefault(_key(name), []).append(html.unescape("".join(quoted)))
    parts = list(_PART.finditer(content))
    ends = [part.start() for part in parts[1:]] + [len(content)]
    for part, end in zip(parts, ends, strict=False):
        if not part[1]:  # the content of an element ends at the next tag, because old topics have no end tags
            text = _LABEL.sub("", html.unescape(content[part.end() : end]), count=1)
            values.setdefault(_key(part[2]), []).append(" ".join(text.split()))
    joined = {name: "\n".join(filter(None, texts)) for name, texts in values.items()}
    id_ = next((joined.pop(name) for name in _IDS if joined.get(name)), "")
    chosen = next((name for name in TOPIC_TEXTS if joined.get(name)), None)
    bare = "" if parts else " ".join(html.unescape(content).split())
    text = joined.pop(chosen) if chosen else bare
    if not id_:
        entry.wrong("missing id", "the topic has neither <num> nor the attribute number")
    elif problem := unusable_id(id_):
        entry.wrong(*problem)
    elif not text:
        entry.wrong("blank text", "the topic has no title, query or description")
    return {"id": id_, "text": text, **{name: text for name, text in joined.items() if name not in _IDS}}


def _key(tag: str) -> str:
    name = re.sub(r"[^a-z0-9_]", "_", tag.lower())
    name = _NAMES.get(name, name)
    return f"topic_{name}" if name in ("text", "topic") or not name[0].isalpha() else name


def write_document(file: BinaryIO, id_: str, title: str, text: str) -> None:
    """Write a document as SGML, with its markup characters as entities."""
    title_element = f"<TITLE>{_escaped(title)}</TITLE>\n" if title else ""
    file.write(
        f"<DOC>\n<DOCNO>{_escaped(id_)}</DOCNO>\n{title_element}"
        f"<TEXT>\n{_escaped(text)}\n</TEXT>\n</DOC>\n".encode()
    )


def write_topics(file: BinaryIO, topics: Iterable[Topic]) -> None:
    """Write topics with their fields as XML."""
    file.write(b"<topics>\n")
    for topic in topics:
        elements = {"title": topic.text, **_texts(topic.fields)}
        file.write(f'<topic number="{html.escape(topic.id)}">\n'.encode())
        for name, text in elements.items():
            file.write(f"<{name}>{_escaped(text)}</{name}>\n".encode())
        file.write(b"</topic>\n")
    file.write(b"</topics>\n")


def _texts(fields: Mapping[str, Any]) -> dict[str, str]:
    names: Sequence[str] = ("title", *_IDS)
    return {
        name: str(value)
        for name, value in fields.items()
        if isinstance(value, str | int | float) and name not in names
    }


def _escaped(text: str) -> str:
    """Return the text for an element: XML has no control characters except blanks and line ends."""
    return re.sub(
        r"[\x00-\x08\x0b\x0c\x0e-\x1f]", "\N{REPLACEMENT CHARACTER}", html.escape(text, quote=False)
    )
