"""A real browser in which a page of `searchapp serve` is open, and whose terminal a test can read."""

from __future__ import annotations

import os
import re
import shutil
import time
from pathlib import Path
from typing import Self

import pytest

KEYS = {"enter": "\ue007", "escape": "\ue00c", "down": "\ue015", "tab": "\ue004", "f1": "\ue031"}
"""As WebDriver names them."""

# The page keeps its terminal to itself: what makes it sets `fitAddon` of the object that holds it.
_FIND_TERMINAL = """
Object.defineProperty(Object.prototype, "fitAddon", {
  configurable: true,
  set(value) {
    window.shown = this;
    Object.defineProperty(this, "fitAddon", {value, writable: true, configurable: true});
  },
});
"""
_READ_TERMINAL = """
if (!window.shown) return "";
const buffer = window.shown.terminal.buffer.active, lines = [];
for (let line = 0; line < window.shown.terminal.rows; line++)
  lines.push(buffer.getLine(buffer.viewportY + line)?.translateToString(true) ?? "");
return lines.join("\\n");
"""


class Browser:
    """Chromium without a window of its own."""

    def __init__(self, folder: Path, *options: str) -> None:
        from selenium import webdriver  # the other tests of this module's importers run without it

        chosen = webdriver.ChromeOptions()
        chosen.binary_location, driver = _programs()
        for option in (
            "--headless=new",
            "--no-sandbox",  # which is not had by root, nor in many containers
            "--disable-dev-shm-usage",
            "--disable-gpu",
            "--disable-background-networking",
            "--window-size=1200,800",
            f"--user-data-dir={folder}",
            *options,
        ):
            chosen.add_argument(option)
        chosen.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self._driver = webdriver.Chrome(chosen, webdriver.ChromeService(driver))
        self._driver.set_page_load_timeout(20)
        self._driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": _FIND_TERMINAL})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._driver.quit()

    def open(self, address: str) -> None:
        self._driver.get(address)

    @property
    def address(self) -> str:
        return self._driver.current_url

    @property
    def text(self) -> str:
        """What the terminal in the page shows."""
        return str(self._driver.execute_script(_READ_TERMINAL))

    @property
    def page(self) -> str:
        """What the page shows besides."""
        return self._driver.find_element("tag name", "body").text

    @property
    def complaints(self) -> list[str]:
        """What the browser has to say of the page: what it was not allowed to load, errors of its scripts."""
        log = self._driver.get_log("browser")  # type: ignore[no-untyped-call]
        return [str(entry["message"]) for entry in log]

    def press(self, *keys: str) -> None:
        box = self._driver.find_element("css selector", "textarea.xterm-helper-textarea")
        for key in keys:
            box.send_keys(KEYS.get(key, key))

    def wait_for(self, pattern: str, seconds: float = 15) -> re.Match[str]:
        """Wait until the terminal shows something."""
        until = time.monotonic() + seconds
        while not (result := re.search(pattern, self.text)):
            assert time.monotonic() < until, f"{pattern!r} is not in:\n{self.text}\n{self.complaints}"
            time.sleep(0.02)
        return result


def _programs() -> tuple[str, str]:
    """The browser and what drives it; a test that can't have them is skipped, and fails where they must be there."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if browser and driver:
        return browser, driver
    words = "there is no Chromium with its driver: install them (Debian: chromium, chromium-driver)"
    if os.environ.get("CI", "").lower() in ("true", "1"):
        pytest.fail(words, pytrace=False)
    pytest.skip(words)
