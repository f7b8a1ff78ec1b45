"""Documents and topics of TREC collections."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import Any

import pytest

from searchapp.formats import trec_collections
from searchapp.formats.problems import Problems
from searchapp.formats.trec_collections import TrecContent, content_of
from searchapp.model import Topic
from tests.files import messages


def read(
    tmp_path: Path, content: str | bytes, *, topics: bool = False
) -> tuple[list[Any], list[str], list[str]]:
    """Return records, problems and notes of a file with this content."""
    path = tmp_path / "file"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    problems = Problems()
    reader = trec_collections.read_topics if topics else trec_collections.read_documents
    found = [(where, values) for where, values in reader(path, problems)]
    notes = [] if problems.notes is None else [str(note) for note in problems.notes.problems]
    return found, messages(problems, path), [note.removeprefix(f"{path}: ") for note in notes]


def topics_of(tmp_path: Path, content: str | bytes) -> list[dict[str, str]]:
    found, problems, _notes = read(tmp_path, content, topics=True)
    assert problems == []
    return [values for _where, values in found]


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (  # Financial Times
            "<DOC>\n<DOCNO>FT911-3</DOCNO>\n<HEADLINE>\nFT  14 MAY 91 / Jobs\n</HEADLINE>\n<TEXT>\nA &amp; B\n\n"
            "<P>C</P></TEXT>\n<PUB>FT</PUB>\n</DOC>",
            {"id": "FT911-3", "title": "FT 14 MAY 91 / Jobs", "text": "A & B\nC"},
        ),
        (  # Wall Street Journal
            "<DOC>\n<DOCNO> WSJ1 </DOCNO>\n<HL> A title </HL>\n<LP> Lead. </LP>\n<TEXT>\nRest\n</TEXT>\n</DOC>",
            {"id": "WSJ1", "title": "A title", "text": "Lead.\nRest"},
        ),
        (  # a web page
            "<doc><docno>G1</docno><DOCHDR>\nhttp://x\n</DOCHDR><html><head><title>T</title><style>p {}</style>"
            "</head><body>1 < 2<br>x<!-- no --></body></html></doc>",
            {"id": "G1", "title": "T", "text": "1 < 2 x"},
        ),
        ("<DOC id='a.1' type='story'><TEXT>x</TEXT></DOC>", {"id": "a.1", "title": "", "text": "x"}),
        ("<DOC><DOCNO>1</DOCNO><TITLE>only</TITLE></DOC>", {"id": "1", "title": "only", "text": ""}),
        ("<DOC><DOCNO>1</DOCNO><TITLE></TITLE><HEAD>x</HEAD><TEXT>unclosed</DOC>",
         {"id": "1", "title": "x", "text": "unclosed"}),
    ],
)  # fmt: skip
def test_title_and_text_of_documents(tmp_path: Path, document: str, expected: dict[str, str]) -> None:
    for content in (document, "\ufeff" + document, document.replace("\n", "\r\n")):
        assert read(tmp_path, content) == ([("line 1", expected)], [], [])


def test_documents_of_one_line_and_of_several_are_read_with_their_lines(tmp_path: Path) -> None:
    one = "<DOC><DOCNO>{}</DOCNO>x</DOC>"
    found, problems, _ = read(
        tmp_path, one.format(1) + one.format(2) + "\n\n" + one.format(3).replace("<", "\n<")
    )
    assert [(where, values["id"]) for where, values in found] == [
        ("line 1", "1"),
        ("line 1", "2"),
        ("line 4", "3"),
    ]
    assert problems == []


def test_all_problems_of_documents_are_reported_with_their_lines(tmp_path: Path) -> None:
    content = (
        "<DOC>\n<TEXT>no id</TEXT></DOC>\n<DOC><DOCNO>a b</DOCNO>x</DOC>\n<DOC><DOCNO>1</DOCNO></DOC>\n"
        "<DOC><DOCNO>2</DOCNO>cut\n<DOC><DOCNO>3</DOCNO>x</DOC>\n<DOC><DOCNO>4</DOCNO>x"
    )
    found, problems, _ = read(tmp_path, content)
    assert [values["id"] for _, values in found] == ["3"]
    assert problems == [
        "line 1: missing id: the document has no <DOCNO>",
        "line 3: unusable id: an id must not be empty or contain white space, which run files do not allow",
        "line 4: blank text: the document has neither title nor text",
        "line 5: unfinished document: line 6 begins another one",
        "line 7: unfinished document: the file ends before </DOC>",
    ]


def test_long_documents_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trec_collections, "LONGEST", 50)
    _, problems, _ = read(tmp_path, f"<DOC><DOCNO>1</DOCNO>\n{'x' * 50}\n</DOC>")
    assert problems == ["line 1: document too long: it has more than 50 bytes: split it"]


def test_text_that_is_not_utf8_is_read_as_windows_1252(tmp_path: Path) -> None:
    content = b"<DOC><DOCNO>1</DOCNO>caf\xe9 \x93q\x94</DOC>\n<DOC><DOCNO>2</DOCNO>caf\xc3\xa9</DOC>\n"
    found, problems, notes = read(tmp_path, content)
    assert [values["text"] for _, values in found] == ["café “q”", "café"]
    assert (problems, notes) == ([], ["line 1: not UTF-8: 1 document read as Windows-1252"])
    found, _, notes = read(tmp_path, b"<top><num>1<title>caf\xe9</top>", topics=True)
    assert found[0][1]["text"] == "café" and notes == ["not UTF-8: it is read as Windows-1252"]


def test_broken_gzip_and_other_files_are_reported(tmp_path: Path) -> None:
    packed = gzip.compress(b"<DOC><DOCNO>1</DOCNO>x</DOC>\n" * 1000)
    for topics in (False, True):
        assert "the gzip file ends too early" in read(tmp_path, packed[:-9], topics=topics)[1][0]
        assert "unsupported file: it is a PDF file" in read(tmp_path, b"%PDF-1.7\n", topics=topics)[1][0]


def test_old_and_new_topics_have_the_same_fields(tmp_path: Path) -> None:
    old = """
<top>
<head> Tipster Topic Description
<num> Number: 051
<dom> Domain: International Economics
<title> Topic: Airbus
 Subsidies
<desc> Description:
Document mentions AT&T &amp; Airbus.
<narr> Narrative:
A: relevant.
<con> Concept(s):
1. Airbus
</top>
"""
    assert topics_of(tmp_path, old) == [
        {
            "id": "051", "text": "Airbus Subsidies", "head": "Tipster Topic Description",
            "domain": "International Economics", "description": "Document mentions AT&T & Airbus.",
            "narrative": "A: relevant.", "concepts": "1. Airbus",
        }
    ]  # fmt: skip
    new = "<top>\n<num> Number: 301 </num>\n<title> Crime </title>\n<desc> Description: \nWhat?\n</top>"
    expected = {"id": "301", "text": "Crime", "description": "What?"}
    other = new.replace("301", "302").replace("<desc>", "<narr>")
    assert topics_of(tmp_path, new) == [expected]
    assert topics_of(tmp_path, new + other) == [
        {**expected, "narrative": ""},
        {"id": "302", "text": "Crime", "description": "", "narrative": "What?"},
    ]


@pytest.mark.parametrize(
    ("topic", "expected"),
    [
        (
            '<topic number="1" type="faceted"><query>obama</query><!-- <query>no</query> -->'
            '<description>d</description><subtopic number="1" type="nav">a</subtopic>'
            '<subtopic number="2">b</subtopic></topic>',
            {"id": "1", "text": "obama", "type": "faceted", "description": "d", "subtopic": "a\nb"},
        ),
        ('<topic number="2"> A patient\n is 5 &lt; 6. </topic>', {"id": "2", "text": "A patient is 5 < 6."}),
        ("<topic><id>3</id><title><![CDATA[a <b> & c]]></title></topic>", {"id": "3", "text": "a <b> & c"}),
        ("<topic number='4'><description>d</description><summary>s</summary></topic>",
         {"id": "4", "text": "d", "summary": "s"}),
        ('<topic number="6"><text>x</text></topic>', {"id": "6", "text": "x"}),
        ('<topic number="5"><title>t</title><query>q</query></topic>', {"id": "5", "text": "t", "query": "q"}),
    ],
)  # fmt: skip
def test_topics_in_xml(tmp_path: Path, topic: str, expected: dict[str, str]) -> None:
    content = f'<?xml version="1.0" encoding="UTF-8"?>\n<topics task="x">\n{topic}\n</topics>'
    assert topics_of(tmp_path, content) == [expected]


def test_all_problems_of_topics_are_reported_with_their_lines(tmp_path: Path) -> None:
    content = (
        "<top><title>x</top>\n<top><num>1<title>x</top>\n<top><num>1<title>y</top>\n<top><num>2</top>\n"
        "<top><num>a b<title>x</top>"
    )
    found, problems, _ = read(tmp_path, content, topics=True)
    assert [values["id"] for _, values in found] == ["1"]
    assert [problem.partition(":")[0] for problem in problems] == ["line 1", "line 3", "line 4", "line 5"]
    assert "duplicate id: 1; the first one counts" in problems[1]
    assert read(tmp_path, "<topics></topics>", topics=True)[1] == [
        "empty file: it has no <top> and no <topic>"
    ]


@pytest.mark.parametrize(
    ("head", "content"),
    [
        (b"\xef\xbb\xbf<DOC>", TrecContent.documents),
        (b"<?xml version='1.0'?>\n<root>\n<doc >", TrecContent.documents),
        (b"\n<top>", TrecContent.topics),
        (b"<topics task='x'>", TrecContent.topics),
        (b"<!DOCTYPE html><html>", None),
        (b"<documents>", None),
    ],
)
def test_the_content_of_a_file_is_detected(head: bytes, content: TrecContent | None) -> None:
    assert content_of(head) is content


def test_written_documents_and_topics_are_read_again(tmp_path: Path) -> None:
    file = io.BytesIO()
    trec_collections.write_document(file, "a&1", "1 < 2", "x\n</TEXT> & <b>")
    trec_collections.write_document(file, "2", "", "\x1b[31m")
    expected = [{"id": "a&1", "title": "1 < 2", "text": "x\n</TEXT> & <b>"},
                {"id": "2", "title": "", "text": "\ufffd[31m"}]  # fmt: skip
    assert [values for _, values in read(tmp_path, file.getvalue())[0]] == expected
    file = io.BytesIO()
    trec_collections.write_topics(file, [Topic('"1"', "a <b> & c", {"level": 3, "tags": ["x"]})])
    assert topics_of(tmp_path, file.getvalue()) == [{"id": '"1"', "text": "a <b> & c", "level": "3"}]
