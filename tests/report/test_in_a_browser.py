"""A report in a real browser: nothing in it acts, it asks for nothing, and it can be read by everybody."""

from __future__ import annotations

import base64
from itertools import pairwise

import pytest

from searchapp.text import visible_line
from tests.report.conftest import Reports
from tests.report.reading import Reader

CONTRAST = 4.5
"""Of text, at level AA of WCAG 2.2."""


@pytest.mark.parametrize("name", ["two", "one", "bench"])
def test_nothing_that_others_have_written_acts(name: str, reader: Reader, reports: Reports) -> None:
    reader.read(getattr(reports, name))
    assert reader.requests == [] and reader.complaints == []
    assert reader.run("return window.pwned ?? null") is None
    kinds = "script", "style", "base", "iframe", "img", "form", "object", "embed", "a[href]:not([href^='#'])"
    counted = reader.run("return arguments[0].map((one) => document.querySelectorAll(one).length)", kinds)
    assert counted == [1, 1, 0, 0, 0, 0, 0, 0, 0]
    acting = "return [...document.querySelectorAll('*')].flatMap((one) => one.getAttributeNames())"
    assert not [one for one in reader.run(acting) if one.startswith("on") or one == "style"]


def test_what_others_have_written_is_shown_as_it_is(reader: Reader, reports: Reports) -> None:
    reader.read(reports.two)
    shown = reader.run(
        "return [...document.querySelectorAll('table.long tbody th')].map((one) => one.textContent)"
    )
    assert sorted(shown) == sorted(map(visible_line, reports.topics))
    bars = reader.run(
        "return [...document.querySelectorAll('#topics .chart title')].map((one) => one.textContent)"
    )
    assert bars and all(any(bar.startswith(one) for one in shown) for bar in bars)
    text = reader.run("return document.body.innerText")
    assert "<script>window.pwned=6</script>" in text and "<U+202E>" in text and "<img src=" in text
    assert visible_line(text.replace("\n", "").replace("\t", "")) == text.replace("\n", "").replace("\t", "")


def test_the_policy_forbids_what_would_be_there_all_the_same(reader: Reader, reports: Reports) -> None:
    """As a second wall: what is put into the page behind its back neither runs nor loads."""
    reader.read(reports.two)
    reader.run(
        "const put = (name, set) => { const one = document.createElement(name); set(one); document.body.append(one) };"
        "put('script', (one) => { one.textContent = 'window.pwned = 9' });"
        "put('img', (one) => { one.src = 'http://127.0.0.1:9/a' });"
        "put('style', (one) => { one.textContent = 'body { color: red }' });"
        "put('iframe', (one) => { one.src = 'http://127.0.0.1:9/b' });"
        "fetch('http://127.0.0.1:9/c').catch(() => 0);"
        "put('div', (one) => { one.innerHTML = '<b onclick=\"window.pwned=9\">x</b>'; one.firstChild.click() });"
    )
    assert reader.run("return window.pwned ?? null") is None
    complaints = reader.complaints
    for directive in ("script-src", "style-src", "img-src", "frame-src", "connect-src"):
        assert any(directive in said and "Content Security Policy" in said for said in complaints), directive


def test_the_keyboard_reaches_everything_in_its_order(reader: Reader, reports: Reports) -> None:
    reader.read(reports.two)
    seen: list[str] = []
    for _ in range(60):
        reader.type("tab")
        if reader.focused in ("", "All topics") or (
            seen and reader.run("return document.activeElement === document.body")
        ):
            break
        seen.append(reader.focused)
        outline = reader.run("return getComputedStyle(document.activeElement).outlineStyle")
        assert outline not in ("none", ""), seen[-1]
    links = reader.run("return [...document.querySelectorAll('nav a')].map((one) => one.textContent)")
    assert seen[0] == "Skip to the report" and seen[1 : 1 + len(links)] == links
    order = ["Figures", "Tests of differences", "measure", "The numbers of both curves", "topic"]
    places = [seen.index(one, len(links)) for one in order]
    assert places == sorted(places)


def test_enter_sorts_a_table_and_opens_details(reader: Reader, reports: Reports) -> None:
    reader.read(reports.two)
    column = "const heads = document.querySelectorAll('table.long thead th');"
    cells = (
        "return [...document.querySelectorAll('table.long tbody tr')].map((row) => row.cells[2].textContent)"
    )
    before = reader.run(cells)
    reader.run(f"{column} heads[2].querySelector('button').focus()")
    reader.type("enter")
    assert reader.run(f"{column} return heads[2].getAttribute('aria-sort')") == "descending"
    assert reader.run(cells) == sorted(before, key=float, reverse=True)
    reader.type("enter")
    assert reader.run(f"{column} return heads[2].getAttribute('aria-sort')") == "ascending"
    assert reader.run(cells) == sorted(before, key=float)
    assert reader.run("return document.querySelector('#curves details').open") is False
    reader.run("document.querySelector('#curves summary').focus()")
    reader.type("enter")
    assert reader.run("return document.querySelector('#curves details').open") is True


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["two", "bench"])
def test_text_can_be_told_from_its_ground(name: str, scheme: str, reader: Reader, reports: Reports) -> None:
    reader.read(getattr(reports, name), scheme)
    ground = reader.run("return getComputedStyle(document.documentElement).backgroundColor")
    assert ground == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 26)"}[scheme]
    contrasts = reader.contrasts
    assert len(contrasts) > 5 and {one for one, value in contrasts.items() if value < CONTRAST} == set()


def test_it_is_printed_dark_on_white_and_without_what_only_a_screen_needs(
    reader: Reader, reports: Reports
) -> None:
    reader.read(reports.two, "dark", "print")
    assert (
        reader.run("return getComputedStyle(document.documentElement).backgroundColor")
        == "rgb(255, 255, 255)"
    )
    assert reader.run("return getComputedStyle(document.querySelector('nav')).display") == "none"
    assert min(reader.contrasts.values()) >= CONTRAST
    assert base64.b64decode(reader.printed()).startswith(b"%PDF-")


def test_it_has_the_structure_that_screen_readers_need(reader: Reader, reports: Reports) -> None:
    reader.read(reports.two)
    assert reader.run("return [document.compatMode, document.documentElement.lang]") == ["CSS1Compat", "en"]
    counts = reader.run(
        "return ['main', 'header', 'nav', 'footer', 'h1'].map((one) => document.querySelectorAll(one).length)"
    )
    assert counts == [1, 1, 1, 1, 1]
    levels = reader.run("return [...document.querySelectorAll('h1, h2, h3')].map((one) => +one.tagName[1])")
    assert all(after - before <= 1 for before, after in pairwise(levels))
    ids = reader.run("return [...document.querySelectorAll('[id]')].map((one) => one.id)")
    assert len(ids) == len(set(ids))
    missing = (
        "return [[...document.querySelectorAll('th:not([scope])')], "
        "[...document.querySelectorAll('table')].filter((one) => !one.caption), "
        "[...document.querySelectorAll('svg:not([role=img]):not([aria-hidden])')], "
        "[...document.querySelectorAll('[role=img]:not([aria-label])')], "
        "[...document.querySelectorAll('nav a')].filter((one) => !document.getElementById(one.hash.slice(1)))"
        "].map((one) => one.length)"
    )
    assert reader.run(missing) == [0, 0, 0, 0, 0]


def test_a_narrow_window_scrolls_tables_and_not_the_page(reader: Reader, reports: Reports) -> None:
    reader.run("return 0")
    reader._driver.set_window_size(500, 800)
    try:
        reader.read(reports.two)
        wide, inner = reader.run("return [document.documentElement.scrollWidth, window.innerWidth]")
        assert wide <= inner
    finally:
        reader._driver.set_window_size(1200, 800)
