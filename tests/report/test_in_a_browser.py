"""A report in a real browser runs no code of others, sends no request and is accessible."""

from __future__ import annotations

import base64
from itertools import pairwise

import pytest

from searchapp.text import visible_line
from tests.report.conftest import Reports
from tests.report.reading import Reader

CONTRAST = 4.5
"""Lowest contrast of text at level AA of WCAG 2.2."""


@pytest.mark.parametrize("name", ["two_runs", "one_run", "bench"])
def test_texts_of_others_run_no_code(name: str, reader: Reader, reports: Reports) -> None:
    reader.read(getattr(reports, name))
    assert reader.requests == [] and reader.console_messages == []
    assert reader.run("return window.pwned ?? null") is None
    kinds = "script", "style", "base", "iframe", "img", "form", "object", "embed", "a[href]:not([href^='#'])"
    counts = reader.run(
        "return arguments[0].map((selector) => document.querySelectorAll(selector).length)", kinds
    )
    assert counts == [1, 1, 0, 0, 0, 0, 0, 0, 0]
    script = "return [...document.querySelectorAll('*')].flatMap((element) => element.getAttributeNames())"
    assert not [name for name in reader.run(script) if name.startswith("on") or name == "style"]


def test_texts_of_others_are_shown_as_text(reader: Reader, reports: Reports) -> None:
    reader.read(reports.two_runs)
    shown = reader.run(
        "return [...document.querySelectorAll('table.long tbody th')].map((element) => element.textContent)"
    )
    assert sorted(shown) == sorted(map(visible_line, reports.topics))
    bars = reader.run(
        "return [...document.querySelectorAll('#topics .chart title')].map((element) => element.textContent)"
    )
    assert bars and all(any(bar.startswith(topic) for topic in shown) for bar in bars)
    text = reader.run("return document.body.innerText")
    assert "<script>window.pwned=6</script>" in text and "<U+202E>" in text and "<img src=" in text
    assert visible_line(text.replace("\n", "").replace("\t", "")) == text.replace("\n", "").replace("\t", "")


def test_the_content_security_policy_blocks_injected_elements(reader: Reader, reports: Reports) -> None:
    """If markup got into the page in spite of escaping, it would neither run nor load anything."""
    reader.read(reports.two_runs)
    reader.run(
        "const put = (name, set) => {"
        "  const element = document.createElement(name); set(element); document.body.append(element) };"
        "put('script', (element) => { element.textContent = 'window.pwned = 9' });"
        "put('img', (element) => { element.src = 'http://127.0.0.1:9/a' });"
        "put('style', (element) => { element.textContent = 'body { color: red }' });"
        "put('iframe', (element) => { element.src = 'http://127.0.0.1:9/b' });"
        "fetch('http://127.0.0.1:9/c').catch(() => 0);"
        "put('div', (element) => {"
        "  element.innerHTML = '<b onclick=\"window.pwned=9\">x</b>'; element.firstChild.click() });"
    )
    assert reader.run("return window.pwned ?? null") is None
    messages = reader.console_messages
    for directive in ("script-src", "style-src", "img-src", "frame-src", "connect-src"):
        assert any(directive in message and "Content Security Policy" in message for message in messages), (
            directive
        )


def test_the_tab_key_visits_everything_in_order(reader: Reader, reports: Reports) -> None:
    reader.read(reports.two_runs)
    visited: list[str] = []
    for _ in range(60):
        reader.type("tab")
        if reader.focused in ("", "All topics") or (
            visited and reader.run("return document.activeElement === document.body")
        ):
            break
        visited.append(reader.focused)
        outline = reader.run("return getComputedStyle(document.activeElement).outlineStyle")
        assert outline not in ("none", ""), visited[-1]
    links = reader.run("return [...document.querySelectorAll('nav a')].map((element) => element.textContent)")
    assert visited[0] == "Skip to the report" and visited[1 : 1 + len(links)] == links
    order = ["Figures", "Tests of differences", "measure", "The numbers of both curves", "topic"]
    positions = [visited.index(label, len(links)) for label in order]
    assert positions == sorted(positions)


def test_enter_sorts_a_table_and_opens_details(reader: Reader, reports: Reports) -> None:
    reader.read(reports.two_runs)
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
@pytest.mark.parametrize("name", ["two_runs", "bench"])
def test_text_has_enough_contrast(name: str, scheme: str, reader: Reader, reports: Reports) -> None:
    reader.read(getattr(reports, name), scheme)
    background = reader.run("return getComputedStyle(document.documentElement).backgroundColor")
    assert background == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 26)"}[scheme]
    contrasts = reader.contrasts
    assert len(contrasts) > 5 and {text for text, value in contrasts.items() if value < CONTRAST} == set()


def test_print_is_dark_on_white_without_navigation(reader: Reader, reports: Reports) -> None:
    reader.read(reports.two_runs, "dark", "print")
    assert (
        reader.run("return getComputedStyle(document.documentElement).backgroundColor")
        == "rgb(255, 255, 255)"
    )
    assert reader.run("return getComputedStyle(document.querySelector('nav')).display") == "none"
    assert min(reader.contrasts.values()) >= CONTRAST
    assert base64.b64decode(reader.printed()).startswith(b"%PDF-")


def test_a_report_has_the_structure_that_screen_readers_need(reader: Reader, reports: Reports) -> None:
    reader.read(reports.two_runs)
    assert reader.run("return [document.compatMode, document.documentElement.lang]") == ["CSS1Compat", "en"]
    counts = reader.run(
        "return ['main', 'header', 'nav', 'footer', 'h1'].map((selector) => document.querySelectorAll(selector).length)"
    )
    assert counts == [1, 1, 1, 1, 1]
    levels = reader.run(
        "return [...document.querySelectorAll('h1, h2, h3')].map((heading) => +heading.tagName[1])"
    )
    assert all(after - before <= 1 for before, after in pairwise(levels))
    ids = reader.run("return [...document.querySelectorAll('[id]')].map((element) => element.id)")
    assert len(ids) == len(set(ids))
    script = (
        "return [[...document.querySelectorAll('th:not([scope])')], "
        "[...document.querySelectorAll('table')].filter((table) => !table.caption), "
        "[...document.querySelectorAll('svg:not([role=img]):not([aria-hidden])')], "
        "[...document.querySelectorAll('[role=img]:not([aria-label])')], "
        "[...document.querySelectorAll('nav a')].filter((link) => !document.getElementById(link.hash.slice(1)))"
        "].map((list) => list.length)"
    )
    assert reader.run(script) == [0, 0, 0, 0, 0]


def test_a_narrow_window_scrolls_tables_and_not_the_page(reader: Reader, reports: Reports) -> None:
    reader._driver.set_window_size(500, 800)
    try:
        reader.read(reports.two_runs)
        wide, inner = reader.run("return [document.documentElement.scrollWidth, window.innerWidth]")
        assert wide <= inner
    finally:
        reader._driver.set_window_size(1200, 800)
