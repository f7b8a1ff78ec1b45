"""A real browser that opens a page of `searchapp serve` and reads the terminal in it."""

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

# The page does not expose its terminal. The object that holds it is the one whose `fitAddon` is assigned.
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
    """Headless Chromium."""

    def __init__(self, folder: Path, *options: str) -> None:
        from selenium import webdriver  # importers of this module also have tests that run without selenium

        chrome_options = webdriver.ChromeOptions()
        chrome_options.binary_location, driver = _programs()
        for option in (
            "--headless=new",
            "--no-sandbox",  # the sandbox does not work for root and in many containers
            "--disable-dev-shm-usage",
            "--disable-gpu",
            "--disable-background-networking",
            "--window-size=1200,800",
            f"--user-data-dir={folder}",
            *options,
        ):
            chrome_options.add_argument(option)
        chrome_options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self._driver = webdriver.Chrome(chrome_options, webdriver.ChromeService(driver))
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
        """The text of the terminal in the page."""
        return str(self._driver.execute_script(_READ_TERMINAL))

    @property
    def page(self) -> str:
        """The text of the page outside the terminal."""
        return self._driver.find_element("tag name", "body").text

    @property
    def console_messages(self) -> list[str]:
        """The messages in the browser's console: blocked requests, errors of scripts."""
        log = self._driver.get_log("browser")  # type: ignore[no-untyped-call]
        return [str(entry["message"]) for entry in log]

    def press(self, *keys: str) -> None:
        box = self._driver.find_element("css selector", "textarea.xterm-helper-textarea")
        for key in keys:
            box.send_keys(KEYS.get(key, key))

    def wait_for(self, pattern: str, seconds: float = 15) -> re.Match[str]:
        """Wait until the text of the terminal matches `pattern`."""
        deadline = time.monotonic() + seconds
        while not (result := re.search(pattern, self.text)):
            assert time.monotonic() < deadline, (
                f"{pattern!r} is not in:\n{self.text}\n{self.console_messages}"
            )
            time.sleep(0.02)
        return result


def _programs() -> tuple[str, str]:
    """Return the paths of the browser and its driver; skip the test if they are missing, in CI fail it."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if browser and driver:
        return browser, driver
    message = "there is no Chromium with its driver: install them (Debian: chromium, chromium-driver)"
    if os.environ.get("CI", "").lower() in ("true", "1"):
        pytest.fail(message, pytrace=False)
    pytest.skip(message)
