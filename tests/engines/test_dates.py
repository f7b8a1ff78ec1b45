"""Date fields: both engines read the same formats, round alike and find the same documents."""

from __future__ import annotations

import copy
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from searchapp.config.settings import Settings
from searchapp.engines import open_engine
from searchapp.errors import EngineRefused, QueryRefused
from searchapp.lucene import Index
from searchapp.lucene.errors import OldFormat, ReportedError
from searchapp.lucene.index.dates import DEFAULT_FORMAT, date_formats, time_zone
from searchapp.lucene.queries import query as query_module
from searchapp.model import Document
from tests.engines.conftest import MAPPING, spec_of
from tests.engines.embedded.conftest import body

DATES: dict[str, Any] = {
    "when": {"type": "date"},
    "day": {
        "type": "date",
        "format": "yyyy/MM/dd||epoch_second",
        "null_value": "1999/12/31",
        "doc_values": False,
    },
    "loose": {"type": "date", "ignore_malformed": True, "locale": "en", "format": "dd MMM yyyy HH:mm:ss Z"},
    "hidden": {"type": "date", "index": False},
    "week": {"type": "date", "format": "week_date", "fields": {"raw": {"type": "keyword"}}},
}
DOCUMENTS = [
    Document("1", "a b", {"when": "2020-01-01", "day": "2020/01/01", "week": "2020-W01-1"}),
    Document("2", "a", {"when": ["2020-02-29T23:59:59.999Z", 1583107200000], "day": None, "loose": "x"}),
    Document(
        "3", "b", {"when": "1969-12-31T23:59:59.5", "loose": ["05 Jan 2020 10:11:12 +0100", True, {"x": 5}]}
    ),
    Document("4", "a", {"day": [1577836800, "2021/06/01"]}),
    Document("5", "a", {"when": "2020-01-01T12:00:00+14:00", "hidden": "2020"}),
]


def mapping() -> dict[str, Any]:
    changed = copy.deepcopy(MAPPING)
    changed["mappings"]["properties"] |= DATES
    return changed


def between(field: str = "when", **bounds: Any) -> dict[str, Any]:
    return {"range": {field: bounds}}


FOUND: list[tuple[dict[str, Any], list[str]]] = [
    (between(gte="2020-01-01"), ["1", "2"]),
    (between(gt="2020-01-01"), ["2"]),  # a day rounds up to its last millisecond
    (between(gt="2020-01-01T00:00:00", lt="2020-03-02"), ["2"]),
    (between(lte="2020-01-01"), ["1", "3", "5"]),
    (between(lt="2020-01-01"), ["3", "5"]),
    (between(gte="2019", lte="2020"), ["1", "5"]),
    (between(gte=1577836800000, lte="1577836800000"), ["1"]),
    (between(gte="2020-02-29||/M", lte="2020-02-10||/M"), ["2"]),
    (between(gte="2020-02-28||+1d", lt="2020-02-29||+1d/d"), ["2"]),
    (between(gte="now-1d/d"), []),
    (between(gte="now-300y", lt="now+1d/d"), ["1", "2", "3", "5"]),
    (between(gte="01/01/2020", format="dd/MM/yyyy"), ["1", "2"]),
    (between(gte=2020, format="yyyy"), ["1", "2"]),
    (between(gte="2019-12-31", lte="2019-12-31", time_zone="-10:00"), ["1", "5"]),
    (between(gte="2020-01-01", lte="2020-01-01T23:59:59", time_zone="Europe/Paris"), ["1"]),
    (between("day", gte="2020/01/01", lt="2020/01/02"), ["1", "4"]),
    (between("day", lte=946598400000), ["2"]),
    (between("day"), ["1", "2", "4"]),
    (between("loose", gte="05 Jan 2020 09:11:12 +0000"), ["3"]),
    (between("nowhere", gte=1, format="yyyy", time_zone="+01:00"), []),
    ({"term": {"when": "2020-01-01"}}, ["1"]),
    ({"term": {"when": 1577836800000}}, ["1"]),
    ({"term": {"when": "2020-03-01||/M"}}, ["2"]),
    ({"terms": {"when": ["2020-01-01", "1969-12-31", "2020-01-01"], "boost": 3}}, ["1", "3"]),
    ({"terms": {"when": ["2020-03-02"]}}, ["2"]),
    ({"match": {"when": {"query": 1577836800000}}}, ["1"]),
    ({"match": {"when": "2020"}}, ["1"]),
    ({"match": {"when": 2020}}, []),
    ({"match_bool_prefix": {"when": 2020}}, ["1"]),
    ({"multi_match": {"query": 2020, "fields": ["when", "nowhere"]}}, ["1"]),
    ({"multi_match": {"query": 2020, "fields": ["when"], "type": "phrase"}}, ["1"]),
    ({"match_phrase": {"day": "2020/01/01"}}, ["1", "4"]),
    ({"exists": {"field": "when"}}, ["1", "2", "3", "5"]),
    ({"exists": {"field": "loose"}}, ["3"]),
    ({"term": {"week.raw": "2020-W01-1"}}, ["1"]),
    # Elasticsearch drops the clause and the query around it, before it counts required clauses.
    ({"bool": {"must": [{"match": {"text": "a"}}, between(gt="2030")]}}, []),
    ({"bool": {"should": [between(gt="2030"), {"match": {"text": "b"}}]}}, ["3", "1"]),
    ({"bool": {"must": {"match": {"text": "a"}}, "filter": [between(lt="2020-02")]}}, ["5", "1"]),
]


def test_both_engines_find_the_same_documents(engine_settings: Settings) -> None:
    with closing(open_engine(engine_settings)) as engine:
        engine.build("dates", spec_of(DOCUMENTS, mapping()), DOCUMENTS)
        index = engine.open("dates")
        for query, ids in FOUND:
            hits = index.find(body(query, explain=True))
            assert [hit.hit.document_id for hit in hits] == ids, query
            assert list(next(index.search([body(query)])).document_ids) == ids, query
        ranged, whole, boosted = (
            index.find(body(query, explain=True))[0]
            for query in (
                between(gte="2020-01-02", lte="2020-12-31T"),
                between(gte="1900", boost=3),
                {"terms": {"when": ["2020-01-01", "1969-12-31"], "boost": 3}},
            )
        )
        assert ranged.explanation is not None
        assert ranged.explanation.description == "when:[1577923200000 TO 1609459199999]"
        assert [whole.hit.score, boosted.hit.score] == [3.0, 3.0]
        assert [hit.source["when"] for hit in index.find(body({"term": {"text": "b"}}))] == [
            "1969-12-31T23:59:59.5",
            "2020-01-01",
        ]
        for query in (
            between(gte="2020-13"),
            between(gte="x", lte=5),
            between(gte="2020||/2d"),
            between(gte="2020||+1"),
            between(gte="2020-01-01", lt=1577836800001),
            between("nowhere", gte=1, time_zone="Nowhere"),
            between("nowhere", gte=1, format="fooo"),
            {"term": {"when": ""}},
            {"term": {"day": "2020-01-01"}},
            {"match": {"when": "soon"}},
            {"prefix": {"when": "2020"}},
            {"wildcard": {"when": "2020*"}},
        ):
            with pytest.raises(QueryRefused):
                list(index.search([body(query)]))


@pytest.mark.parametrize(
    "fields",
    [
        {"when": "2020-02-30"},
        {"when": "2020/01/01"},
        {"when": ""},
        {"when": True},
        {"when": {"x": 1}},
        {"when": 1e16},
        {"when": "9999999999999999999"},
        {"day": "2020-01-01"},
        {"day": "1e3"},
        {"hidden": "x"},
    ],
)
def test_a_value_that_is_no_date_is_rejected(engine_settings: Settings, fields: dict[str, Any]) -> None:
    bad = [Document("bad", "a", fields)]
    with closing(open_engine(engine_settings)) as engine:
        with pytest.raises(EngineRefused):
            engine.build("bad", spec_of(bad, mapping()), bad)


@pytest.mark.parametrize(
    "described",
    [
        {"format": "fooo"},
        {"format": "yyyy-MM-dd'T"},
        {"format": ""},
        {"format": "yyyy||"},
        {"null_value": "x"},
        {"null_value": ""},
        {"format": "yyyy", "null_value": "2020-01"},
        {"ignore_malformed": 5},
    ],
)
def test_an_invalid_mapping_is_rejected(engine_settings: Settings, described: dict[str, Any]) -> None:
    changed = mapping()
    changed["mappings"]["properties"]["bad"] = {"type": "date", **described}
    with closing(open_engine(engine_settings)) as engine:
        with pytest.raises(EngineRefused):
            engine.build("bad", spec_of(DOCUMENTS, changed), DOCUMENTS)


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        (between("week", gte="2020-W01-1"), r"week \(the date format `week_date`\)"),
        ({"exists": {"field": "french"}}, r"french \(the locale fr\)"),
        ({"term": {"nanos": 5}}, r"nanos \(the type date_nanos\)"),
        ({"term": {"era": 5}}, r"era \(the letter G in the date format `G yyyy`\)"),
        ({"exists": {"field": "hidden"}}, r"hidden \(`index: false`\)"),
        (between(gte="2020-W01-1", format="week_date"), "the date format `week_date`"),
        (between(gte="2020", time_zone="EST"), "`time_zone` of the query `range` .'EST' is no"),
        (between(gte="1950-01-01", time_zone="Europe/Paris"), "a date before 1970"),
        (between(gte="2020T10:00"), "a date without its year"),
        ({"term": {"when": "now/d"}}, "`now/d` for when outside the query `range`"),
    ],
)
def test_what_is_not_supported_is_named(tmp_path: Path, query: dict[str, Any], reason: str) -> None:
    changed = mapping()
    changed["mappings"]["properties"] |= {
        "french": {"type": "date", "format": "dd MMM yyyy", "locale": "fr"},
        "nanos": {"type": "date_nanos"},
        "era": {"type": "date", "format": "G yyyy"},
    }
    index = Index.create(tmp_path, changed, DOCUMENTS)
    with pytest.raises(ReportedError, match=f"does not support .*{reason}"):
        index.search(body(query))


def test_now_is_the_time_of_each_body(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = Index.create(tmp_path, mapping(), DOCUMENTS)
    calls: list[int] = []

    def at(milliseconds: int) -> None:
        def time_ns() -> int:
            calls.append(1)
            return milliseconds * 1_000_000

        monkeypatch.setattr(query_module, "time_ns", time_ns)

    recent = {"bool": {"must": {"match": {"text": "a b"}}, "filter": [between(gte="now-1d", lte="now")]}}
    at(1577836800000)
    assert [hit.id for hit in index.search(body(recent))] == ["1", "5"]
    assert len(calls) == 1
    at(1577836800000 + 86_400_000 * 2)
    assert index.search(body(recent)) == []
    ((documents, _scores),) = index.rank([body(recent)]).rankings
    assert len(documents) == 0
    at(1577836800000)
    ((documents, _scores),) = index.rank([body(recent)]).rankings
    assert len(documents) == 2


def test_now_in_a_sort_is_the_time_of_each_body(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = mapping()
    changed["mappings"]["properties"]["part"] = {
        "type": "nested",
        "properties": {"day": {"type": "date"}, "rank": {"type": "integer"}},
    }
    parts = {"1": {"day": "2020-01-02", "rank": 1}, "2": {"day": "2020-01-04", "rank": 2}}
    documents = [Document(id_, "a b", {"part": part}) for id_, part in parts.items()]
    index = Index.create(tmp_path, changed, documents)
    recent = {"path": "part", "filter": {"range": {"part.day": {"gte": "now"}}}}
    sort = [{"part.rank": {"order": "asc", "nested": recent}}, {"id": "asc"}]

    def ranked(milliseconds: int, words: str) -> list[str]:
        monkeypatch.setattr(query_module, "time_ns", lambda: milliseconds * 1_000_000)
        ((found, _scores),) = index.rank([{"query": {"match": {"text": words}}, "sort": sort}]).rankings
        return index.reader.ids_of(found)

    assert ranked(1577836800000, "a b") == ["1", "2"]
    assert ranked(1577836800000 + 86_400_000 * 2, "b a") == [
        "2",
        "1",
    ]  # the first document has no recent part
    assert ranked(1577836800000, "a b") == ["1", "2"]


def test_an_index_whose_dates_were_not_searched_must_be_built_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("searchapp.lucene.index.mapping._unread_date", lambda *_: "the type date")
        unsearched = copy.deepcopy(MAPPING)
        unsearched["mappings"]["properties"]["when"] = {"type": "date"}
        Index.create(tmp_path, unsearched, [Document("1", "a", {"when": "2020"})])
    with pytest.raises(OldFormat):
        Index.open(tmp_path)


# Milliseconds of a document, and of a bound that is rounded up, in Elasticsearch 9.4.3; None for no date.
TEXTS: list[tuple[str, str, int | None, int | None]] = [
    ("EEE MMM dd HH:mm:ss Z yyyy", "2020-05-06 10:11:12+1:00", None, None),
    ("EEE, d MMM uuuu", "2020-05-06T10:11+01:00", None, None),
    ("EEE, dd MMM yyyy HH:mm:ss Z", "2020-5-6T10:11Z", None, None),
    ("MM/dd/yyyy HH:mm", "20200506T24:00:00+0100", None, None),
    ("MMM d, yyyy", "2020-5-6T101112.123+18:00", None, None),
    ("MMM d, yyyy", "May 5, 2020", 1588636800000, 1588723199999),
    ("[yyyy-MM-dd][yyyyMMdd]", "+12020-01-01", 317147356800000, 317147443199999),
    ("[yyyy-MM-dd][yyyyMMdd]", "2020-05-06 10:11:12+18:01", None, None),
    ("[yyyy-MM-dd][yyyyMMdd]", "20200230", None, 1583020799999),
    ("basic_date", "2020-03-29T101112.123+0100", None, None),
    ("basic_date", "20200230", None, 1583020799999),
    ("basic_date", "2020101", 1601510400000, 1601596799999),
    ("basic_date_time", "2020-03-29T10:11:12.123+18:00", None, None),
    ("basic_date_time", "20200506T101112.123-05:30", 1588779672123, 1588779672123),
    ("basic_date_time_no_millis", "2020-03-29 10:11:12GMT", None, None),
    ("d/M/yyyy", "20200506T101112.123+01", None, None),
    ("d/M/yyyy", "31/02/2020", None, 1583020799999),
    ("date", "-1001", -93755664000000, -93755577600001),
    ("date", "2020", 1577836800000, 1577923199999),
    ("date", "2020-02-30", None, 1583020799999),
    ("date", "2020-02-30T101112.123+1:00", None, None),
    ("date_hour", "20200506T10:11:12.123GMT+01:00", None, None),
    ("date_hour_minute", "2020-02-30T1:2", None, 1582938179999),
    ("date_hour_minute", "2020-03-29T10:11", 1585476660000, 1585476719999),
    ("date_hour_minute", "2020-05-06T10UTC+01:00", None, None),
    ("date_hour_minute_second", "2020-02-30T1:2:3", None, 1582938123999),
    ("date_hour_minute_second", "2020-5-6T10:11:12,123+18:00", None, None),
    ("date_hour_minute_second_fraction", "2020-5-6T10:11:12.123", 1588759872123, 1588759872123),
    ("date_hour_minute_second_fraction", "20200506T10 +01:00", None, None),
    ("date_hour_minute_second_millis", "1950-01-01T10:11:12.123", -631115327877, -631115327877),
    ("date_hour_minute_second_millis", "Sun Jan 05 10:11:12 +0000 2020", None, None),
    ("date_optional_time", "1950-01-01T10:11:12.123456789UT", -631115327877, -631115327877),
    ("date_optional_time", "2020-02-30T10:11:12.123Z", None, 1582971072123),
    ("date_optional_time", "2020-5-6T101112.123", None, None),
    ("date_optional_time", "202001", 6312368707200000, 6312368793599999),
    ("date_time", "2020-02-30T10:11:12.123-00:00", None, 1582971072123),
    ("date_time", "2020-03-29T10:11+18:00", 1585411860000, 1585411919999),
    ("date_time", "2020-03-29T10:11:12.1+0100", 1585473072100, 1585473072100),
    ("date_time", "2020-5-6T10+01:00:30", None, None),
    ("date_time_no_millis", "2020-02-30T10:11:12", None, 1582971072999),
    ("date_time_no_millis", "2020-05-06T10:11:12-05:30", 1588779672000, 1588779672999),
    ("date_time_no_millis", "2020-5-6 10:11:12 +01:00", None, None),
    ("date_time_no_millis", "2020-5-6T1:2GMT", 1588726920000, 1588726979999),
    ("dd MMM yyyy", "2020-02-30T101112.123UTC+01:00", None, None),
    ("dd-MM-uuuu||uuuu-MM-dd||epoch_millis", "0000-01-01", -62167219200000, -62167132800001),
    ("dd-MM-uuuu||uuuu-MM-dd||epoch_millis", "1600000000000", 1600000000000, 1600000000000),
    ("dd-MM-uuuu||uuuu-MM-dd||epoch_millis", "2020-5-6T1+1:00", None, None),
    ("dd.MM.uu", "2020-05-06 10:11:12 +1:00", None, None),
    ("dd.MM.yy", "01.02.69", 3126902400000, 3126988799999),
    ("dd.MM.yy", "2020-02-30T10:11:12.123+00:00", None, None),
    ("dd/MM/yyyy", "2020-03-29T10:11UTC+01:00", None, None),
    ("epoch_millis", "-0", 0, 0),
    ("epoch_millis", "-1600000000000", -1600000000000, -1600000000000),
    ("epoch_millis", "2020-02-30T10:11:12.1+1", None, None),
    ("epoch_second", "-1000", -1000000, -999001),
    ("epoch_second", "20200506T24:00:00GMT+01:00", None, None),
    ("epoch_second", "2020101", 2020101000, 2020101999),
    ("iso8601", "2020-03-29T10:11:12.123GMT+01:00", 1585473072123, 1585473072123),
    ("iso8601", "2020-05-06 10:11:12 Nowhere/X", None, None),
    ("iso8601", "2020-05-06T10GMT", 1588759200000, 1588762799999),
    ("strict_date", "+12020-01-01", 317147356800000, 317147443199999),
    ("strict_date", "2020-03-29 10:11:12 +01:00:30", None, None),
    ("strict_date", "2020-13-01", 1609459200000, None),
    ("strict_date_hour_minute_second", "2020-03-29T10:11:12.123GMT+1", None, None),
    ("strict_date_hour_minute_second_fraction", "2020-02-30T10:11+18:00", None, None),
    ("strict_date_hour_minute_second_fraction", "2020-03-29T10:11:12.1", 1585476672100, 1585476672100),
    ("strict_date_hour_minute_second_fraction", "2020-05-06T10:11:12.123", 1588759872123, 1588759872123),
    ("strict_date_hour_minute_second_millis", "2020-03-29T10:11:12.1234567891UTC+01:00", None, None),
    ("strict_date_optional_time", "1950-01-01T10+00:00", -631116000000, -631112400001),
    ("strict_date_optional_time", "2020-05-06T10:11:12+01:00:30", 1588756242000, 1588756242999),
    ("strict_date_optional_time", "20200506 10:11:12 +01:75", None, None),
    ("strict_date_optional_time_nanos", "1950-01-01T10:11:12.123UT", -631115327877, -631115327877),
    ("strict_date_optional_time_nanos", "2020-03-29T10:11:12.123456789GMT", 1585476672123, 1585476672123),
    ("strict_date_optional_time_nanos", "2020-5-6T10:11GMT", None, None),
    ("strict_date_optional_time||epoch_millis", "1950-01-01T10:11:12+01", -631118928000, -631118927001),
    ("strict_date_optional_time||epoch_millis", "2020-05-06T10+18:00", 1588694400000, 1588697999999),
    ("strict_date_optional_time||epoch_millis", "2020-5-6 10:11:12EST", None, None),
    ("strict_date_time", "05 Jan 2020", None, None),
    ("strict_date_time", "2020-03-29T10:11:12.123+00:00", 1585476672123, 1585476672123),
    ("strict_date_time", "2020-05-06T10:11:12.123+00:00", 1588759872123, 1588759872123),
    ("strict_date_time_no_millis", "1950-01-01T10:11:12+01", -631118928000, -631118927001),
    ("strict_date_time_no_millis", "2020-05-06T10:11:12+01:00:30", 1588756242000, 1588756242999),
    ("strict_date_time_no_millis", "20200506T23:59:60+1", None, None),
    ("strict_year", "-1000", -93724128000000, -93724041600001),
    ("strict_year", "2020", 1577836800000, 1577923199999),
    ("strict_year", "2020-03-29 10:11:12EST", None, None),
    ("strict_year_month", "2020-05-06 10:11:12 UTC+01:00", None, None),
    ("strict_year_month_day", "-0044-03-15", -63549360000000, -63549273600001),
    ("strict_year_month_day", "-1001", -93755664000000, -93755577600001),
    ("strict_year_month_day", "2020101", None, None),
    ("uuu-M", "2020-02-30T10:11:12+01:00", None, None),
    ("uuu-M", "2020-2", 1580515200000, 1580601599999),
    ("uuuu", "-1001", -93755664000000, -93755577600001),
    ("uuuu", "2020-5-6T23:59:60 +01:00", None, None),
    ("uuuu-MM-dd", "-0044-03-15", -63549360000000, -63549273600001),
    ("uuuu-MM-dd", "0001-01-01", -62135596800000, -62135510400001),
    ("uuuu-MM-dd", "20200506T10:11:12.123456789+18:01", None, None),
    ("uuuu-MM-dd", "2021-02-29", None, 1614556799999),
    ("uuuu-MM-dd HH:mm:ss||uuuu-MM-dd||epoch_second", "-5.", -5000, -4001),
    ("uuuu-MM-dd HH:mm:ss||uuuu-MM-dd||epoch_second", "2020-01-02 3:04:05 am", None, None),
    ("uuuu-MM-dd HH:mm:ss||uuuu-MM-dd||epoch_second", "5.5", 5500, 5500),
    ("uuuu-MM-dd'T'HH:mm:ss.SSSSSSSSS", "20200506T10:11:12.123-05:30", None, None),
    ("uuuuMMdd'T'HHmmssX", "20200506T24:00:00UTC+01:00", None, None),
    ("xxxyyyy", "2020-05-06 10:11:12 +1:00", None, None),
    ("y-M-d", "2020-02-30", None, 1583020799999),
    ("y-M-d", "20200506T10:11:12.123+01", None, None),
    ("year", "0", -62167219200000, -62167132800001),
    ("year", "2020-02-30T10:11:12.123Europe/Paris", None, None),
    ("year", "2020101", 63686063116800000, 63686063203199999),
    ("year_month", "2020-05-06T1 +01:00", None, None),
    ("year_month_day", "-0044-03-15", -63549360000000, -63549273600001),
    ("year_month_day", "2020-02-30", None, 1583020799999),
    ("year_month_day", "2020-5-6T10+1", None, None),
    ("yyyy", "20200506T10+01:00:30", None, None),
    ("yyyy-MM", "20200506T10EST", None, None),
    ("yyyy-MM-dd", "20200506 10:11:12 UTC0", None, None),
    ("yyyy-MM-dd HH:mm:ss", "2020-03-29T1:2:3Europe/Paris", None, None),
    ("yyyy-MM-dd HH:mm:ss XXXXX", "1950-01-01 10:11:12 -00:00", -631115328000, -631115327001),
    ("yyyy-MM-dd HH:mm:ss XXXXX", "2020-05-06T10CET", None, None),
    ("yyyy-MM-dd HH:mm:ss ZZZZZ", "20200506T10+01:75", None, None),
    ("yyyy-MM-dd HH:mm:ss xx", "2020-02-30T10:11:12+1", None, None),
    ("yyyy-MM-dd HH:mm:ss xx", "2020-05-06 10:11:12 +0100", 1588756272000, 1588756272999),
    ("yyyy-MM-dd HH:mm:ss xxx", "20200506T10:11:12+1", None, None),
    ("yyyy-MM-dd HH:mm:ss||yyyy-MM-dd||epoch_millis", "1600000000000", 1600000000000, 1600000000000),
    ("yyyy-MM-dd HH:mm:ss||yyyy-MM-dd||epoch_millis", "2020-05-06T10:11+1:00", None, None),
    ("yyyy-MM-dd HH:mm:ss||yyyy-MM-dd||epoch_millis", "20200230", 20200230, 20200230),
    ("yyyy-MM-dd h:mm:ss a", "20200506T10:11:12.1234567891+0100", None, None),
    ("yyyy-MM-dd hh:mm a", "2020-01-02 03:04 PM", 1577977440000, 1577977499999),
    ("yyyy-MM-dd hh:mm a", "2020-01-02 12:00 AM", 1577923200000, 1577923259999),
    ("yyyy-MM-dd hh:mm a", "2020-05-06T10:11:12z", None, None),
    ("yyyy-MM-dd'T'HH:mm:ss'Z'", "2020-02-30T10:11:12Z", None, 1582971072999),
    ("yyyy-MM-dd'T'HH:mm:ss'Z'", "2020-03-29T10:11:12Z", 1585476672000, 1585476672999),
    ("yyyy-MM-dd'T'HH:mm:ss'Z'", "2020-05-06 10:11:12 Nowhere/X", None, None),
    ("yyyy-MM-dd'T'HH:mm:ss.SSSSSS", "2020-02-30T10:11+1:00", None, None),
    ("yyyy-MM-dd'T'HH:mm:ss.SSSXXX", "2020/01/02 03:04:05", None, None),
    ("yyyy-MM-dd'T'HH:mm:ss.SSSZ", "2020-03-29T10:11:12.123+00:00", None, None),
    ("yyyy-MM-dd'T'HH:mm:ss.SSSZ", "2020-03-29T10:11:12.123+0100", 1585473072123, 1585473072123),
    ("yyyy-MM-dd'T'HH:mm:ss.SSSZ", "2020-05-06T10:11:12.123+0100", 1588756272123, 1588756272123),
    ("yyyy-MM-dd'T'HH:mm:ssX", "2020-02-30T10:11:12+01", None, 1582967472999),
    ("yyyy-MM-dd'T'HH:mm:ssX", "2020-03-29T10:60+00:00", None, None),
    ("yyyy-MM-dd'T'HH:mm:ssXXX", "1950-01-01T10:11:12+01:00", -631118928000, -631118927001),
    ("yyyy-MM-dd'T'HH:mm:ssXXX", "2020-5-6T10:11:12.1+01", None, None),
    ("yyyy-MM-dd'T'HH:mm:ssZ", "2020-02-30T10:11:12+0100", None, 1582967472999),
    ("yyyy-MM-dd'T'HH:mm:ssZ", "2020-03-29T1:2:3UTC+01:00", None, None),
    ("yyyy-MM-dd'T'HH:mm:ss[.SSS][XXX]", "2020-02-30T10:11:12.123-05:30", None, 1582990872123),
    ("yyyy-MM-dd'T'HH:mm:ss[.SSS][XXX]", "2020-03-29T10:11:12.123+18:00", 1585411872123, 1585411872123),
    ("yyyy-MM-dd'T'HH:mm:ss[.SSS][XXX]", "2020-05-06T10:11:12.123+18:00", 1588695072123, 1588695072123),
    ("yyyy-MM-dd'T'HH:mm:ss[.SSS][XXX]", "2020-5-6T10:11:12+01:75", None, None),
    ("yyyy-MM-dd||dd-MM-yyyy", "+12020-01-01", 317147356800000, 317147443199999),
    ("yyyy-MM-dd||dd-MM-yyyy", "2020-02-29", 1582934400000, 1583020799999),
    ("yyyy-MM-dd||dd-MM-yyyy", "2020-03-29T10:11:12GMT+01:00", None, None),
    ("yyyy/MM/dd HH:mm:ss||yyyy/MM/dd||epoch_millis", "-1001", -1001, -1001),
    ("yyyy/MM/dd HH:mm:ss||yyyy/MM/dd||epoch_millis", "-5.5", -6, -6),
    ("yyyy/MM/dd HH:mm:ss||yyyy/MM/dd||epoch_millis", "2020-05-06T10:11.5+1", None, None),
    ("yyyyMMdd", "2020-02-30T10Europe/Paris", None, None),
    ("yyyyMMdd", "20200229", 1582934400000, 1583020799999),
    ("yyyyMMddHHmmss", "2020-05-06T10:11:12.1,2+010030", None, None),
    ("yyyyMMddHHmmssSSS", "2020-5-6T10-05:30", None, None),
    ("yyyy[-MM[-dd]]", "2020", 1577836800000, 1577923199999),
    ("yyyy[-MM[-dd]]", "2020-02", 1580515200000, 1580601599999),
    ("yyyy[-MM[-dd]]", "20200506T101112.123GMT", None, None),
    ("yyyyyy", "20200506T10:11GMT", None, None),
]


@pytest.mark.parametrize(("pattern", "text", "exact", "last"), TEXTS)
def test_texts_are_read_as_by_elasticsearch(
    pattern: str, text: str, exact: int | None, last: int | None
) -> None:
    def read(*, round_up: bool) -> int | None:
        try:
            return date_formats(pattern).milliseconds(text, round_up=round_up)
        except ValueError:
            return None

    assert (read(round_up=False), read(round_up=True)) == (exact, last)


# Date math, the time zone of a query, and both roundings in Elasticsearch 9.4.3 with `now` at 2023-11-14T22:13:20.123Z.
MATH: list[tuple[str, str, int, int]] = [
    ("2019-12-31||/y", "+01:00", 1546297200000, 1577833199999),
    ("2020-01-31||+1M", "Europe/Paris", 1582930800000, 1582930800000),
    ("2020-01-31||+1M/M", "+01:00", 1580511600000, 1583017199999),
    ("2020-02-29||-1y/y", "+01:00", 1546297200000, 1577833199999),
    ("2020-02-29||-1y/y", "Europe/Paris", 1546297200000, 1577833199999),
    ("2020-03-28T02:30:00||+1d", "+01:00", 1585445400000, 1585445400000),
    ("2020-03-28T02:30:00||+1d", "Europe/Paris", 1585445400000, 1585445400000),
    ("2020-03-29||+12h/d", "+01:00", 1585436400000, 1585522799999),
    ("2020-03-29||+12h/d", "Europe/Paris", 1585436400000, 1585519199999),
    ("2020-05-06T07:08:09.5||/h", "+01:00", 1588744800000, 1588748399999),
    ("2020-05-06T07:08:09||/d+3h-5m", "Europe/Paris", 1588726500000, 1588812899999),
    ("2020-05-06||", "Europe/Paris", 1588716000000, 1588716000000),
    ("2020-05-06||/1d", "+01:00", 1588719600000, 1588805999999),
    ("2020-05-06||/1d", "Europe/Paris", 1588716000000, 1588802399999),
    ("2020-05-06||/w", "+01:00", 1588546800000, 1589151599999),
    ("2020-05-06||/w", "Europe/Paris", 1588543200000, 1589147999999),
    ("2020-05||/s", "+01:00", 1588287600000, 1588287600999),
    ("2020-05||/s", "Europe/Paris", 1588284000000, 1588284000999),
    ("2020-10-24T02:30:00||+1d+1h", "Europe/Paris", 1603589400000, 1603589400000),
    ("2020-10-25T00:30:00Z||+1h/h", "+01:00", 1603587600000, 1603591199999),
    ("2020-10-25T02:30:00||/h", "+01:00", 1603587600000, 1603591199999),
    ("2020-10-25T02:30:00||/h", "Europe/Paris", 1603584000000, 1603587599999),
    ("2020||/d", "+01:00", 1577833200000, 1577919599999),
    ("2020||/d", "Europe/Paris", 1577833200000, 1577919599999),
    ("now+1H/m", "Europe/Paris", 1700003580000, 1700003639999),
    ("now/M", "+01:00", 1698793200000, 1701385199999),
    ("now/d", "+01:00", 1699916400000, 1700002799999),
    ("now/d", "Europe/Paris", 1699916400000, 1700002799999),
    ("now/w", "+01:00", 1699830000000, 1700434799999),
    ("now/y", "+01:00", 1672527600000, 1704063599999),
]


@pytest.mark.parametrize(("text", "zone", "first", "last"), MATH)
def test_date_math_is_that_of_elasticsearch(text: str, zone: str, first: int, last: int) -> None:
    formats, own = date_formats(DEFAULT_FORMAT), time_zone(zone)
    assert [
        formats.calculate(text, lambda: 1700000000123, own, round_up=round_up) for round_up in (False, True)
    ] == [first, last]
